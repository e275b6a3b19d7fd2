#include "core/model/families/gguf_back.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "core/model/families/gguf_back_parts.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_mirror.h"

namespace assay::families::back {
namespace {

// Names of what layers are, by a list that has a number above 0 where they attend.
void layer_types(const GgufSaid& said, ParsedJson& config, const char* attending, const char* others) {
  ParsedJson types = ParsedJson::array();
  double heads = 0;
  for (const double count : said.list("attention.head_count_kv")) {
    types.push_back(count > 0 ? attending : others);
    heads = std::max(heads, count);
  }
  if (types.empty()) return;
  config["layer_types"] = std::move(types);
  config["num_key_value_heads"] = static_cast<std::uint64_t>(heads);
}

// The first of the layers of which `is` holds, and how far the next is away; where there is none, behind all.
template <class Is>
void period(std::uint64_t layers, const Is& is, ParsedJson& config, const char* offset, const char* every) {
  std::vector<std::uint64_t> which;
  for (std::uint64_t i = 0; i < layers; ++i)
    if (is(i)) which.push_back(i);
  const std::uint64_t first = which.empty() ? layers : which[0];
  config[offset] = first;
  config[every] = which.size() < 2 ? std::max(layers, first + 1) : which[1] - which[0];
}

}  // namespace

// --- layers with states ---------------------------------------------------------------------------------------------

void mamba(const GgufSaid& said, ParsedJson& config) {
  config["intermediate_size"] = said.count("ssm.inner_size");
  config["state_size"] = said.count("ssm.state_size");
  config["time_step_rank"] = said.count("ssm.time_step_rank");
  config["conv_kernel"] = said.count("ssm.conv_kernel");
  rename(config, "rms_norm_eps", "layer_norm_epsilon");
  config["use_conv_bias"] = said.any_tensor("ssm_conv1d.bias");
  config["use_bias"] = said.any_tensor("ssm_in.bias");
  for (const char* key : {"num_attention_heads", "max_position_embeddings", "attention_bias"})
    config.erase(key);
  if (said.count("ssm.dt_b_c_rms") == 0) return;
  config["architectures"] = {"FalconMambaForCausalLM"};
  config["model_type"] = "falcon_mamba";
}

void mamba2(const GgufSaid& said, ParsedJson& config) {
  mamba(said, config);
  const std::uint64_t heads = std::max<std::uint64_t>(1, said.count("ssm.time_step_rank"));
  const std::uint64_t inner = said.count("ssm.inner_size");
  for (const char* key : {"time_step_rank", "intermediate_size"}) config.erase(key);
  config["num_heads"] = heads;
  config["head_dim"] = inner / heads;
  config["n_groups"] = said.count("ssm.group_count", 1);
  if (const std::uint64_t hidden = said.count("embedding_length"); hidden > 0)
    config["expand"] = inner / hidden;
}

namespace {
void mamba_within(const GgufSaid& said, ParsedJson& config) {
  config["mamba_d_conv"] = said.count("ssm.conv_kernel");
  config["mamba_d_state"] = said.count("ssm.state_size");
  config["mamba_conv_bias"] = said.any_tensor("ssm_conv1d.bias");
  config["mamba_proj_bias"] = said.any_tensor("ssm_in.bias");
  if (const std::uint64_t hidden = said.count("embedding_length"); hidden > 0)
    config["mamba_expand"] = said.count("ssm.inner_size") / hidden;
}
void mamba2_within(const GgufSaid& said, ParsedJson& config) {
  mamba_within(said, config);
  const std::uint64_t heads = std::max<std::uint64_t>(1, said.count("ssm.time_step_rank"));
  config["mamba_n_heads"] = heads;
  config["mamba_d_head"] = said.count("ssm.inner_size") / heads;
  config["mamba_n_groups"] = said.count("ssm.group_count", 1);
}
}  // namespace

void jamba(const GgufSaid& said, ParsedJson& config) {
  mamba_within(said, config);
  config["mamba_dt_rank"] = said.count("ssm.time_step_rank");
  rename(config, "layer_norm_epsilon", "rms_norm_eps");
  rename(config, "num_local_experts", "num_experts");
  const std::vector<double> heads = said.list("attention.head_count_kv");
  config["num_key_value_heads"] =
      heads.empty() ? 0 : static_cast<std::uint64_t>(*std::max_element(heads.begin(), heads.end()));
  period(
      heads.size(), [&](std::uint64_t i) { return heads[i] > 0; }, config, "attn_layer_offset",
      "attn_layer_period");
  period(
      said.layers(), [&](std::uint64_t i) { return is_sparse(said, i); }, config, "expert_layer_offset",
      "expert_layer_period");
}

void gated_delta(const GgufSaid& said, ParsedJson& config) {
  const std::uint64_t heads = std::max<std::uint64_t>(1, said.count("ssm.time_step_rank"));
  config["linear_value_head_dim"] = said.count("ssm.inner_size") / heads;
  if (const std::uint64_t every = said.count("full_attention_interval"); every != 0)
    config["full_attention_interval"] = every;
  ParsedJson types = ParsedJson::array();
  for (const double recurrent : said.list("attention.recurrent_layers"))
    types.push_back(recurrent != 0 ? "linear_attention" : "full_attention");
  if (!types.empty()) config["layer_types"] = std::move(types);
  if (!config.contains("partial_rotary_factor")) config["partial_rotary_factor"] = 1.0;  // the class has 0.25
}

namespace {
// Of the language model alone: the tower is another file.
void qwen3_5_text(const GgufSaid& said, ParsedJson& config, const char* of_class, const char* type) {
  gated_delta(said, config);
  config["architectures"] = {of_class};
  config["model_type"] = type;
  ParsedJson rope = {{"rope_type", "default"}};
  if (const auto scaling = config.find("rope_scaling"); scaling != config.end()) rope.update(*scaling);
  rename(config, "rope_theta", "of_rope");
  if (config.contains("of_rope")) rope["rope_theta"] = config["of_rope"];
  if (config.contains("partial_rotary_factor"))
    rope["partial_rotary_factor"] = config["partial_rotary_factor"];
  for (const char* key : {"of_rope", "partial_rotary_factor", "rope_scaling"}) config.erase(key);
  config["rope_parameters"] = std::move(rope);
}
}  // namespace
void qwen3_5(const GgufSaid& said, ParsedJson& config) {
  qwen3_5_text(said, config, "Qwen3_5ForCausalLM", "qwen3_5_text");
}
void qwen3_5_moe(const GgufSaid& said, ParsedJson& config) {
  qwen3_5_text(said, config, "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text");
}

void lfm2(const GgufSaid& said, ParsedJson& config) {
  layer_types(said, config, "full_attention", "conv");
  rename(config, "rms_norm_eps", "norm_eps");
  config["conv_bias"] = said.any_tensor("shortconv.conv.bias");
  config["block_auto_adjust_ff_dim"] = false;
  if (config.contains("num_experts")) config["use_expert_bias"] = said.any_tensor("exp_probs_b.bias");
}

void nemotron_h(const GgufSaid& said, ParsedJson& config) {
  // Its class scores by a sigmoid whatever a config says: without that a file that says otherwise is refused by the key.
  if (said.count("expert_gating_func") != kGgufSigmoidGating) config.erase("scoring_func");
  const std::vector<double> heads = said.list("attention.head_count_kv"),
                            widths = said.list("feed_forward_length");
  ParsedJson types = ParsedJson::array();
  for (std::size_t i = 0; i < std::min(heads.size(), widths.size()); ++i) {
    const bool experts = is_sparse(said, i);
    types.push_back(heads[i] > 0 ? "attention" : widths[i] == 0 ? "mamba" : experts ? "moe" : "mlp");
    if (heads[i] > 0) config["num_key_value_heads"] = static_cast<std::uint64_t>(heads[i]);
    if (widths[i] > 0 && !experts) config["intermediate_size"] = static_cast<std::uint64_t>(widths[i]);
  }
  config["layers_block_type"] = std::move(types);
  config["head_dim"] = said.count("attention.key_length");
  const std::uint64_t scans = std::max<std::uint64_t>(1, said.count("ssm.time_step_rank"));
  config["mamba_head_dim"] = said.count("ssm.inner_size") / scans;
  config["use_conv_bias"] = said.any_tensor("ssm_conv1d.bias");
  config["use_bias"] = said.any_tensor("ssm_in.bias");
  rename(config, "rms_norm_eps", "layer_norm_epsilon");
  rename(config, "num_experts", "n_routed_experts");
  for (const char* key : {"partial_rotary_factor", "max_position_embeddings"}) config.erase(key);
}

void granite_hybrid(const GgufSaid& said, ParsedJson& config) {
  layer_types(said, config, "attention", "mamba");
  if (said.has("ssm.conv_kernel")) mamba2_within(said, config);
  const std::uint64_t experts = said.count("expert_count");
  config["num_local_experts"] = experts;
  config.erase("num_experts");
  if (experts == 0) config["shared_intermediate_size"] = said.count("feed_forward_length");
  config["position_embedding_type"] = said.count("rope.scaling.finetuned") != 0 ? "rope" : "nope";
}
bool has_no_experts(const GgufSaid& said) {
  return said.count("expert_count") == 0;
}
// The same keys as those of a Granite of attention alone, but for this one.
bool is_granite4_attention(const GgufSaid& said) {
  return said.has("rope.scaling.finetuned") && said.has("ssm.conv_kernel");
}

// Its multipliers are in the weights: what is read back has none, and is the same function.
void falcon_h1(const GgufSaid& said, ParsedJson& config) {
  mamba2_within(said, config);
  config["mamba_d_ssm"] = said.count("ssm.inner_size");
  config["mamba_rms_norm"] = said.any_tensor("ssm_norm.weight");
  config["mamba_norm_before_gate"] = false;  // as llama.cpp computes it
  for (const char* one : {"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier",
                          "key_multiplier", "lm_head_multiplier", "ssm_in_multiplier", "ssm_out_multiplier"})
    config[one] = 1.0;
  config["mlp_multipliers"] = {1.0, 1.0};
  config["ssm_multipliers"] = {1.0, 1.0, 1.0, 1.0, 1.0};
}

void kimi_linear(const GgufSaid& said, ParsedJson& config) {
  ParsedJson attending = ParsedJson::array(), others = ParsedJson::array();
  const std::vector<double> heads = said.list("attention.head_count_kv");
  for (std::size_t i = 0; i < heads.size(); ++i) (heads[i] > 0 ? attending : others).push_back(i + 1);
  ParsedJson& linear = config["linear_attn_config"];
  linear["full_attn_layers"] = std::move(attending);
  linear["kda_layers"] = std::move(others);
  linear["num_heads"] = said.count("attention.head_count");
  rename(config, "num_experts_per_tok", "num_experts_per_token");
  rename(config, "scoring_func", "moe_router_activation_func");
  rename(config, "max_position_embeddings", "model_max_length");
  config["moe_renormalize"] = true;  // as llama.cpp computes it
  config["mla_use_nope"] = true;
  rename(config, "n_group", "num_expert_group");
  if (said.has("attention.value_length")) config["head_dim"] = said.count("attention.value_length");
}

// --- decoders -------------------------------------------------------------------------------------------------------

void afmoe(const GgufSaid& said, ParsedJson& config) {
  config["mup_enabled"] = true;
  rename(config, "scoring_func", "score_func");
  rename(config, "routed_scaling_factor", "route_scale");
  config["route_norm"] = said.count("expert_weights_norm", 1) != 0;
}

void apertus(const GgufSaid&, ParsedJson& config) {
  ParsedJson rope = {{"rope_type", "default"}};
  if (const auto scaling = config.find("rope_scaling"); scaling != config.end()) rope = *scaling;
  if (const auto theta = config.find("rope_theta"); theta != config.end()) rope["rope_theta"] = *theta;
  config.erase("rope_scaling");
  config.erase("rope_theta");
  config["rope_parameters"] = std::move(rope);
}

void bailing_v2(const GgufSaid& said, ParsedJson& config) {
  rename(config, "scoring_func", "score_function");
  config["use_qk_norm"] = said.any_tensor("attn_q_norm.weight");
  config["moe_router_enable_expert_bias"] = said.any_tensor("exp_probs_b.bias");
}

void cohere2_moe(const GgufSaid& said, ParsedJson& config) {
  config["prefix_dense_intermediate_size"] = said.count("feed_forward_length");
  keys_back::windowed_layers(said, config);
  config["first_k_dense_replace"] = said.count("leading_dense_block_count");
  config["norm_topk_prob"] = said.count("expert_weights_norm") != 0;
  rename(config, "scoring_func", "expert_selection_fn");
}

void falcon(const GgufSaid& said, ParsedJson& config) {
  const bool newer = said.any_tensor("attn_norm_2.weight");
  const std::uint64_t heads = said.count("attention.head_count_kv", 1);
  config["new_decoder_architecture"] = newer;
  config["num_kv_heads"] = heads;
  config["multi_query"] = newer || heads == 1;
  config["parallel_attn"] = true;
  config["alibi"] = false;
  config["bias"] = said.any_tensor("attn_qkv.bias");
  config.erase("num_key_value_heads");
}

void windows(const GgufSaid& said, ParsedJson& config) {
  keys_back::windowed_layers(said, config);
}
void exaone4(const GgufSaid& said, ParsedJson& config) {
  windows(said, config);
  if (!has_window(said)) config["sliding_window"] = nullptr;  // the class has one
}
void granite_swa(const GgufSaid& said, ParsedJson& config) {
  windows(said, config);
  rename(config, "num_experts", "num_local_experts");
  ParsedJson rotates = ParsedJson::array();
  for (const double one : said.list("attention.rope_pattern")) rotates.push_back(one != 0 ? 1 : 0);
  if (!rotates.empty()) config["no_rope_layers"] = std::move(rotates);
}
bool has_experts(const GgufSaid& said) {
  return said.count("expert_count") > 0;
}
bool has_shared_experts(const GgufSaid& said) {
  return said.any_tensor("ffn_down_shexp.weight");
}

bool has_window(const GgufSaid& said) {
  return said.count("attention.sliding_window") != 0;
}

void orion(const GgufSaid&, ParsedJson& config) {
  rename(config, "max_sequence_length", "max_position_embeddings");
}

void mellum(const GgufSaid& said, ParsedJson& config) {
  windows(said, config);
  rename(config, "num_experts", "num_local_experts");
  config["norm_topk_prob"] = true;  // as llama.cpp computes it
  ParsedJson full = {{"rope_type", "default"}}, sliding = full;
  if (const auto scaling = config.find("rope_scaling"); scaling != config.end()) full = *scaling;
  if (config.contains("rope_theta")) full["rope_theta"] = sliding["rope_theta"] = config["rope_theta"];
  if (config.contains("rope_local_base_freq")) sliding["rope_theta"] = config["rope_local_base_freq"];
  for (const char* key : {"rope_scaling", "rope_theta", "rope_local_base_freq"}) config.erase(key);
  config["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", sliding}};
}

void gemma2(const GgufSaid& said, ParsedJson& config) {
  const std::uint64_t heads = said.count("attention.head_count");
  const bool of_27b = said.layers() == 46 && heads > 0;  // where llama.cpp takes the shared width
  config["query_pre_attn_scalar"] =
      of_27b ? said.count("embedding_length") / heads : said.count("attention.key_length", 256);
  config["hidden_activation"] = "gelu_pytorch_tanh";
}
void gemma3(const GgufSaid& said, ParsedJson& config) {
  const std::uint64_t heads = said.count("attention.head_count");
  const bool of_27b = said.layers() == 62 && heads > 0;
  config["query_pre_attn_scalar"] =
      of_27b ? said.count("embedding_length") / heads : said.count("attention.key_length", 256);
  config["hidden_activation"] = "gelu_pytorch_tanh";
  config["model_type"] = "gemma3_text";
}

void gemma3n(const GgufSaid& said, ParsedJson& config) {
  config["architectures"] = {"Gemma3nForCausalLM"};
  config["model_type"] = "gemma3n_text";
  config["altup_active_idx"] = said.count("altup.active_idx");
  config["altup_num_inputs"] = said.count("altup.num_inputs");
  config["hidden_size_per_layer_input"] = said.count("embedding_length_per_layer_input");
  config["num_kv_shared_layers"] = said.count("attention.shared_kv_layers");
  config["intermediate_size"] = said.json("feed_forward_length");  // the class lists one a layer
  ParsedJson sparse = ParsedJson::array();
  for (const double scale : said.list("activation_sparsity_scale")) sparse.push_back(scale > 0 ? 0.95 : 0.0);
  if (!sparse.empty()) config["activation_sparsity_pattern"] = std::move(sparse);
  keys_back::windowed_layers(said, config);
  if (const auto left = said.shape("blk.0.laurel_l.weight"); left.size() == 2)
    config["laurel_rank"] = left[0];
  if (const auto rows = said.shape("per_layer_token_embd.weight"); rows.size() == 2)
    config["vocab_size_per_layer_input"] = rows[0];
}

void gemma4(const GgufSaid& said, ParsedJson& config) {
  config["architectures"] = {"Gemma4ForCausalLM"};
  config["model_type"] = "gemma4_text";
  keys_back::windowed_layers(said, config);
  const std::vector<double> windowed = said.list("attention.sliding_window_pattern"),
                            heads = said.list("attention.head_count_kv"),
                            widths = said.list("feed_forward_length");
  const std::uint64_t width = said.count("attention.key_length");
  config["global_head_dim"] = width;
  config["head_dim"] = said.count("attention.key_length_swa");
  config["num_kv_shared_layers"] = said.count("attention.shared_kv_layers");
  config["hidden_size_per_layer_input"] = said.count("embedding_length_per_layer_input");
  config["attention_k_eq_v"] = false;
  const std::uint64_t own = said.layers() - std::min(said.layers(), said.count("attention.shared_kv_layers"));
  for (std::size_t i = 0; i < std::min({windowed.size(), heads.size(), static_cast<std::size_t>(own)}); ++i) {
    if (windowed[i] != 0) {
      config["num_key_value_heads"] = static_cast<std::uint64_t>(heads[i]);
    } else if (!said.has_tensor(in_layer(i, "attn_v.weight"))) {
      config["attention_k_eq_v"] = true;
      config["num_global_key_value_heads"] = static_cast<std::uint64_t>(heads[i]);
    }
  }
  if (!widths.empty()) {
    config["intermediate_size"] = static_cast<std::uint64_t>(widths.front());
    config["use_double_wide_mlp"] = widths.back() != widths.front();
  }
  if (said.count("expert_count") > 0) {
    config["enable_moe_block"] = true;
    rename(config, "expert_intermediate_size", "moe_intermediate_size");
    rename(config, "num_experts_per_tok", "top_k_experts");
  }
  if (const auto rows = said.shape("per_layer_token_embd.weight"); rows.size() == 2)
    config["vocab_size_per_layer_input"] = rows[0];
  // Of a head that sees everything the pairs rotate whose factors are 1, and the others stand still.
  const std::vector<float> factors = said.values("rope_freqs.weight");
  const auto turning =
      std::count_if(factors.begin(), factors.end(), [](float factor) { return factor == 1; });
  const double part = width == 0 ? 0.25 : 2.0 * static_cast<double>(turning) / static_cast<double>(width);
  ParsedJson& rope = config["rope_parameters"];
  rope["full_attention"] = {{"rope_type", "proportional"}, {"partial_rotary_factor", part}};
  rope["sliding_attention"] = {{"rope_type", "default"}};
  if (config.contains("rope_theta")) rope["full_attention"]["rope_theta"] = config["rope_theta"];
  if (config.contains("rope_local_base_freq"))
    rope["sliding_attention"]["rope_theta"] = config["rope_local_base_freq"];
  for (const char* key : {"rope_theta", "rope_local_base_freq", "partial_rotary_factor"}) config.erase(key);
  config["hidden_activation"] = "gelu_pytorch_tanh";
}

void hunyuan_moe(const GgufSaid& said, ParsedJson& config) {
  config["moe_topk"] = said.count("expert_used_count");
  config["num_shared_expert"] = said.count("expert_shared_count");
  config["use_mixed_mlp_moe"] = said.count("expert_shared_count") > 0;
  config["use_qk_norm"] = said.any_tensor("attn_q_norm.weight");
  config.erase("num_experts_per_tok");
}

void internlm2(const GgufSaid& said, ParsedJson& config) {
  config["bias"] = said.any_tensor("attn_q.bias");
}

void local_experts(const GgufSaid&, ParsedJson& config) {
  rename(config, "num_experts", "num_local_experts");
}

// Its frequencies are not rounded to whole dimensions, which no key says, and transformers' YaRN does where unsaid.
void gpt_oss(const GgufSaid& said, ParsedJson& config) {
  local_experts(said, config);
  if (const auto scaling = config.find("rope_scaling"); scaling != config.end())
    (*scaling)["truncate"] = false;
}

void llama4(const GgufSaid& said, ParsedJson& config) {
  rename(config, "num_experts", "num_local_experts");
  config.erase("sliding_window");
  if (!said.has("attention.sliding_window") || has_window(said)) return;
  config["layer_types"] = ParsedJson::array();  // no layer sees chunks
  for (std::uint64_t i = 0; i < said.layers(); ++i) config["layer_types"].push_back("full_attention");
}

void ernie_moe(const GgufSaid&, ParsedJson& config) {
  rename(config, "num_experts_per_tok", "moe_k");
}

void minicpm(const GgufSaid& said, ParsedJson& config) {
  const double layers = static_cast<double>(said.layers()),
               hidden = static_cast<double>(said.count("embedding_length"));
  config["scale_depth"] = shortest_decimal(said.number("residual_scale").value_or(1) * std::sqrt(layers));
  const double divisor = said.number("logit_scale").value_or(1);
  config["dim_model_base"] =
      static_cast<std::uint64_t>(std::nearbyint(divisor > 0 ? hidden / divisor : hidden));
  config.erase("num_experts");
}

void nanbeige(const GgufSaid& said, ParsedJson& config) {
  config["num_loops"] = said.count("num_loops", 1);
  config["skip_loop_final_norm"] = said.count("skip_loop_final_norm") != 0;
}

void phi3(const GgufSaid& said, ParsedJson& config) {
  if (said.has("rope.scaling.original_context_length"))
    config["original_max_position_embeddings"] = said.count("rope.scaling.original_context_length");
  if (said.count("attention.sliding_window") == 0) config["sliding_window"] = nullptr;
  rename(config, "num_experts", "num_local_experts");
  if (said.has_tensor("output.bias")) config["lm_head_bias"] = true;
}

void stablelm(const GgufSaid& said, ParsedJson& config) {
  config["use_parallel_residual"] = said.count("use_parallel_residual", 1) != 0;
  config["use_qkv_bias"] = said.any_tensor("attn_q.bias");
  rename(config, "layer_norm_epsilon", "layer_norm_eps");
}

void ministral(const GgufSaid& said, ParsedJson& config) {
  const auto found = config.find("rope_scaling");
  config["model_type"] = "mistral";  // of Mistral Small 3.1's text
  if (found == config.end() || !said.has("attention.temperature_scale")) return;
  config["model_type"] = "ministral3";
  config["architectures"] = {"Ministral3ForCausalLM"};
  ParsedJson rope = *found;
  rope["mscale"] = rope["mscale_all_dim"] =
      shortest_decimal(said.number("rope.scaling.yarn_log_multiplier").value_or(0));
  rope["llama_4_scaling_beta"] = said.json("attention.temperature_scale");
  if (config.contains("rope_theta")) rope["rope_theta"] = config["rope_theta"];
  config.erase("rope_scaling");
  config["rope_parameters"] = std::move(rope);
}

void mistral4(const GgufSaid& said, ParsedJson& config) {
  if (!said.has("attention.temperature_scale")) return;
  ParsedJson& rope = config["rope_scaling"];
  rope["llama_4_scaling_beta"] = said.json("attention.temperature_scale");
  if (said.has("attention.temperature_length"))
    rope["original_max_position_embeddings"] = said.count("attention.temperature_length");
  if (!rope.contains("rope_type")) rope["rope_type"] = "default";
}

// Classes whose linear layers all have biases or none, by one key.
void untied_bias(const GgufSaid& said, ParsedJson& config) {
  config["use_bias"] = said.any_tensor("attn_q.bias") || said.any_tensor("ffn_down.bias");
}

void glm(const GgufSaid& said, ParsedJson& config) {
  config["use_qk_norm"] = said.any_tensor("attn_q_norm.weight");
  rename(config, "num_experts", "n_routed_experts");
}

void deepseek_sparse(const GgufSaid& said, ParsedJson& config) {
  config["first_k_dense_replace"] = said.count("leading_dense_block_count");
  config["topk_method"] = said.any_tensor("exp_probs_b.bias") ? "noaux_tc" : "greedy";
  ParsedJson types = ParsedJson::array();
  for (const double full : said.list("attention.indexer.types"))
    types.push_back(full != 0 ? "full" : "shared");
  if (!types.empty()) config["indexer_types"] = std::move(types);
}

void chatglm(const GgufSaid& said, ParsedJson& config) {
  rename(config, "intermediate_size", "ffn_hidden_size");
  const std::uint64_t heads = said.count("attention.head_count");
  if (heads > 0) config["kv_channels"] = said.count("embedding_length") / heads;
  config["multi_query_attention"] = true;
  config["multi_query_group_num"] = said.count("attention.head_count_kv");
  config["rope_ratio"] = said.number("rope.freq_base").value_or(10000) / 10000;
  config["add_qkv_bias"] = said.any_tensor("attn_qkv.bias");
  config["seq_length"] = said.count("context_length");
  config["layernorm_epsilon"] = said.json("attention.layer_norm_rms_epsilon");
  config["padded_vocab_size"] = config["vocab_size"];
  config["rmsnorm"] = true;
  config["post_layer_norm"] = true;
  for (const char* key : {"rope_theta", "num_key_value_heads", "rms_norm_eps", "max_position_embeddings"})
    config.erase(key);
}

void mpt(const GgufSaid& said, ParsedJson& config) {
  rename(config, "hidden_size", "d_model");
  rename(config, "num_hidden_layers", "n_layers");
  rename(config, "num_attention_heads", "n_heads");
  ParsedJson& attention = config["attn_config"];
  const double alibi = said.number("attention.max_alibi_bias").value_or(0);
  attention["alibi"] = alibi != 0;
  if (alibi != 0) attention["alibi_bias_max"] = shortest_decimal(alibi);
  config["no_bias"] = !said.any_tensor("attn_qkv.bias");
  if (const std::uint64_t hidden = said.count("embedding_length"); hidden > 0)
    config["expansion_ratio"] = said.count("feed_forward_length") / hidden;
  for (const char* key : {"intermediate_size", "num_key_value_heads", "max_position_embeddings"})
    config.erase(key);
}

void dots1(const GgufSaid& said, ParsedJson& config) {
  rename(config, "num_experts", "n_routed_experts");
  config["scoring_func"] = said.count("expert_gating_func") == 1 ? "softmax" : "sigmoid";
}

void gpt2(const GgufSaid&, ParsedJson& config) {
  config["n_positions"] = config["n_ctx"];
}

}  // namespace assay::families::back
