// Ways back (gguf_back.h) of architectures of 2026, and of those whose heads or widths are lists.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf_back.h"
#include "core/model/families/gguf_back_parts.h"
#include "core/model/gguf_mirror.h"

namespace assay::families::back {
namespace {

std::uint64_t at(const std::vector<double>& list, std::uint64_t i) {
  return i < list.size() ? static_cast<std::uint64_t>(list[i]) : 0;
}

ParsedJson numbers_of(const std::vector<double>& list) {
  ParsedJson numbers = ParsedJson::array();
  for (const double number : list) numbers.push_back(shortest_decimal(number));
  return numbers;
}

// What rotates of heads without windows, and of those with: {"rope_type", "rope_theta", "partial_rotary_factor"}.
void take_ropes(const GgufSaid& said, ParsedJson& config) {
  const double width = static_cast<double>(std::max<std::uint64_t>(1, said.count("attention.key_length")));
  const auto rope_of = [&](ParsedJson rope, const char* base, const char* rotating) {
    if (!rope.contains("rope_type")) rope["rope_type"] = "default";
    rope["rope_theta"] = said.json(base);
    if (const std::uint64_t count = said.count(rotating); count > 0)
      rope["partial_rotary_factor"] = static_cast<double>(count) / width;
    return rope;
  };
  const auto scaling = config.find("rope_scaling");
  ParsedJson ropes;
  ropes["full_attention"] = rope_of(scaling == config.end() ? ParsedJson::object() : *scaling,
                                    "rope.freq_base", "rope.dimension_count");
  if (said.has("rope.freq_base_swa"))
    ropes["sliding_attention"] =
        rope_of(ParsedJson::object(), "rope.freq_base_swa", "rope.dimension_count_swa");
  config["rope_parameters"] = std::move(ropes);
  for (const char* key : {"rope_scaling", "partial_rotary_factor", "rope_theta", "rope_local_base_freq"})
    config.erase(key);
}

void take_indexers(const GgufSaid& said, ParsedJson& config) {
  const std::vector<double> types = said.list("attention.indexer.types");
  if (!types.empty()) config["indexer_types"] = by_layer(said, holds_in(types), "full", "shared");
}

void take_sparse_layers(const GgufSaid& said, ParsedJson& config) {
  config["mlp_layer_types"] = by_layer(
      said, [&](std::uint64_t i) { return is_sparse(said, i); }, "sparse", "dense");
}

}  // namespace

void mimo(const GgufSaid& said, ParsedJson& config) {
  const std::vector<double> windowed = said.list("attention.sliding_window_pattern"),
                            heads = said.list("attention.head_count_kv");
  ParsedJson& pattern = config["hybrid_layer_pattern"] = ParsedJson::array();
  ParsedJson& sparse = config["moe_layer_freq"] = ParsedJson::array();
  for (std::size_t i = 0; i < std::min(windowed.size(), heads.size()); ++i) {
    pattern.push_back(windowed[i] != 0 ? 1 : 0);
    sparse.push_back(is_sparse(said, i) ? 1 : 0);
    config[windowed[i] != 0 ? "swa_num_key_value_heads" : "num_key_value_heads"] =
        static_cast<std::uint64_t>(heads[i]);
    if (said.has_tensor(in_layer(i, "attn_sinks.weight")))
      config[windowed[i] != 0 ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias"] = true;
  }
  config["swa_num_attention_heads"] = said.count("attention.head_count");
  config["swa_head_dim"] = said.count("attention.key_length");
  config["v_head_dim"] = config["swa_v_head_dim"] = said.count("attention.value_length");
  config["sliding_window"] = said.count("attention.sliding_window");
  if (said.has("rope.freq_base_swa")) config["swa_rope_theta"] = said.json("rope.freq_base_swa");
  config.erase("rope_local_base_freq");
  rename(config, "rms_norm_eps", "layernorm_epsilon");
  rename(config, "num_experts", "n_routed_experts");
  config["topk_method"] = "noaux_tc";
  config["norm_topk_prob"] = true;  // as llama.cpp computes it
}

void minimax_m3(const GgufSaid& said, ParsedJson& config) {
  config["dense_intermediate_size"] = said.count("feed_forward_length");
  config["shared_intermediate_size"] = config["intermediate_size"];
  rename(config, "num_experts", "num_local_experts");
  ParsedJson& sparse = config["moe_layer_freq"] = ParsedJson::array();
  ParsedJson& indexed = config["sparse_attention_config"]["sparse_attention_freq"] = ParsedJson::array();
  for (std::uint64_t i = 0; i < said.layers(); ++i) {
    sparse.push_back(is_sparse(said, i) ? 1 : 0);
    indexed.push_back(said.has_tensor(in_layer(i, "indexer.q_proj.weight")) ? 1 : 0);
  }
  config["sparse_attention_config"]["use_sparse_attention"] = true;
  config["use_qk_norm"] = config["use_routing_bias"] = true;
  config["qk_norm_type"] = "per_head";
  config["hidden_act"] = "swigluoai";
}

// Queries are normed without a weight: what a file has for one is the number that they are multiplied by.
void muse(const GgufSaid& said, ParsedJson& config) {
  keys_back::windowed_layers(said, config);
  const std::vector<float> scale = said.values("blk.0.attn_q_norm.weight");
  if (!scale.empty()) config["qk_scale_factor"] = shortest_decimal(static_cast<double>(scale.front()));
}

// llama.cpp's loader knows which layers have windows: of four the first has none.
void laguna(const GgufSaid& said, ParsedJson& config) {
  const bool narrow = said.count("attention.sliding_window") > 0;
  const std::vector<double> heads = said.list("attention.head_count");
  config["layer_types"] = by_layer(
      said, [&](std::uint64_t i) { return narrow && i % 4 != 0; }, "sliding_attention", "full_attention");
  config["num_attention_heads_per_layer"] = numbers_of(heads);
  config["num_attention_heads"] = at(heads, 0);
  if (!narrow) config["sliding_window"] = nullptr;
  const auto gate = said.shape("blk.0.attn_gate.weight");
  config["gating"] = !gate.empty() && gate[0] != at(heads, 0) ? "per-element" : "per-head";
  take_sparse_layers(said, config);
  take_ropes(said, config);
  for (const char* key : {"scoring_func", "norm_topk_prob"}) config.erase(key);
}

// Half of a head rotates where all is seen, and all of it in windows, as llama.cpp's loader has it.
void step3p5(const GgufSaid& said, ParsedJson& config) {
  const auto windowed = holds_in(said.list("attention.sliding_window_pattern"));
  const std::vector<double> heads = said.list("attention.head_count"),
                            key_heads = said.list("attention.head_count_kv");
  config["layer_types"] = by_layer(said, windowed, "sliding_attention", "full_attention");
  ParsedJson thetas = ParsedJson::array(), parts = ParsedJson::array();
  ParsedJson other = {{"attention_type", "sliding_attention"},
                      {"head_dim", said.count("attention.key_length")}};
  std::string sparse;
  for (std::uint64_t i = 0; i < said.layers(); ++i) {
    const bool narrow = windowed(i) && said.has("rope.freq_base_swa");
    thetas.push_back(said.json(narrow ? "rope.freq_base_swa" : "rope.freq_base"));
    parts.push_back(windowed(i) ? 1.0 : 0.5);
    ParsedJson& kind = windowed(i) ? other : config;
    kind["num_attention_heads"] = at(heads, i);
    kind["num_attention_groups"] = at(key_heads, i);
    if (is_sparse(said, i)) sparse += (sparse.empty() ? "" : ",") + std::to_string(i);
  }
  config["rope_theta"] = std::move(thetas);
  config["partial_rotary_factors"] = std::move(parts);
  config["attention_other_setting"] = std::move(other);
  config["moe_layers_enum"] = sparse;
  config["moe_every_n_layer"] = said.count("moe_every_n_layers", 1);
  config["moe_router_activation"] = "sigmoid";
  config["use_moe_router_bias"] = said.any_tensor("exp_probs_b.bias");
  for (const auto& [key, name] :
       {std::pair{"swiglu_clamp_exp", "swiglu_limits"}, {"swiglu_clamp_shexp", "swiglu_limits_shared"}})
    if (said.has(key)) config[name] = numbers_of(said.list(key));
  // Of the frequencies' factors those of the rotating half.
  const std::vector<float> factors = said.values("rope_freqs.weight");
  const auto base = static_cast<float>(said.number("rope.freq_base").value_or(10000));
  const auto found =
      factors.empty() ? std::nullopt : llama3_rope_of(std::span(factors).first(factors.size() / 2), base);
  if (found) config["rope_scaling"] = llama3_scaling(*found);
  for (const char* key :
       {"scoring_func", "partial_rotary_factor", "rope_local_base_freq", "num_key_value_heads"})
    config.erase(key);
}

void nemotron_nas(const GgufSaid& said, ParsedJson& config) {
  const std::vector<double> heads = said.list("attention.head_count"),
                            key_heads = said.list("attention.head_count_kv"),
                            widths = said.list("feed_forward_length");
  ParsedJson& blocks = config["block_configs"] = ParsedJson::array();
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < said.layers(); ++i) {
    const std::uint64_t all = at(heads, i), shared = at(key_heads, i), width = at(widths, i);
    ParsedJson attention = {{"n_heads_in_group", shared == 0 ? ParsedJson() : ParsedJson(all / shared)},
                            {"no_op", all == 0},
                            {"replace_with_linear", all > 0 && shared == 0}};
    ParsedJson mlp = {{"intermediate_size", width == 0 ? ParsedJson() : ParsedJson(width)},
                      {"no_op", width == 0},
                      {"replace_with_linear", false}};
    blocks.push_back({{"attention", std::move(attention)}, {"ffn", std::move(mlp)}});
    most = std::max(most, all);
  }
  config["num_attention_heads"] = most;
  config["model_type"] = "nemotron-nas";
  for (const char* key : {"num_key_value_heads", "intermediate_size", "head_dim"}) config.erase(key);
}

void minimax_01(const GgufSaid& said, ParsedJson& config) {
  ParsedJson& types = config["attn_type_list"] = ParsedJson::array();
  for (std::uint64_t i = 0; i < said.layers(); ++i)
    types.push_back(said.has_tensor(in_layer(i, "attn_qkv.weight")) ? 0 : 1);
  for (const char* of : {"full_attention", "linear_attention", "mlp"}) {
    config[std::string("layernorm_") + of + "_alpha"] = said.json("residual_scale");
    config[std::string("layernorm_") + of + "_beta"] = 1.0;
  }
  config["postnorm"] = true;
  config["model_type"] = "minimax_text_01";
  for (const char* key : {"partial_rotary_factor", "scoring_func"}) config.erase(key);
}

void deepseek_v4(const GgufSaid& said, ParsedJson& config) {
  config["topk_method"] = "noaux_tc";
  limit(said, config, "swiglu_clamp_exp", "swiglu_limit");
  config.erase("partial_rotary_factor");
}

void hy_v4(const GgufSaid& said, ParsedJson& config) {
  config["hidden_act"] = "silu";
  take_sparse_layers(said, config);
  take_indexers(said, config);
  limit(said, config, "swiglu_clamp_exp", "swiglu_limit");
  config.erase("scoring_func");
}

void glm5_next(const GgufSaid& said, ParsedJson& config) {
  config["layer_types"] =
      by_layer(said, holds_in(said.list("attention.head_count_kv")), "full_attention", "linear_attention");
  config["linear_attn_config"]["num_heads"] = said.count("attention.head_count");
  config["mla_use_nope"] = true;
  config["hidden_act"] = "silu";
  take_sparse_layers(said, config);
  take_indexers(said, config);
  limit(said, config, "swiglu_clamp_exp", "swiglu_limit");
  for (const char* key : {"scoring_func", "layer_norm_eps", "layer_norm_epsilon"}) config.erase(key);
}

// Of so many layers the last attends, and those behind the last whole group.
void bailing_v3(const GgufSaid& said, ParsedJson& config) {
  const std::vector<double> attending = said.list("attention.head_count_kv");
  const auto first = std::find_if(attending.begin(), attending.end(), [](double n) { return n > 0; });
  config["layer_group_size"] = static_cast<std::uint64_t>(first - attending.begin()) + 1;
  const auto gate =
      said.shape(in_layer(static_cast<std::uint64_t>(first - attending.begin()), "attn_gate.weight"));
  if (!gate.empty() && gate[0] == said.count("attention.head_count"))
    config["gated_attention_proj_granularity_type"] = "head_wise";
  config["head_dim"] = said.count("kda.head_dim");
  config["no_kda_lora"] = !said.any_tensor("ssm_f_b.weight");
  config["moe_router_enable_expert_bias"] = said.any_tensor("exp_probs_b.bias");
  config["use_qk_norm"] = true;
  config["rope_interleave"] = true;
  config["topk_method"] = "noaux_tc";
  rename(config, "scoring_func", "score_function");
  config["num_shared_experts"] = said.count("expert_shared_count");
  for (const auto& [key, name] : {std::pair{"swiglu_clamp_exp", "expert_swiglu_limit_list"},
                                  {"swiglu_clamp_shexp", "share_expert_swiglu_limit_list"}})
    if (said.has(key)) config[name] = numbers_of(said.list(key));
  config.erase("partial_rotary_factor");
}

}  // namespace assay::families::back
