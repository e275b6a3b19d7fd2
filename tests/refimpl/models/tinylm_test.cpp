// data/tinylm, a trained DeepSeek-V3 in FP8, and its BF16 twin, against golden.json: transformers in double
// and float32, the MTP layer by its own training code.
#include "core/formats/json.h"
#include "tests/refimpl/models/golden_run.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::largest;
using test::largest_difference;
using test::Runner;

struct Expected {
  std::vector<TokenId> prompt, greedy;
  std::vector<double> last, mtp_last;
};

Expected expected_of(const std::string& folder) {
  const ParsedJson golden =
      ParsedJson::parse(test::read_file(test::source_dir() / "data/tinylm/golden.json"));
  const ParsedJson& own = golden.at(folder);
  return {golden.at("prompt_ids"), own.at("greedy"), own.at("last").at("logits_f64"),
          own.at("mtp_last").at("logits_f64")};
}

class TinyLm : public testing::TestWithParam<const char*> {
 protected:
  Expected expected = expected_of(GetParam());
  std::string path = std::string("../") + GetParam();  // beside data/models
  std::vector<double> last_of(const std::vector<double>& logits) {
    return {logits.end() - static_cast<std::ptrdiff_t>(expected.last.size()), logits.end()};
  }
};

// golden.json keeps nine decimals.
TEST_P(TinyLm, LogitsInDoubleAndSingle) {
  const double size = largest(expected.last);
  EXPECT_LE(largest_difference(last_of(Runner(path, Precision::f64)(expected.prompt)), expected.last),
            1e-9 * std::max(1.0, size));
  EXPECT_LE(largest_difference(last_of(Runner(path, Precision::f32)(expected.prompt)), expected.last),
            1e-4 * size);
}

TEST_P(TinyLm, GreedyText) {
  EXPECT_EQ(Runner(path, Precision::f32).greedy(expected.prompt, expected.greedy.size()), expected.greedy);
}

TEST_P(TinyLm, MultiTokenPrediction) {
  const std::vector<double> logits = Runner(path, Precision::f64).draft(expected.prompt);
  EXPECT_LE(largest_difference(last_of(logits), expected.mtp_last), 1e-9 * largest(expected.mtp_last));
}

INSTANTIATE_TEST_SUITE_P(Folders, TinyLm, testing::Values("tinylm", "tinylm-bf16"));

}  // namespace
}  // namespace assay
