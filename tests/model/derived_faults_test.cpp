// What can be held against a checkpoint of an architecture that nobody has described: its config's counts, and its
// layers' siblings.
#include "core/model/derived_faults.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/model/derive_tree.h"
#include "core/model/derived_keys.h"
#include "core/model/derived_roles.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::StoredTensor;

ModelConfig unheard_of(const std::string& keys) {
  return ModelConfig::from_json(
      parse_json(R"({"architectures": ["FooBarForCausalLM"], "hidden_size": 64)" + keys + "}", "config.json"),
      "config.json");
}

std::vector<StoredTensor> three_of_a_kind() {
  const ElementType t = ElementType::BF16;
  std::vector<StoredTensor> tensors = {{"model.embed_tokens.weight", t, {500, 64}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1.", "model.layers.2."}) {
    tensors.push_back({layer + "attn_norm.weight", t, {64}});
    tensors.push_back({layer + "mlp.up_proj.weight", t, {160, 64}});
    tensors.push_back({layer + "mlp.down_proj.weight", t, {64, 160}});
    for (int expert = 0; expert < 4; ++expert)
      for (const char* matrix : {".w1", ".w2"})
        tensors.push_back({layer + "experts." + std::to_string(expert) + matrix + ".weight", t, {32, 64}});
  }
  return tensors;
}

Findings faults(const std::vector<StoredTensor>& tensors, const std::string& keys = "") {
  const ModelConfig config = unheard_of(keys);
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  return reconcile(derive_tree(checkpoint, config), config, checkpoint).findings;
}

TEST(DerivedFaults, ConfigAndHeadersContradictEachOther) {
  EXPECT_TRUE(faults(three_of_a_kind(), R"(, "num_hidden_layers": 3)").empty());
  EXPECT_TRUE(faults(three_of_a_kind()).empty());
  const Findings more = faults(three_of_a_kind(), R"(, "num_hidden_layers": 5)");
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more.front().code, "model.layers_missing");
  EXPECT_EQ(more.front().severity, Severity::error);
  const Findings fewer = faults(three_of_a_kind(), R"(, "n_layer": 2)");
  ASSERT_EQ(fewer.size(), 1u);
  EXPECT_EQ(fewer.front().code, "model.layers_more");
}

TEST(DerivedFaults, ALayerLacksATensor) {
  std::vector<StoredTensor> tensors = three_of_a_kind();
  std::erase_if(tensors, [](const StoredTensor& t) { return t.name == "model.layers.1.mlp.up_proj.weight"; });
  const Findings found = faults(tensors);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().code, "model.layer_differs");
  EXPECT_EQ(found.front().severity, Severity::warning);
  EXPECT_EQ(found.front().tensor, "model.layers.1.mlp.up_proj.weight");
}

// Nothing stands before the first layer that another one would have made.
TEST(DerivedFaults, AFirstLayerMayDoWithout) {
  std::vector<StoredTensor> tensors = three_of_a_kind();
  std::erase_if(tensors, [](const StoredTensor& t) { return t.name == "model.layers.0.attn_norm.weight"; });
  EXPECT_TRUE(faults(tensors).empty());
}

TEST(DerivedFaults, ATensorHasAnotherShape) {
  for (const auto& [shape, severity] :
       {std::pair{std::vector<std::uint64_t>{160, 63}, Severity::error},  // hidden_size is 64
        std::pair{std::vector<std::uint64_t>{128, 64}, Severity::warning}}) {
    std::vector<StoredTensor> tensors = three_of_a_kind();
    for (StoredTensor& tensor : tensors)
      if (tensor.name == "model.layers.1.mlp.up_proj.weight") tensor.shape = shape;
    const Findings found = faults(tensors);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found.front().severity, severity) << found.front().message;
  }
}

TEST(DerivedFaults, ALayerLacksAnExpert) {
  std::vector<StoredTensor> tensors = three_of_a_kind();
  std::erase_if(tensors,
                [](const StoredTensor& t) { return t.name.starts_with("model.layers.1.experts.2."); });
  Findings found = faults(tensors);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().severity, Severity::warning);
  EXPECT_NE(found.front().message.find("lacks experts 2"), std::string::npos) << found.front().message;
  found = faults(tensors, R"(, "num_experts": 4)");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().severity, Severity::error);
}

// Of the models that are described here none, derived, is blamed for what is its design.
class DescribedModels : public testing::TestWithParam<std::string> {};
TEST_P(DescribedModels, AreBlamedForNothing) {
  const ModelConfig config = ModelConfig::read(GetParam());
  std::vector<StoredTensor> tensors;
  for_each_tensor(describe(config),
                  [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
                    if (spec.storage == Storage::own)
                      tensors.push_back({name, ElementType::BF16, spec.shape});
                  });
  const ModuleTree tree = derive_tree(test::make_checkpoint(tensors), config);
  for (const Finding& finding : derived_faults(tree, config))
    ADD_FAILURE() << finding.code << " " << finding.tensor << ": " << finding.message;
}
std::vector<std::string> configs_of_both_kinds() {
  std::vector<std::string> paths;
  for (const auto& folder : {test::source_dir() / "data/fixtures/configs", test::published_configs()}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}
std::string name_of_config(const testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path = info.param;
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, DescribedModels, testing::ValuesIn(configs_of_both_kinds()), name_of_config);

TEST(DerivedKeys, ExpertsOfATokenByManyNames) {
  for (const char* key : {"num_experts_per_tok", "moe_router_topk", "top_k_experts", "n_activated_experts",
                          "num_activated_experts", "num_active_experts", "router_top_k"}) {
    const auto told = told_experts_per_token(unheard_of(std::string(", \"") + key + "\": 2"), 8);
    ASSERT_TRUE(told) << key;
    EXPECT_EQ(told->count, 2u);
  }
  EXPECT_EQ(told_experts_per_token(unheard_of(R"(, "ffn_config": {"moe_top_k": 2})"), 8)->count, 2u);
  EXPECT_EQ(told_experts_per_token(unheard_of(R"(, "num_experts_per_tok": [2, 2, 2])"), 8)->count, 2u);
  EXPECT_FALSE(told_experts_per_token(unheard_of(R"(, "top_k": 50)"), 8));  // how tokens are drawn
  EXPECT_FALSE(told_experts_per_token(unheard_of(R"(, "num_experts_per_tok": 0)"), 8));
}

// Stacks of as many matrices as there are experts, whatever they are called.
TEST(DerivedTreeOfExperts, StacksNeedNoName) {
  for (const char* matrix : {"mlp.w1", "input_linear.weight", "mlp.switch_mlp.gate_up"}) {
    std::vector<StoredTensor> tensors;
    for (const std::string layer : {"model.layers.0.", "model.layers.1.", "model.layers.2."}) {
      tensors.push_back({layer + matrix, ElementType::BF16, {8, 96, 64}});
      tensors.push_back({layer + "attn.heads", ElementType::BF16, {8, 16, 16}});
      tensors.push_back({layer + "norm.weight", ElementType::BF16, {64}});
    }
    const Checkpoint checkpoint = test::make_checkpoint(tensors);
    const ModuleTree tree = derive_tree(checkpoint, unheard_of(R"(, "num_experts": 8, "top_k_experts": 2)"));
    EXPECT_EQ(tree.experts, 8u) << matrix;
    const Totals totals = count(tree);
    EXPECT_EQ(totals.total - totals.active, 3u * 6 * 96 * 64) << matrix;
  }
}

TEST(DerivedRolesOfTowers, HaveNamesOfTheirOwn) {
  const auto part = [](std::string_view name) {
    return derive_role(name, 2, name.find("{layer}") != std::string_view::npos, false).part;
  };
  for (const char* name :
       {"model.connector.proj.weight", "aligner.layers.0.weight", "resampler.kv_proj.weight", "mlp1.1.weight",
        "perceiver.latents", "model.patch_merger.weight"})
    EXPECT_EQ(part(name), Part::projector) << name;
  for (const char* name :
       {"vpm.encoder.layers.{layer}.mlp.fc1.weight", "model.sam_model.blocks.{layer}.lin1.weight",
        "siglip2.head.weight", "clip_model.proj.weight"})
    EXPECT_EQ(part(name), Part::vision) << name;
  for (const char* name : {"apm.layers.{layer}.fc1.weight", "talker.model.layers.{layer}.mlp.up_proj.weight",
                           "token2wav.net.weight", "vocoder.conv.weight"})
    EXPECT_EQ(part(name), Part::audio) << name;
  EXPECT_EQ(part("model.layers.{layer}.mlp1.weight"), Part::dense_mlp);
  EXPECT_EQ(part("model.layers.{layer}.connector.weight"), Part::dense_mlp);
  EXPECT_EQ(part("model.unclip.weight"), Part::dense_mlp);
}

}  // namespace
}  // namespace assay
