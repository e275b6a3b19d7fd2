// How llama.cpp keeps mixtures whose attention is a Llama's (conversion/hunyuan.py, exaone.py, glm.py): HY3, Hunyuan-A13B,
// K-EXAONE, Solar Open. What a config is silent of is said as its class has it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_own_keys.h"

namespace assay::families {
namespace mixtures_2026_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;

ParsedJson routed_scale(const GgufFacts& facts) {
  return hyperparameters(facts.tree).routing.scale;
}
ParsedJson renormalized(const GgufFacts& facts) {
  return hyperparameters(facts.tree).routing.renormalize;
}
// Rows of the gates of that kind; 0: there are none.
std::uint64_t width_of(const GgufFacts& facts, Part part) {
  std::uint64_t width = 0;
  for_each_spec(facts.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.main() && spec.role == Role::mlp_gate && spec.part == part && !spec.bias)
      width = spec.shape.front();
  });
  return width;
}
ParsedJson expert_width(const GgufFacts& facts) {
  return width_of(facts, Part::routed_expert);
}
// Of all shared experts, which are one matrix.
ParsedJson shared_width(const GgufFacts& facts) {
  const std::uint64_t width = width_of(facts, Part::shared_expert);
  return width == 0 ? ParsedJson() : ParsedJson(width);
}
constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .made = expert_width};
constexpr GgufOwnKey kSharedWidth = {.key = "expert_shared_feed_forward_length", .made = shared_width};
constexpr GgufOwnKey kScale = {.key = "expert_weights_scale", .form = Form::f32, .made = routed_scale};
constexpr GgufOwnKey kRenormalized = {.key = "expert_weights_norm", .form = Form::flag, .made = renormalized};
constexpr GgufOwnKey kSigmoid = {.key = "expert_gating_func", .constant = kGgufSigmoidGating};

// --- HY3 ---------------------------------------------------------------------------------------------------------

constexpr GgufOwnKey kHy3Keys[] = {kExpertWidth, kSharedWidth, kRenormalized, kScale, kSigmoid};
constexpr GgufOwnName kHy3Names[] = {{"expert_bias", "exp_probs_b!"}};
constexpr GgufRules kHy3 = {
    .base = {.family = "hy_v3", .architecture = "hy_v3", .hf_class = "HYV3ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kHy3Keys,
    .names = kHy3Names};

// --- Hunyuan-A13B ------------------------------------------------------------------------------------------------

// Its context is stretched by one number, α: a larger base of the frequencies.
constexpr std::uint64_t kStretched = 256 * 1024;
bool is_stretched(const GgufFacts& facts) {
  return facts.rope.value("rope_type", "") == "dynamic";
}
ParsedJson stretched_base(const GgufFacts& facts) {
  if (!is_stretched(facts)) return nullptr;
  const double width = std::floor(facts.number("hidden_size") / facts.number("num_attention_heads"));
  const double alpha = facts.rope_number("alpha", 1000.0), base = facts.rope_number("rope_theta", 10000.0);
  return base * std::pow(alpha, width / (width - 2));
}
ParsedJson no_scaling(const GgufFacts& facts) {
  return is_stretched(facts) ? ParsedJson("none") : ParsedJson();
}
ParsedJson unit_factor(const GgufFacts& facts) {
  return is_stretched(facts) ? ParsedJson(1.0) : ParsedJson();
}
ParsedJson stretched_context(const GgufFacts& facts) {
  return is_stretched(facts) ? ParsedJson(kStretched) : ParsedJson();
}
ParsedJson chosen(const GgufFacts& facts) {
  return facts.tree.experts_per_token;
}
// A list of one number, or that number.
ParsedJson shared_count(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("num_shared_expert");
  if (said == nullptr) return 1U;
  return said->is_array() && !said->empty() ? said->front() : *said;
}
constexpr GgufOwnKey kHunyuanKeys[] = {
    kSharedWidth,
    kExpertWidth,
    {.key = "expert_used_count", .made = chosen},
    {.key = "expert_shared_count", .made = shared_count},
    {.key = "rope.freq_base", .form = Form::f32, .made = stretched_base},
    {.key = "rope.scaling.type", .form = Form::text, .made = no_scaling},
    {.key = "rope.scaling.factor", .form = Form::f32, .made = unit_factor},
    {.key = "rope.scaling.original_context_length", .made = stretched_context},
    {.key = "context_length", .made = stretched_context}};
constexpr GgufRules kHunyuanMoe = {.base = {.family = "hunyuan_v1_moe",
                                            .architecture = "hunyuan-moe",
                                            .hf_class = "HunYuanMoEV1ForCausalLM",
                                            .omits_tied_head = true},
                                   .keys_of = Keys::of_config,
                                   .keys = kHunyuanKeys,
                                   .rope_types = "dynamic",
                                   .tokenizer = GgufRules::Tokenizer::hunyuan_moe,
                                   .back = back::hunyuan_moe};

// --- K-EXAONE ----------------------------------------------------------------------------------------------------

ParsedJson never_scaled(const GgufFacts&) {
  return "none";
}
// As the class has it where the config is silent; null: no layer has one.
ParsedJson window(const GgufFacts& facts) {
  std::uint64_t widest = 0;
  for (const AttentionGeometry& g : facts.tree.attention) widest = std::max(widest, g.window);
  return widest == 0 ? ParsedJson() : ParsedJson(widest);
}
ParsedJson window_flags(const GgufFacts& facts) {
  return window(facts).is_null() ? ParsedJson() : own_keys::windows_by_layer(facts);
}
constexpr GgufOwnKey kExaoneKeys[] = {
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "attention.sliding_window", .made = window},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = window_flags},
    kExpertWidth,
    {.key = "expert_shared_count", .config = "num_shared_experts"},
    kSharedWidth,
    kScale,
    kRenormalized,
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
    {.key = "nextn_predict_layers", .constant = 0},
    {.key = "rope.scaling.type", .form = Form::text, .made = never_scaled},
    kSigmoid};
constexpr GgufRules kExaoneMoe = {.base = {.family = "exaone_moe",
                                           .architecture = "exaone-moe",
                                           .hf_class = "ExaoneMoeForCausalLM",
                                           .writes_rope_factors = true},
                                  .keys_of = Keys::of_config,
                                  .keys = kExaoneKeys,
                                  .back = back::windows};

// --- Solar Open --------------------------------------------------------------------------------------------------

ParsedJson rotating(const GgufFacts& facts) {
  return hyperparameters(facts.tree).ropes.front().rotary_dim;
}
constexpr GgufOwnName kSolarNames[] = {{"post_attention_layernorm.weight", "post_attention_norm"}};
constexpr GgufOwnKey kSolarKeys[] = {{.key = "rope.dimension_count", .made = rotating},
                                     {.key = "expert_count", .config = "n_routed_experts"},
                                     kExpertWidth,
                                     {.key = "expert_shared_count", .config = "n_shared_experts"},
                                     {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
                                     kSigmoid,
                                     kScale,
                                     kRenormalized};
constexpr GgufRules kSolarOpen = {.base = {.family = "solar_open",
                                           .architecture = "glm4moe",
                                           .hf_class = "SolarOpenForCausalLM",
                                           .told_by = ToldBy::nothing},
                                  .keys_of = Keys::of_config,
                                  .keys = kSolarKeys,
                                  .names = kSolarNames,
                                  .tokenizer = GgufRules::Tokenizer::solar_open};

constexpr const GgufRules* kGroup[] = {&kHy3, &kHunyuanMoe, &kExaoneMoe, &kSolarOpen};

}  // namespace
}  // namespace mixtures_2026_in_gguf

GgufGroup gguf_mixtures_2026() {
  return mixtures_2026_in_gguf::kGroup;
}

}  // namespace assay::families
