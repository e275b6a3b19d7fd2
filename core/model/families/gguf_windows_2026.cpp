// How llama.cpp keeps decoders of 2026 with windows in some layers (conversion/laguna.py, granite.py): Laguna, with heads by
// layer and a gate of their outputs; Granite with windows and sinks, dense and with experts; Muse Glimmer, whose layers with
// windows alone rotate (muse_glimmer.py).
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"

namespace assay::families {
namespace windows_2026_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using own_keys::windows_by_layer;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};

// --- Laguna ------------------------------------------------------------------------------------------------------

ParsedJson heads_by_layer(const GgufFacts& facts) {
  ParsedJson heads = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) heads.push_back(0U);
  for (const AttentionGeometry& g : facts.tree.attention) {
    for (const std::uint64_t layer : g.layers) heads[layer] = g.heads;
  }
  return heads;
}
ParsedJson windowed_rotary(const GgufFacts& facts) {
  const ParsedJson ropes = rope_parameters_of(facts.config);
  const auto windowed = ropes.find("sliding_attention");
  if (windowed == ropes.end() || !windowed->is_object()) return nullptr;
  const auto part = windowed->find("partial_rotary_factor");
  const double of_head = part != windowed->end() && part->is_number() ? part->get<double>() : 1;
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * of_head);
}
constexpr GgufOwnKey kLagunaKeys[] = {
    kVocabulary,
    {.key = "attention.head_count", .form = Form::i32s, .made = heads_by_layer},
    {.key = "attention.sliding_window", .config = "sliding_window", .unless_zero = true},
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"},
    {.key = "expert_shared_feed_forward_length", .config = "shared_expert_intermediate_size"},
    {.key = "expert_weights_norm", .form = Form::flag, .constant = 1},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "moe_routed_scaling_factor"},
    {.key = "expert_gating_func", .constant = kGgufSigmoidGating},
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
    {.key = "rope.dimension_count", .made = own_keys::rotary_width},
    {.key = "rope.dimension_count_swa", .made = windowed_rotary}};
constexpr GgufOwnName kLagunaNames[] = {{"self_attn.g_proj.weight", "attn_gate"},
                                        {"experts.e_score_correction_bias", "exp_probs_b.bias"}};
constexpr GgufRules kLaguna = {
    .base = {.family = "laguna", .architecture = "laguna", .hf_class = "LagunaForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kLagunaKeys,
    .names = kLagunaNames,
    .gate_last = true,
    .tokenizer = GgufRules::Tokenizer::laguna,
    .back = back::laguna};

// --- Granite with windows ----------------------------------------------------------------------------------------

ParsedJson window(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("sliding_window", 128));
}
// Of each layer whether it rotates; null: all do.
ParsedJson rotating_layers(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("no_rope_layers");
  if (said == nullptr || !said->is_array() || said->empty()) return nullptr;
  ParsedJson flags = ParsedJson::array();
  for (const ParsedJson& one : *said) flags.push_back(one != 0 && one != false);
  return flags;
}
// The class has 1 where a config is silent, and llama.cpp something else, or asks.
ParsedJson logit_scale(const GgufFacts& facts) {
  return facts.number("logits_scaling", 1);
}
ParsedJson attention_scale(const GgufFacts& facts) {
  return facts.number("attention_multiplier", 1);
}
constexpr GgufOwnKey kGraniteKeys[] = {
    kVocabulary,
    {.key = "rope.dimension_count", .made = own_keys::head_width},
    {.key = "attention.scale",
     .form = Form::f32,
     .config = "attention_multiplier",
     .made = attention_scale,
     .unless_zero = true},
    {.key = "embedding_scale", .form = Form::f32, .config = "embedding_multiplier", .unless_zero = true},
    {.key = "residual_scale", .form = Form::f32, .config = "residual_multiplier", .unless_zero = true},
    {.key = "logit_scale", .form = Form::f32, .config = "logits_scaling", .made = logit_scale},
    {.key = "attention.sliding_window", .config = "sliding_window", .made = window},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = windows_by_layer},
    {.key = "attention.rope_pattern", .form = Form::flags, .made = rotating_layers},
    {.key = "expert_shared_feed_forward_length", .config = "shared_intermediate_size", .unless_zero = true}};
constexpr GgufRules kGraniteSwa = {.base = {.family = "granite_swa",
                                            .architecture = "granite_swa",
                                            .hf_class = "GraniteSWAForCausalLM",
                                            .paired_heads = true,
                                            .writes_rope_factors = true,
                                            .vocabulary = Vocabulary::llama},
                                   .keys_of = Keys::of_config,
                                   .keys = std::span(kGraniteKeys).first(std::size(kGraniteKeys) - 1),
                                   .ignores_head_dim = true,
                                   .back = back::granite_swa};
constexpr GgufOwnName kGraniteMoeNames[] = {{"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                            {"experts.down_proj", "ffn_down_exps.weight"},
                                            {"shared_mlp.input_linear.weight", "ffn_up_shexp"},
                                            {"shared_mlp.output_linear.weight", "ffn_down_shexp"}};
constexpr GgufRules kGraniteMoeSwa = {.base = {.family = "granitemoe_swa",
                                               .architecture = "granite_swa",
                                               .hf_class = "GraniteMoeSWAForCausalLM",
                                               .told_by = GgufFamily::ToldBy::nothing,
                                               .paired_heads = true,
                                               .writes_rope_factors = true,
                                               .vocabulary = Vocabulary::llama},
                                      .keys_of = Keys::of_config,
                                      .keys = kGraniteKeys,
                                      .names = kGraniteMoeNames,
                                      .ignores_head_dim = true,
                                      .back = back::granite_swa,
                                      .told = back::has_experts};

// --- Muse Glimmer ------------------------------------------------------------------------------------------------

// Queries are normed without a weight and multiplied by a number: norms with that number, and with 1 for the keys.
std::vector<DerivedTensor> queries_and_norms(const GgufSource& source) {
  const std::uint64_t width = source.tree.attention.front().qk_head_dim;
  const auto said = source.values.find("qk_scale_factor");
  const float scale = said != source.values.end() && said->is_number() ? said->get<float>() : 3.87F;
  std::vector<DerivedTensor> made;
  for (const auto& [norm, value] : {std::pair{"attn_q_norm", scale}, {"attn_k_norm", 1.0F}}) {
    DerivedTensor tensor{.name = gguf_name_of(norm, source.layer, false), .shape = {width}};
    tensor.computed.assign(width, value);
    made.push_back(std::move(tensor));
  }
  made.push_back(whole(gguf_name_of("attn_q", source.layer, false), source.stored, source.place));
  made.back().order = HeadRows::pairs_from_halves, made.back().head_rows = width;
  return made;
}
ParsedJson cap(const GgufFacts& facts) {
  return facts.number("final_logit_softcapping", 20);
}
ParsedJson output_multiplier(const GgufFacts& facts) {
  return facts.number("output_multiplier", 0.19611613513818404);
}
constexpr GgufOwnKey kMuseKeys[] = {
    {.key = "final_logit_softcapping", .form = Form::f32, .config = "final_logit_softcapping", .made = cap},
    {.key = "logit_scale", .form = Form::f32, .config = "output_multiplier", .made = output_multiplier},
    {.key = "attention.sliding_window", .config = "sliding_window"},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = windows_by_layer}};
constexpr GgufOwnName kMuseNames[] = {
    {"self_attn.q_proj.weight", "attn_q_norm|attn_k_norm|attn_q", queries_and_norms},
    {"self_attn.gate_proj.weight", "attn_gate"}};
constexpr GgufRules kMuseGlimmer = {.base = {.family = "muse_glimmer",
                                             .architecture = "muse-glimmer",
                                             .hf_class = "MuseGlimmerForConditionalGeneration",
                                             .paired_heads = true},
                                    .keys_of = Keys::of_config,
                                    .keys = kMuseKeys,
                                    .names = kMuseNames,
                                    .norms_less_one = "layernorm.weight",
                                    .tokenizer = GgufRules::Tokenizer::muse_glimmer,
                                    .back = back::muse};

constexpr const GgufRules* kGroup[] = {&kLaguna, &kGraniteSwa, &kGraniteMoeSwa, &kMuseGlimmer};

}  // namespace
}  // namespace windows_2026_in_gguf

GgufGroup gguf_windows_2026() {
  return windows_2026_in_gguf::kGroup;
}

}  // namespace assay::families
