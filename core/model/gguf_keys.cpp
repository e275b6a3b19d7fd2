#include "core/model/gguf_keys.h"

#include <algorithm>

namespace assay {
namespace {

using Fate = GgufKeyFate;
using Reading = GgufKey::Reading;
using Writing = GgufKey::Writing;
using Of = GgufKey::Of;

constexpr GgufKey size(std::string_view key, std::string_view config, Writing writing = Writing::none,
                       Of of = Of::every) {
  return {
      .key = key, .config = config, .by_tree = true, .reading = Reading::whole, .writing = writing, .of = of};
}
constexpr GgufKey value(std::string_view key, std::string_view config, Writing writing = Writing::none) {
  return {.key = key, .config = config, .reading = Reading::value, .writing = writing};
}
// Of no family here, or of those that use its name of config.json.
constexpr GgufKey scale(std::string_view key, std::array<double, 3> neutral, std::string_view config = {},
                        Reading reading = Reading::none) {
  return {
      .key = key, .config = config, .fate = Fate::changes_numbers, .neutral = neutral, .reading = reading};
}
constexpr GgufKey judged(std::string_view key, std::string_view config, Reading reading = Reading::none) {
  return {.key = key, .config = config, .fate = Fate::changes_numbers, .judged = true, .reading = reading};
}
constexpr GgufKey idle(std::string_view key) {
  return {.key = key, .fate = Fate::idle};
}
constexpr GgufKey written(GgufKey key, Writing writing, Of of = Of::every, double factor = 1) {
  key.writing = writing;
  key.of = of;
  key.factor = factor;
  return key;
}
constexpr GgufKey and_of_latent(GgufKey key) {
  key.of_latent_too = true;
  return key;
}
// Written in place of what the row above it says, or of keys that have no name of their own.
constexpr GgufKey instead(std::string_view key, std::string_view config, Of of) {
  return {.key = key, .config = config, .by_tree = true, .writing = Writing::u32, .of = of};
}

constexpr std::array<double, 3> kZero = {0, 0, 0}, kOne = {0, 1, 1};

// Those that are written come first, in the order of llama.cpp's converter (conversion/base.py,
// TextModel.set_gguf_parameters, and the model classes). Names of config.json that it has not are made in
// gguf_hyperparameters.cpp.
constexpr GgufKey kTable[] = {
    size("block_count", "num_hidden_layers", Writing::u32),
    size("context_length", "max_position_embeddings", Writing::u32),
    size("embedding_length", "hidden_size", Writing::u32),
    size("feed_forward_length", "intermediate_size", Writing::u32),
    size("attention.head_count", "num_attention_heads", Writing::u32),
    size("attention.head_count_kv", "num_key_value_heads", Writing::u32),
    value("rope.scaling.type", "rope_scaling.rope_type", Writing::text),
    value("rope.scaling.factor", "rope_scaling.factor", Writing::f32),
    value("rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings",
          Writing::u32),
    written(scale("rope.scaling.yarn_ext_factor", {-1, 1, 1}, "rope_scaling.extrapolation_factor"),
            Writing::f32),
    written(scale("rope.scaling.yarn_attn_factor", {1, 1, 1}, "rope_scaling.attention_factor"), Writing::f32),
    value("rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast", Writing::f32),
    value("rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow", Writing::f32),
    value("rope.freq_base", "rope_theta", Writing::f32),
    value("attention.layer_norm_rms_epsilon", "rms_norm_eps", Writing::f32),
    size("expert_count", "num_local_experts", Writing::u32),
    size("expert_used_count", "num_experts_per_tok", Writing::u32),
    written(scale("expert_group_count", kOne, "n_group", Reading::value), Writing::u32),
    written(scale("expert_group_used_count", kOne, "topk_group", Reading::value), Writing::u32),
    written(judged("expert_gating_func", "gating_of_scoring_func"), Writing::u32),
    size("attention.key_length", "head_dim", Writing::u32),
    instead("attention.value_length", "head_dim", Of::every),
    // general.file_type stands here.
    written(scale("leading_dense_block_count", kZero, "first_k_dense_replace", Reading::whole), Writing::u32,
            Of::latent),
    and_of_latent(size("vocab_size", "vocab_size", Writing::u32, Of::widths)),
    size("attention.q_lora_rank", "q_lora_rank", Writing::u32, Of::latent),
    size("attention.kv_lora_rank", "kv_lora_rank", Writing::u32, Of::latent),
    instead("attention.key_length", "latent_width", Of::latent),
    instead("attention.value_length", "kv_lora_rank", Of::latent),
    instead("attention.key_length_mla", "qk_head_dim", Of::latent),
    instead("attention.value_length_mla", "v_head_dim", Of::latent),
    and_of_latent(
        size("expert_feed_forward_length", "moe_intermediate_size", Writing::u32, Of::expert_width)),
    written(scale("expert_shared_count", kZero, "n_shared_experts", Reading::whole), Writing::u32,
            Of::latent),
    written(scale("expert_weights_scale", kOne, "routed_scaling_factor", Reading::value), Writing::f32,
            Of::latent),
    written(judged("expert_weights_norm", "norm_topk_prob", Reading::value), Writing::flag, Of::latent),
    and_of_latent(written(judged("rope.dimension_count", "rotary_width"), Writing::u32, Of::widths)),
    // llama.cpp scales the scores by its square and leaves cos and sin alone, which is what equal mscales mean.
    written(judged("rope.scaling.yarn_log_multiplier", "rope_scaling.mscale_all_dim"), Writing::f32,
            Of::latent, 0.1),

    size("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
    size("nextn_predict_layers", "num_nextn_predict_layers"),
    {.key = "attention.sliding_window", .config = "sliding_window", .reading = Reading::whole},
    value("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    scale("interleave_moe_layer_step", kOne, "interleave_moe_layer_step", Reading::whole),
    scale("attention.indexer.head_count", kZero, "index_n_heads", Reading::whole),
    scale("attention.indexer.key_length", kZero, "index_head_dim", Reading::whole),
    scale("attention.indexer.top_k", kZero, "index_topk", Reading::whole),
    scale("attn_logit_softcapping", kZero, "attn_logit_softcapping", Reading::value),
    scale("final_logit_softcapping", kZero, "final_logit_softcapping", Reading::value),
    scale("rope.freq_base_swa", kZero, "rope_local_base_freq", Reading::value),
    judged("rope.scaling.attn_factor", ""),

    // Of architectures that are not computed here.
    scale("router_logit_softcapping", kZero),
    scale("logit_scale", kOne),
    scale("residual_scale", kOne),
    scale("embedding_scale", kOne),
    scale("attention.scale", kZero),
    scale("attention.output_scale", kOne),
    scale("attention.value_scale", kOne),
    scale("attention.temperature_scale", kZero),
    scale("attention.clamp_kqv", kZero),
    scale("attention.max_alibi_bias", kZero),
    scale("attention.causal", {1, 1, 1}),
    scale("attention.shared_kv_layers", kZero),
    scale("attention.sliding_window_pattern", kZero),
    scale("attention.key_length_swa", kZero),
    scale("attention.value_length_swa", kZero),
    scale("attention.relative_buckets_count", kZero),
    scale("attention.group_norm_groups", kZero),
    scale("attention.decay_lora_rank", kZero),
    scale("attention.iclr_lora_rank", kZero),
    scale("attention.value_residual_mix_lora_rank", kZero),
    scale("attention.gate_lora_rank", kZero),
    scale("use_parallel_residual", kZero),
    scale("swin_norm", kZero),
    scale("rescale_every_n_layers", kZero),
    scale("token_shift_count", kZero),
    scale("time_mix_extra_dim", kZero),
    scale("time_decay_extra_dim", kZero),
    scale("full_attention_interval", kOne),
    scale("activation_sparsity_scale", kZero),
    scale("embedding_length_per_layer_input", kZero),
    scale("swiglu_clamp_exp", kZero),
    scale("swiglu_clamp_shexp", kZero),
    scale("n_deepstack_layers", kZero),
    scale("moe_every_n_layers", kOne),
    scale("moe_latent_size", kZero),
    scale("expert_chunk_feed_forward_length", kZero),
    scale("expert_group_scale", kOne),
    scale("experts_per_group", kOne),
    scale("rope.dimension_count_swa", kZero),
    scale("rope.dimension_sections", kZero),
    scale("rope.scale_linear", kOne),
    scale("rope.scaling.alpha", kOne),

    // Training, tokens, pooling and classes of other heads; lengths that go with a key above.
    idle("tensor_data_layout"),
    idle("rope.scaling.finetuned"),
    idle("pooling_type"),
    idle("decoder_start_token_id"),
    idle("decoder_block_count"),
    idle("classifier.output_labels"),
    idle("features_length"),
    idle("embedding_length_out"),
    idle("attention.temperature_length"),
    idle("attention.group_norm_epsilon"),
};

// What other kinds of layers are made of.
constexpr std::string_view kOtherLayers[] = {"ssm.",      "wkv.",   "kda.",   "shortconv.",
                                             "convnext.", "altup.", "posnet."};

}  // namespace

std::span<const GgufKey> gguf_key_table() {
  return kTable;
}

const GgufKey* find_gguf_key(std::string_view key) {
  const auto it =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const GgufKey& k) { return k.key == key; });
  return it == std::end(kTable) ? nullptr : &*it;
}

bool is_of_other_layers(std::string_view key) {
  const auto begins = [&](std::string_view prefix) { return key.starts_with(prefix); };
  return std::any_of(std::begin(kOtherLayers), std::end(kOtherLayers), begins) || key.ends_with("_feat_in") ||
         key.ends_with("_feat_out");
}

GgufKeyFate fate_of_gguf_key(std::string_view key) {
  if (const GgufKey* known = find_gguf_key(key)) return known->fate;
  return is_of_other_layers(key) ? GgufKeyFate::changes_numbers : GgufKeyFate::unknown;
}

}  // namespace assay
