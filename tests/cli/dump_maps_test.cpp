// The maps that are shipped, on what transformers gives of a model (data/make_dump_fixtures.py): all that
// both sides have agrees, layer by layer. A map that takes one norm for another fails; one that leaves out
// most taps is seen by their number.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

struct Mapped {
  const char* model;
  const char* map;
  std::size_t taps;  // of the layers that the model has, and four outside
};

class DumpMaps : public testing::TestWithParam<Mapped> {};
INSTANTIATE_TEST_SUITE_P(Families, DumpMaps,
                         testing::Values(Mapped{"gemma2", "gemma.map", 33}, Mapped{"olmo2", "gemma.map", 19},
                                         Mapped{"gpt2", "gpt2.map", 13}),
                         [](const auto& test) { return std::string(test.param.model); });

TEST_P(DumpMaps, FitWhatTransformersCallsItsModules) {
  const Mapped& mapped = GetParam();
  const TempDir dir(memory_folder());
  const fs::path root = source_dir(), ours = dir / "ours.safetensors";
  ASSERT_EQ(assay({"run", root / "data/models" / mapped.model, "--tokens", "1,5,9,13,40", "-n", "0", "--dump",
                   ours})
                .exit_code,
            0);
  const ProcessResult result =
      assay({"compare", "dumps", ours,
             root / "data/fixtures/dumps/maps" / (std::string(mapped.model) + ".safetensors"), "--map",
             root / "docs/maps" / mapped.map});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("OK: " + std::to_string(mapped.taps) + " taps of 5 tokens agree"),
            std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace assay::test
