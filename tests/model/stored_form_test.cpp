#include "core/model/stored_form.h"

#include <gtest/gtest.h>

#include "tests/support/checkpoints.h"

namespace assay {
namespace {

using enum ElementType;
using test::StoredTensor;

StoredTensors find(const std::vector<StoredTensor>& tensors,
                   const std::optional<QuantizationConfig>& config = std::nullopt) {
  return find_stored(test::make_checkpoint(tensors), config);
}

QuantizationConfig fp8_blocks(std::uint64_t rows, std::uint64_t columns) {
  QuantizationConfig config;
  config.method = "fp8";
  config.block_rows = rows;
  config.block_columns = columns;
  return config;
}

// The only code among the findings, or "none".
std::string fault(const StoredTensors& found) {
  return found.findings.size() == 1 ? found.findings.front().code : "none";
}

struct Known {
  std::vector<StoredTensor> tensors;
  std::string form;
  std::vector<std::uint64_t> shape;
};

TEST(StoredForm, FormsOfTheWild) {
  const std::vector<Known> all = {
      {{{"a.weight", BF16, {4, 6}}}, "BF16", {4, 6}},
      {{{"a.weight", F8_E4M3, {576, 7168}}, {"a.weight_scale_inv", F32, {5, 56}}},
       "F8_E4M3 128x128",
       {576, 7168}},
      {{{"a.weight", F8_E4M3, {300, 200}}, {"a.weight_scale", BF16, {300, 1}}},
       "F8_E4M3 channel",
       {300, 200}},
      {{{"a.weight", F8_E4M3, {300, 200}}, {"a.weight_scale", F32, {300}}}, "F8_E4M3 channel", {300, 200}},
      {{{"a.weight", F8_E4M3, {300, 200}}, {"a.weight_scale", F32, {}}, {"a.input_scale", F32, {}}},
       "F8_E4M3 tensor",
       {300, 200}},
      {{{"a.weight", I8, {300, 200}}, {"a.weight_scale", F32, {300, 1}}}, "I8 channel", {300, 200}},
      {{{"a.weight", F8_E4M3, {300, 64}}, {"a.weight_scale", U8, {300, 2}}}, "MXFP8", {300, 64}},
      {{{"a.weight", U8, {8, 32}}, {"a.weight_scale", F8_E4M3, {8, 4}}, {"a.weight_scale_2", F32, {}}},
       "NVFP4",
       {8, 64}},
      {{{"a.weight_packed", U8, {8, 32}},
        {"a.weight_scale", F8_E4M3, {8, 4}},
        {"a.weight_global_scale", F32, {1}}},
       "NVFP4",
       {8, 64}},
      {{{"a.weight_packed", U8, {8, 32}}, {"a.weight_scale", U8, {8, 2}}}, "MXFP4", {8, 64}},
      {{{"a.weight", I8, {8, 32}}, {"a.scale", F8_E8M0, {8, 2}}}, "MXFP4", {8, 64}},
      {{{"e.down_proj_blocks", U8, {3, 8, 2, 16}}, {"e.down_proj_scales", U8, {3, 8, 2}}},
       "MXFP4",
       {3, 64, 8}},
      {{{"b.0.mlp1_weight.blocks", U8, {3, 8, 2, 16}}, {"b.0.mlp1_weight.scales", U8, {3, 8, 2}}},
       "MXFP4",
       {3, 8, 64}},
  };
  for (const Known& known : all) {
    const StoredTensors found = find(known.tensors);
    ASSERT_TRUE(found.findings.empty()) << known.form << ": " << found.findings.front().message;
    ASSERT_EQ(found.tensors.size(), 1u) << known.form;
    EXPECT_EQ(form_name(found.tensors[0]), known.form);
    EXPECT_EQ(found.tensors[0].shape, known.shape);
  }
}

TEST(StoredForm, TheConfiguredBlockDecidesWhatAGridOfOneMeans) {
  const std::vector<StoredTensor> small = {{"a.weight", F8_E4M3, {72, 100}},
                                           {"a.weight_scale_inv", F32, {1, 1}}};
  EXPECT_EQ(form_name(find(small, fp8_blocks(128, 128)).tensors.at(0)), "F8_E4M3 128x128");
  EXPECT_EQ(form_name(find(small).tensors.at(0)), "F8_E4M3 tensor");
}

// transformers' FP8, Llama 4 (stored [inputs, outputs]), ModelOpt's Llama 4, and the engines' own names.
TEST(StoredForm, StackedExperts) {
  const std::vector<Known> all = {
      {{{"e.gate_up_proj", F8_E4M3, {4, 256, 130}}, {"e.gate_up_proj_scale_inv", F32, {4, 2, 2}}},
       "F8_E4M3 128x128",
       {4, 256, 130}},
      {{{"e.down_proj", F8_E4M3, {4, 256, 130}}, {"e.down_proj_weight_scale_inv", F32, {4, 2, 2}}},
       "F8_E4M3 128x128",
       {4, 256, 130}},
      {{{"e.gate_up_proj", F8_E4M3, {4, 256, 130}}, {"e.gate_up_proj_scale", F32, {4, 1, 130}}},
       "F8_E4M3 256x1",
       {4, 256, 130}},
      {{{"e.down_proj", F8_E4M3, {4, 256, 130}}, {"e.down_proj_scale", F32, {4, 256, 1}}},
       "F8_E4M3 channel",
       {4, 256, 130}},
      {{{"e.w13_weight", I8, {4, 20, 30}}, {"e.w13_weight_scale", F32, {4, 20, 1}}},
       "I8 channel",
       {4, 20, 30}},
      {{{"e.gate_up_proj", U8, {4, 8, 32}},
        {"e.gate_up_proj_weight_scale", F8_E4M3, {4, 8, 4}},
        {"e.gate_up_proj_weight_scale_2", F32, {}},
        {"e.gate_up_proj_input_scale", F32, {}}},
       "NVFP4",
       {4, 8, 64}},
  };
  for (const Known& known : all) {
    const StoredTensors found = find(known.tensors);
    ASSERT_TRUE(found.findings.empty()) << known.form << ": " << found.findings.front().message;
    ASSERT_EQ(found.tensors.size(), 1u) << known.form;
    EXPECT_EQ(form_name(found.tensors[0]), known.form);
    EXPECT_EQ(found.tensors[0].shape, known.shape);
  }
  EXPECT_EQ(fault(find({{"e.w13_weight", I8, {4, 20, 30}}})), "stored.scale_missing");
}

TEST(StoredForm, AnEmptyMatrixHasNoScales) {
  const StoredTensors found =
      find({{"a.weight", F8_E4M3, {0, 128}}, {"a.weight_scale_inv", F32, {0, 1}}}, fp8_blocks(128, 128));
  EXPECT_TRUE(found.findings.empty());
}

// 64x64 blocks under a config that says 128x128, and one scale for all: the engines would read past or short.
TEST(StoredForm, OtherBlocksThanTheConfigSaysAreRefused) {
  for (const std::vector<std::uint64_t>& grid : {std::vector<std::uint64_t>{4, 6}, {1, 1}, {256, 1}}) {
    EXPECT_EQ(fault(find({{"a.weight", F8_E4M3, {256, 384}}, {"a.weight_scale_inv", F32, grid}},
                         fp8_blocks(128, 128))),
              "stored.scale_shape");
  }
}

TEST(StoredForm, RefusesToGuess) {
  EXPECT_EQ(fault(find({{"a.weight", F8_E4M3, {4, 4}}})), "stored.scale_missing");
  EXPECT_EQ(fault(find({{"a.weight", I8, {4, 4}}})), "stored.scale_missing");
  EXPECT_EQ(fault(find({{"a.weight_scale_inv", F32, {1, 1}}})), "stored.scale_without_weight");
  EXPECT_EQ(fault(find({{"a.weight", BF16, {4, 4}}, {"a.weight_scale_inv", F32, {1, 1}}})),
            "stored.scale_without_codes");
  // What a naive 2 x 2 repetition makes of 5 x 56 scales over 576 rows: one row too many.
  EXPECT_EQ(fault(find({{"a.weight", F8_E4M3, {576, 7168}}, {"a.weight_scale_inv", F32, {10, 112}}},
                       fp8_blocks(64, 64))),
            "stored.scale_shape");
  EXPECT_EQ(fault(find({{"a.weight", F8_E4M3, {4, 4}}, {"a.weight_scale", I32, {4, 1}}})),
            "stored.scale_type");
  EXPECT_EQ(fault(find({{"a.weight", U32, {4, 4}}, {"a.scales", F16, {4, 1}}, {"a.biases", F16, {4, 1}}})),
            "stored.form_unknown");
  QuantizationConfig unheard_of;
  unheard_of.method = "quanto-next";
  EXPECT_EQ(fault(find({{"a.weight", BF16, {4, 4}}}, unheard_of)), "stored.method_unknown");
}

TEST(StoredForm, AScaleByItselfIsAnOrdinaryParameter) {
  for (const auto& tensors : {std::vector<StoredTensor>{{"layer_scale.scale", BF16, {4}}},
                              {{"a.visual_proj", BF16, {4, 4}}, {"a.visual_proj_scale", BF16, {1}}}}) {
    const StoredTensors found = find(tensors);
    EXPECT_TRUE(found.findings.empty());
    EXPECT_FALSE(found.any_quantized);
  }
}

}  // namespace
}  // namespace assay
