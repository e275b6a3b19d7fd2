// What a forward pass reads of a config: the defaults of transformers' classes, and when a wrong value is told.
#include "core/model/hyperparameters.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

ModuleTree tree_of(const ParsedJson& config) {
  return describe(ModelConfig::from_json(config, "config.json"));
}

std::string error_of(const ModuleTree& tree) {
  try {
    hyperparameters(tree);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.line();
  }
  return "";
}

double real(const ParsedJson& value) {
  return value.is_null() ? 0 : value.get<double>();
}

using Value = std::function<ParsedJson(const Hyperparameters&)>;
// Keys of config.json whose values a Hyperparameters has as they are.
const std::map<std::string, Value>& readings() {
  static const std::map<std::string, Value> all = {
      {"rms_norm_eps", [](const auto& h) { return h.epsilon; }},
      {"norm_eps", [](const auto& h) { return h.epsilon; }},
      {"layer_norm_epsilon", [](const auto& h) { return h.epsilon; }},
      {"layer_norm_eps", [](const auto& h) { return h.epsilon; }},
      {"norm_eps", [](const auto& h) { return h.epsilon; }},
      {"norm_epsilon", [](const auto& h) { return h.epsilon; }},
      {"activation", [](const auto& h) { return h.activation; }},
      {"logit_scale", [](const auto& h) { return h.head_scale; }},
      {"embedding_multiplier", [](const auto& h) { return h.embedding_scale; }},
      {"residual_multiplier", [](const auto& h) { return h.residual_scale; }},
      {"attention_multiplier", [](const auto& h) { return h.attention_scale; }},
      {"use_parallel_residual", [](const auto& h) { return h.parallel_branches; }},
      {"max_position_embeddings", [](const auto& h) { return h.context; }},
      {"hidden_act", [](const auto& h) { return h.activation; }},
      {"hidden_activation", [](const auto& h) { return h.activation; }},
      {"activation_function", [](const auto& h) { return h.activation; }},
      {"final_logit_softcapping", [](const auto& h) { return h.final_cap; }},
      {"query_pre_attn_scalar",
       [](const auto& h) {
         return h.attention_scale == 0 ? 0 : 1 / (h.attention_scale * h.attention_scale);
       }},
      {"scale_attn_by_inverse_layer_idx", [](const auto& h) { return h.scaled_by_layer; }},
      {"rope_interleave", [](const auto& h) { return h.interleaved_pairs; }},
      {"norm_topk_prob", [](const auto& h) { return h.routing.renormalize; }},
      {"routed_scaling_factor", [](const auto& h) { return h.routing.scale; }},
      {"scale_emb", [](const auto& h) { return h.embedding_scale; }}};
  return all;
}

// data/make_config_keys.py: model_type, key, whether the class reads it, the class's default as JSON.
TEST(Hyperparameters, DefaultsAreThoseOfTransformers) {
  std::istringstream lines(
      test::read_file(test::source_dir() / "data/fixtures/config_keys/transformers.tsv"));
  std::map<std::string, int> compared;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string type, key, read, value;
    fields >> type >> key >> read >> value;
    const auto reading = readings().find(key);
    if (reading == readings().end() || read != "read") continue;
    if (type == "dbrx") continue;  // whose values stand in objects that a config must have
    // Of a softmax over the chosen experts weights add up to 1 unasked; null stands for LayerNorms.
    if (type == "cohere2_moe" && (key == "norm_topk_prob" || key == "rms_norm_eps")) continue;
    if (type == "cohere_compass_text" && key == "logit_scale") continue;  // null, which stands for 1
    // Another word for logits_mup_width_multiplier; a length that is the training's, for a recurrence has no end.
    if (type == "inkling_text" && key == "embedding_multiplier") continue;
    if (type == "rwkv" && key == "max_position_embeddings") continue;
    const bool sees =
        type.find("_vl") != std::string::npos;  // its text has a class of its own, here no family
    const ModuleTree tree = tree_of({{"model_type", sees ? type.substr(0, type.rfind("_text")) : type},
                                     {"num_experts_per_tok", 2},
                                     {"n_routed_experts", 16},
                                     {"head_dim", 128},
                                     {"indexer_n_heads", 4},
                                     {"indexer_kv_heads", 1},
                                     {"indexer_head_dim", 128},
                                     {"indexer_budget", 8},
                                     {"indexer_compress_ratio", 4}});
    if (error_of(tree).find("is not described here") != std::string::npos) continue;
    const ParsedJson ours = reading->second(hyperparameters(tree)), theirs = ParsedJson::parse(value);
    if (theirs.is_string() || theirs.is_boolean())
      EXPECT_EQ(ours, theirs) << type << " " << key;
    else
      EXPECT_DOUBLE_EQ(ours.get<double>(), real(theirs)) << type << " " << key;
    ++compared[type];
  }
  EXPECT_EQ(compared.size(), 144U);
  for (const auto& [type, count] : compared)
    EXPECT_GE(count, type == "bloom" || type == "mpt" || type == "rwkv" || type == "xlstm" ? 1 : 2)
        << type;  // whose class reads hardly anything
}

// Deepseek V3's groups: configuration_deepseek_v3.py.
TEST(Hyperparameters, RoutingOfDeepseek) {
  const ExpertRouting third =
      hyperparameters(tree_of({{"architectures", {"DeepseekV3ForCausalLM"}}})).routing;
  EXPECT_EQ(third.method, ExpertRouting::Method::noaux_tc);
  EXPECT_EQ(third.groups, 8U);
  EXPECT_EQ(third.chosen_groups, 4U);
  const ExpertRouting second = hyperparameters(tree_of({{"architectures", {"DeepseekV2ForCausalLM"}},
                                                        {"num_experts_per_tok", 6},
                                                        {"topk_method", "group_limited_greedy"},
                                                        {"n_group", 8},
                                                        {"topk_group", 3}}))
                                   .routing;
  EXPECT_EQ(second.method, ExpertRouting::Method::group_limited_greedy);
  EXPECT_EQ(second.groups, 8U);
  EXPECT_EQ(second.chosen_groups, 3U);
}

// A token takes no more experts than the chosen groups have, whatever the family.
TEST(Hyperparameters, ChosenGroupsHaveTheExperts) {
  for (const char* architecture : {"DeepseekV3ForCausalLM", "Glm4MoeForCausalLM", "Dots1ForCausalLM",
                                   "SolarOpenForCausalLM", "MiMoV2FlashForCausalLM"}) {
    ParsedJson config = {
        {"architectures", {architecture}}, {"n_routed_experts", 8}, {"n_group", 4}, {"topk_group", 2},
        {"num_experts_per_tok", 4},        {"head_dim", 192}};
    EXPECT_EQ(error_of(tree_of(config)), "") << architecture;
    config["num_experts_per_tok"] = 5;
    EXPECT_NE(error_of(tree_of(config)).find("do not fit the number of experts"), std::string::npos)
        << architecture << ": " << error_of(tree_of(config));
  }
}

// Counts need no ε: what is wrong with it is told to who asks for it.
TEST(Hyperparameters, WrongOnesLeaveCountsAlone) {
  const ParsedJson good = {{"architectures", {"LlamaForCausalLM"}}};
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, ParsedJson>>{{"rms_norm_eps", "small"},
                                                       {"rope_theta", -1},
                                                       {"hidden_act", 3},
                                                       {"rope_scaling", {{"rope_type", "spiral"}}}}) {
    ParsedJson bad = good;
    bad[key] = value;
    EXPECT_EQ(count(tree_of(bad)).total, count(tree_of(good)).total);
    const std::string told = key == "rope_scaling" ? "spiral" : key;
    EXPECT_NE(error_of(tree_of(bad)).find(told), std::string::npos) << error_of(tree_of(bad));
  }
  EXPECT_EQ(error_of(tree_of(good)), "");
}

TEST(Hyperparameters, OfFamiliesNobodyRunsAreNotGuessed) {
  const ModuleTree tree = tree_of({{"architectures", {"Inkling2ForCausalLM"}}});
  EXPECT_NE(error_of(tree).find("Inkling 2"), std::string::npos) << error_of(tree);
}

TEST(Hyperparameters, KindsOfLayersMayRotateApart) {
  const Hyperparameters h = hyperparameters(tree_of({{"architectures", {"Gemma3ForCausalLM"}},
                                                     {"num_hidden_layers", 12},
                                                     {"rope_scaling", {{"type", "linear"}, {"factor", 8}}}}));
  ASSERT_EQ(h.ropes.size(), 2U);
  EXPECT_EQ(h.ropes[0].theta, 1e6);
  EXPECT_EQ(h.ropes[0].factor, 8);
  EXPECT_EQ(h.ropes[1].theta, 10000);
  EXPECT_EQ(h.ropes[1].type, RopeRule::Type::standard);
  for (std::size_t layer = 0; layer < 12; ++layer)
    EXPECT_EQ(h.rope_of.at(layer), layer % 6 == 5 ? 0U : 1U) << layer;
}

}  // namespace
}  // namespace assay
