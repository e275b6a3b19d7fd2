// Trees derived of checkpoints whose stacked experts are stored in few bits, under names that do not end in ".weight": the codes
// are the parameters, in the form their scales tell, and scales are none.
#include <gtest/gtest.h>

#include "core/model/derive_tree.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"

namespace assay {
namespace {

using test::StoredTensor;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kLayers = 2, kExperts = 4, kWide = 256, kHidden = 128;

struct Stored {
  std::string gate_up, down;  // what the names of the codes end in, behind "experts."
  std::string scale;          // what is added to them
  ElementType codes, scales;
  Shape gate_up_shape, gate_up_scale, down_shape, down_scale;
  std::string codes_ending = {};
};

Checkpoint made(const Stored& of) {
  std::vector<StoredTensor> tensors = {{"embed.weight", ElementType::BF16, {90, kHidden}}};
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".mlp.";
    tensors.push_back({at + "router.weight", ElementType::BF16, {kExperts, kHidden}});
    tensors.push_back({at + "experts." + of.gate_up + of.codes_ending, of.codes, of.gate_up_shape});
    tensors.push_back({at + "experts." + of.gate_up + of.scale, of.scales, of.gate_up_scale});
    tensors.push_back({at + "experts." + of.down + of.codes_ending, of.codes, of.down_shape});
    tensors.push_back({at + "experts." + of.down + of.scale, of.scales, of.down_scale});
  }
  return test::make_checkpoint(tensors);
}

void expect_told(const Stored& of) {
  const Checkpoint checkpoint = made(of);
  const ModelConfig config = absent_config(checkpoint);
  const ModuleTree tree = derive_tree(checkpoint, config);
  const std::uint64_t outside = 90 * kHidden + kLayers * kExperts * kHidden;
  const std::uint64_t experts = kLayers * kExperts * (kWide * kHidden + kHidden * kHidden);
  EXPECT_EQ(tree.layers, kLayers) << of.scale;
  EXPECT_EQ(tree.experts, kExperts) << of.scale;
  EXPECT_EQ(count(tree).total, outside + experts) << of.scale;
  const Reconciliation found = reconcile(tree, config, checkpoint);
  EXPECT_EQ(found.difference, 0) << of.scale;
  EXPECT_EQ(found.missing_tensors + found.misshapen_tensors, 0u) << of.scale;
  for (const Finding& finding : found.findings)
    EXPECT_NE(finding.severity, Severity::error) << finding.message;
  const std::uint64_t scales =
      kLayers *
      (of.gate_up_scale[0] * of.gate_up_scale[1] * (of.gate_up_scale.size() > 2 ? of.gate_up_scale[2] : 1) +
       of.down_scale[0] * of.down_scale[1] * (of.down_scale.size() > 2 ? of.down_scale[2] : 1));
  EXPECT_EQ(found.scales.elements, scales) << of.scale;
  EXPECT_EQ(found.main.elements + found.unpacked, outside + experts) << of.scale;
}

TEST(DerivedOfFewBits, Fp8InBlocks) {
  expect_told({"gate_up_proj",
               "down_proj",
               "_scale_inv",
               ElementType::F8_E4M3,
               ElementType::F32,
               {kExperts, kWide, kHidden},
               {kExperts, kWide / 128, kHidden / 128},
               {kExperts, kHidden, kHidden},
               {kExperts, kHidden / 128, kHidden / 128}});
}
TEST(DerivedOfFewBits, Fp8ByRow) {
  expect_told({"gate_up_proj",
               "down_proj",
               "_scale",
               ElementType::F8_E4M3,
               ElementType::BF16,
               {kExperts, kWide, kHidden},
               {kExperts, kWide, 1},
               {kExperts, kHidden, kHidden},
               {kExperts, kHidden, 1}});
}
TEST(DerivedOfFewBits, Mxfp4InBlocks) {
  expect_told({"gate_up_proj",
               "down_proj",
               "_scales",
               ElementType::U8,
               ElementType::U8,
               {kExperts, kWide, kHidden / 32, 16},
               {kExperts, kWide, kHidden / 32},
               {kExperts, kHidden, kHidden / 32, 16},
               {kExperts, kHidden, kHidden / 32},
               "_blocks"});
}

}  // namespace
}  // namespace assay
