// A stored format is one description: one that nobody had described (trits_format.h) is added by one line, and
// every command knows it: convert to it and from it, verify, paramcount, check, run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/check/stages.h"
#include "convert/convert.h"
#include "core/formats/json.h"
#include "core/model/open_model.h"
#include "core/system/error.h"
#include "paramcount/paramcount.h"
#include "refimpl/engine/engine.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/reference.h"
#include "tests/cli/trits_format.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/verify.h"

namespace assay::test {
namespace {

const fs::path kTinylm = source_dir() / "data/tinylm";
const std::string kMatrix = "model.layers.0.mlp.up_proj.weight";

void convert_to(const fs::path& in, const fs::path& out, const std::string& to) {
  ConvertOptions options;
  options.to = to;
  const ConversionPlan plan = make_plan(in, options);
  for (const Finding& finding : plan.findings)
    EXPECT_NE(finding.severity, Severity::error) << finding.tensor << ": " << finding.message;
  ASSERT_TRUE(plan.feasible());
  convert(out, plan, options, ProgressMode::never);
}

std::vector<float> values_of(const OpenedModel& model, const std::string& name) {
  for (const LogicalTensor& tensor : model.stored.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.elements());
    StoredReader(model.reader, tensor).decode_rows(0, tensor.all_rows(), values);
    return values;
  }
  return {};
}

std::vector<double> logits_of(const fs::path& folder) {
  const Weights weights(folder, 1);
  const auto model = make_model(weights, {});
  ReferenceOps ops({}, 1);
  TextEngine engine(*model, ops);
  std::vector<double> all;
  const std::vector<TokenId> ids = {5, 17, 3, 240};
  engine.score(ids, [&](std::size_t, std::span<const double> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

class AddedFormatTest : public testing::Test {
 protected:
  AddedFormatTest() { convert_to(kTinylm, made_, "trits"); }

  const AddedFormat line_{trits::kFormat};  // what formats.cpp would have
  TempDir dir_{memory_folder()};
  const fs::path made_ = dir_ / "trits";
};

TEST_F(AddedFormatTest, IsDecodedAsItSays) {
  const OpenedModel before(kTinylm, 1), after(made_, 1);
  EXPECT_TRUE(after.stored.findings.empty());
  std::size_t found = 0;
  for (const LogicalTensor& tensor : after.stored.tensors) found += form_name(tensor) == "TRITS" ? 1 : 0;
  EXPECT_GT(found, 30u);
  const std::vector<float> was = values_of(before, kMatrix), is = values_of(after, kMatrix);
  ASSERT_EQ(was.size(), is.size());
  ASSERT_FALSE(is.empty());
  const std::uint64_t columns = 160;  // hidden_size
  for (std::uint64_t row = 0; row < is.size() / columns; ++row) {
    float largest = 0;
    for (std::uint64_t c = 0; c < columns; ++c) largest = std::max(largest, std::abs(was[row * columns + c]));
    for (std::uint64_t c = 0; c < columns; ++c) {
      const float value = was[row * columns + c];
      const float wanted = std::abs(value) > largest / 2 ? std::copysign(largest, value) : 0.0F;
      ASSERT_EQ(is[row * columns + c], wanted) << row << ", " << c;
    }
  }
}

TEST_F(AddedFormatTest, StandsInTheConfig) {
  const auto config = parse_json(read_file(made_ / "config.json"), "config.json", {});
  EXPECT_EQ(config.at("quantization_config").at("quant_method"), "trits");
}

TEST_F(AddedFormatTest, IsCountedByParamcount) {
  const Model model = load_model(made_, 1);
  EXPECT_TRUE(model.findings.empty()) << model.findings.front().message;
  EXPECT_EQ(model.format.name, "trits");
  std::uint64_t stored = 0;
  for (const CheckpointTensor& tensor : open_checkpoint(made_, 1).tensors) stored += tensor.bytes;
  EXPECT_EQ(weight_bytes(model.tree, model.format).total, stored);
}

TEST_F(AddedFormatTest, IsTakenByVerifyAndCheck) {
  VerifyOptions options;
  VerifyObserver silent;
  for (const Finding& finding : verify(made_, options, silent).findings)
    EXPECT_EQ(finding.severity, Severity::note) << finding.code << " " << finding.message;
  CheckSettings settings;
  settings.common.jobs = 1;
  settings.path = made_.string();
  EXPECT_EQ(examine_identity(settings).status, StageStatus::passed);
  EXPECT_EQ(examine_files(settings, false).numbers.status, StageStatus::passed);
}

// The same numbers in another form are the same model.
TEST_F(AddedFormatTest, IsConvertedFromAndRun) {
  const fs::path plain = dir_ / "plain";
  convert_to(made_, plain, "f32");
  const OpenedModel made(made_, 1), written(plain, 1);
  EXPECT_EQ(values_of(made, kMatrix), values_of(written, kMatrix));
  const std::vector<double> logits = logits_of(made_);
  EXPECT_FALSE(logits.empty());
  EXPECT_EQ(logits, logits_of(plain));
}

TEST(AddedFormat, IsGoneWithItsLine) {
  TempDir dir(memory_folder());
  {
    const AddedFormat line(trits::kFormat);
    convert_to(kTinylm, dir / "trits", "trits");
  }
  EXPECT_FALSE(find_stored(open_checkpoint(dir / "trits", 1), std::nullopt).any_quantized);
  ConvertOptions options;
  options.to = "trits";
  EXPECT_THROW(make_plan(kTinylm, options), Error);
}

}  // namespace
}  // namespace assay::test
