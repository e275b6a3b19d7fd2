// How llama.cpp keeps families whose layers differ in heads and windows (conversion/gemma.py, minimax.py, mimo.py,
// step3.py): Gemma 4, MiniMax-M3, MiMo-V2-Flash, Step 3.5. Of such a model some keys are lists.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace of_2026_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;
using own_keys::windows_by_layer;

// A number of each layer's attention, as the tree has it.
template <class Of>
ParsedJson by_layer(const GgufFacts& facts, const Of& of) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(0U);
  for (const AttentionGeometry& geometry : facts.tree.attention) {
    for (const std::uint64_t layer : geometry.layers) list[layer] = of(geometry);
  }
  return list;
}
ParsedJson heads_by_layer(const GgufFacts& facts) {
  return by_layer(facts, [](const AttentionGeometry& g) { return g.heads; });
}
ParsedJson key_heads_by_layer(const GgufFacts& facts) {
  return by_layer(facts, [](const AttentionGeometry& g) { return g.kv_heads; });
}
ParsedJson window_bits_by_layer(const GgufFacts& facts) {
  return by_layer(facts, [](const AttentionGeometry& g) { return g.window != 0 ? 1 : 0; });
}
[[noreturn]] void refuse(const GgufFacts& facts, const std::string& why) {
  throw Error::refused(why).in(facts.config.source());
}

constexpr GgufOwnKey kWindow = {.key = "attention.sliding_window", .config = "sliding_window"};
constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"};

// --- Gemma 4 -----------------------------------------------------------------------------------------------------

// Heads of layers that see everything, and of those with windows.
const AttentionGeometry& gemma_heads(const GgufFacts& facts, bool windowed) {
  const auto& all = facts.tree.attention;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const AttentionGeometry& g) { return (g.window != 0) == windowed; });
  if (found == all.end())
    refuse(facts, "a Gemma 4 with one kind of layer, of which llama.cpp's converter makes no GGUF");
  return *found;
}
ParsedJson full_width(const GgufFacts& facts) {
  return gemma_heads(facts, false).qk_head_dim;
}
ParsedJson windowed_width(const GgufFacts& facts) {
  return gemma_heads(facts, true).qk_head_dim;
}
ParsedJson windowed_rotary(const GgufFacts& facts) {
  const ParsedJson* all = facts.find("rope_parameters");
  const double part = all == nullptr ? 1.0 : all->value("partial_rotary_factor", 1.0);
  return static_cast<std::uint64_t>(part * gemma_heads(facts, true).qk_head_dim);
}
ParsedJson gemma_key_heads(const GgufFacts& facts) {
  const bool differ = gemma_heads(facts, true).kv_heads != gemma_heads(facts, false).kv_heads;
  const bool told = facts.find("num_global_key_value_heads") != nullptr ||
                    (differ && facts.find("per_layer_config") != nullptr);
  return told ? key_heads_by_layer(facts) : ParsedJson();
}
ParsedJson shared_caches(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_kv_shared_layers", 0));
}
ParsedJson inputs_of_layers(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("hidden_size_per_layer_input", 0));
}
// Left out it would be 30, llama.cpp's default: of a model without it the key says 0, which the converter leaves out.
ParsedJson softcapping(const GgufFacts& facts) {
  return facts.number("final_logit_softcapping", 0);
}
ParsedJson wide_feed_forwards(const GgufFacts& facts) {
  const ParsedJson* wide = facts.find("use_double_wide_mlp");
  if (wide == nullptr || *wide != true) return nullptr;
  const auto width = static_cast<std::uint64_t>(facts.number("intermediate_size"));
  const auto shared = static_cast<std::uint64_t>(facts.number("num_kv_shared_layers", 0));
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i)
    list.push_back(i + shared < facts.tree.layers ? width : 2 * width);
  return list;
}
// Of a head only the first dimensions rotate, the others are slowed to a standstill.
std::vector<DerivedTensor> proportional_factors(const GgufFacts& facts) {
  constexpr float kStill = 1e30F;
  if (facts.rope.value("rope_type", "") != "proportional")
    refuse(facts,
           "rotary positions of full attention are not \"proportional\", as llama.cpp has them for Gemma 4");
  const auto width = gemma_heads(facts, false).qk_head_dim;
  const double part = facts.rope.value("partial_rotary_factor", 0.25);
  const auto rotating = static_cast<std::uint64_t>(static_cast<double>(width) * part / 2);
  DerivedTensor tensor{.name = "rope_freqs.weight", .shape = {width / 2}};
  for (std::uint64_t i = 0; i < width / 2; ++i) tensor.computed.push_back(i < rotating ? 1.0F : kStill);
  return {tensor};
}
constexpr GgufOwnKey kGemma4Keys[] = {
    {.key = "final_logit_softcapping",
     .form = Form::f32,
     .config = "final_logit_softcapping",
     .made = softcapping},
    kWindow,
    {.key = "attention.shared_kv_layers", .made = shared_caches},
    {.key = "embedding_length_per_layer_input", .made = inputs_of_layers},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = windows_by_layer},
    {.key = "attention.key_length", .made = full_width},
    {.key = "attention.value_length", .made = full_width},
    {.key = "attention.key_length_swa", .made = windowed_width},
    {.key = "attention.value_length_swa", .made = windowed_width},
    {.key = "expert_feed_forward_length", .config = "expert_intermediate_size|moe_intermediate_size"},
    {.key = "feed_forward_length", .form = Form::i32s, .made = wide_feed_forwards},
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = gemma_key_heads},
    {.key = "rope.dimension_count", .made = full_width},
    {.key = "rope.dimension_count_swa", .made = windowed_rotary}};
constexpr GgufOwnName kGemma4Names[] = {{"layer_scalar", "layer_output_scale.weight"},
                                        {"embed_tokens_per_layer.weight", "per_layer_token_embd"},
                                        {"per_layer_model_projection.weight", "per_layer_model_proj"},
                                        {"per_layer_projection_norm.weight", "per_layer_proj_norm"},
                                        {"per_layer_input_gate.weight", "inp_gate"},
                                        {"per_layer_projection.weight", "proj"},
                                        {"post_per_layer_input_norm.weight", "post_norm"},
                                        {"post_feedforward_layernorm_1.weight", "post_ffw_norm_1"},
                                        {"post_feedforward_layernorm_2.weight", "post_ffw_norm_2"},
                                        {"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2"},
                                        {"router.scale", "ffn_gate_inp.scale!"},
                                        {"router.per_expert_scale", "ffn_down_exps.scale!"},
                                        {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                        {"experts.down_proj", "ffn_down_exps.weight"}};
constexpr GgufRules kGemma4 = {.base = {.family = "gemma4",
                                        .architecture = "gemma4",
                                        .hf_class = "Gemma4ForConditionalGeneration",
                                        .vocabulary = Vocabulary::byte_level},
                               .keys_of = Keys::of_config,
                               .keys = kGemma4Keys,
                               .names = kGemma4Names,
                               .more_tensors = proportional_factors,
                               .activations = "gelu_pytorch_tanh",
                               .rope_types = "proportional",
                               .tokenizer = GgufRules::Tokenizer::gemma4,
                               .back = back::gemma4};

// Gemma 4 12B: the same language model.
constexpr GgufRules kGemma4Unified = [] {
  GgufRules rules = kGemma4;
  rules.base.family = "gemma4_unified";
  rules.base.hf_class = "Gemma4UnifiedForConditionalGeneration";
  rules.base.told_by = GgufFamily::ToldBy::nothing;
  return rules;
}();

// --- MiniMax-M3 --------------------------------------------------------------------------------------------------

constexpr GgufOwnKey kM3Keys[] = {
    {.key = "expert_feed_forward_length", .config = "intermediate_size"},
    {.key = "rope.dimension_count", .config = "rotary_dim"},
    {.key = "expert_shared_count", .config = "n_shared_experts"},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    {.key = "expert_weights_norm", .form = Form::flag, .constant = 1},
    {.key = "attention.indexer.head_count", .config = "sparse_attention_config.sparse_num_index_heads"},
    {.key = "attention.indexer.key_length", .config = "sparse_attention_config.sparse_index_dim"},
    {.key = "attention.indexer.top_k", .config = "sparse_attention_config.sparse_topk_blocks"},
    {.key = "attention.indexer.block_size", .config = "sparse_attention_config.sparse_block_size"},
    {.key = "attention.indexer.local_blocks", .config = "sparse_attention_config.sparse_local_block"},
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers}};
constexpr GgufOwnName kM3Names[] = {{"self_attn.index_q_proj.weight", "indexer.q_proj"},
                                    {"self_attn.index_k_proj.weight", "indexer.k_proj"},
                                    {"self_attn.index_q_norm.weight", "indexer.q_norm"},
                                    {"self_attn.index_k_norm.weight", "indexer.k_norm"}};
constexpr GgufRules kMinimaxM3 = {.base = {.family = "minimax_m3",
                                           .architecture = "minimax-m3",
                                           .hf_class = "MiniMaxM3SparseForConditionalGeneration"},
                                  .keys_of = Keys::of_config,
                                  .keys = kM3Keys,
                                  .names = kM3Names,
                                  .activations = "swigluoai",
                                  .norms_less_one = "norm.weight",
                                  .f32_parts = ".indexer.",
                                  .back = back::minimax_m3};

// --- MiMo-V2-Flash -----------------------------------------------------------------------------------------------

ParsedJson mimo_values(const GgufFacts& facts) {
  const AttentionGeometry& first = facts.tree.attention.front();
  for (const AttentionGeometry& g : facts.tree.attention) {
    if (g.heads != first.heads || g.qk_head_dim != first.qk_head_dim || g.v_head_dim != first.v_head_dim)
      refuse(
          facts,
          "heads of layers with windows are others than those without, which a GGUF of MiMo-V2 cannot tell");
  }
  return first.v_head_dim;
}
// The query counted, too: the converter has sliding_window, which leaves it out beside sliding_window_size.
ParsedJson mimo_window(const GgufFacts& facts) {
  std::uint64_t window = 0;
  for (const AttentionGeometry& g : facts.tree.attention) window = std::max(window, g.window);
  return window;
}
ParsedJson mimo_epsilon(const GgufFacts& facts) {
  return facts.number("layernorm_epsilon", 1e-5);
}
constexpr GgufOwnKey kMimoKeys[] = {
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = key_heads_by_layer},
    {.key = "attention.sliding_window", .made = mimo_window},
    {.key = "attention.sliding_window_pattern", .form = Form::i32s, .made = window_bits_by_layer},
    {.key = "attention.value_length", .made = mimo_values},
    {.key = "expert_count", .config = "n_routed_experts"},
    kExpertWidth,
    {.key = "rope.dimension_count", .made = own_keys::rotary_width},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .made = mimo_epsilon},
    {.key = "attention.value_scale", .form = Form::f32, .config = "attention_value_scale"}};
constexpr GgufOwnName kMimoNames[] = {{"self_attn.attention_sink_bias", "attn_sinks.weight"}};
constexpr GgufRules kMimo = {
    .base = {.family = "mimo_v2_flash", .architecture = "mimo2", .hf_class = "MiMoV2FlashForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kMimoKeys,
    .names = kMimoNames,
    .gate_last = true,
    .back = back::mimo};

// --- Step 3.5 ----------------------------------------------------------------------------------------------------

// Rotary frequencies have a base for each kind of layer, and no list.
ParsedJson step_heads(const GgufFacts& facts) {
  const ParsedJson* thetas = facts.find("rope_theta");
  const ParsedJson windows = windows_by_layer(facts);
  if (thetas != nullptr && thetas->is_array()) {
    for (std::size_t i = 0; i < std::min(thetas->size(), windows.size()); ++i) {
      const std::size_t kind = windows[i] == true ? 1 : 0;
      if (thetas->size() < 2 || (*thetas)[i] != (*thetas)[kind])
        refuse(facts, "rope_theta is not one for layers without windows and another for those with them");
    }
  }
  return heads_by_layer(facts);
}
ParsedJson every_nth(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("moe_every_n_layer", 1));
}
ParsedJson clamps(const GgufFacts& facts, std::string_view key) {
  const ParsedJson* given = facts.find(key);
  if (given == nullptr || !given->is_array()) return nullptr;
  ParsedJson list = ParsedJson::array();
  for (std::size_t i = 0; i < facts.tree.layers; ++i)
    list.push_back(i < given->size() && (*given)[i].is_number() ? (*given)[i].get<double>() : 0.0);
  return list;
}
ParsedJson routed_clamps(const GgufFacts& facts) {
  return clamps(facts, "swiglu_limits");
}
ParsedJson shared_clamps(const GgufFacts& facts) {
  return clamps(facts, "swiglu_limits_shared");
}
// Llama 3's factors, of the rotating half of heads that see everything; the others keep theirs. In doubles but for
// the frequencies, as the converter has them here.
std::vector<DerivedTensor> step_factors(const GgufFacts& facts) {
  if (facts.rope.value("rope_type", "") != "llama3") return {};
  const std::uint64_t width = facts.head_dim(), rotating = width / 2;
  const double factor = facts.rope.value("factor", 8.0), low = facts.rope.value("low_freq_factor", 1.0),
               high = facts.rope.value("high_freq_factor", 4.0),
               context = facts.rope.value("original_max_position_embeddings", 8192.0);
  const float base = facts.rope.value("rope_theta", 10000.0F);
  DerivedTensor tensor{.name = "rope_freqs.weight", .shape = {width / 2}};
  for (std::uint64_t i = 0; i < rotating; i += 2) {
    const float frequency = 1.0F / std::pow(base, static_cast<float>(i) / static_cast<float>(rotating));
    const double length = 2 * std::numbers::pi / double{frequency};
    const double smooth = (context / length - low) / (high - low);
    const double given = length < context / high  ? 1
                         : length > context / low ? factor
                                                  : 1 / ((1 - smooth) / factor + smooth);
    tensor.computed.push_back(static_cast<float>(given));
  }
  tensor.computed.resize(width / 2, 1.0F);
  return {tensor};
}
constexpr GgufOwnKey kStepKeys[] = {
    {.key = "attention.head_count", .form = Form::i32s, .made = step_heads},
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = key_heads_by_layer},
    kWindow,
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = windows_by_layer},
    {.key = "attention.value_length", .config = "head_dim"},
    {.key = "expert_count", .config = "moe_num_experts|n_routed_experts|num_experts"},
    {.key = "expert_used_count", .config = "moe_top_k|num_experts_per_tok"},
    kExpertWidth,
    {.key = "expert_shared_feed_forward_length", .config = "share_expert_dim"},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "moe_router_scaling_factor"},
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_expert_weight"},
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
    {.key = "moe_every_n_layers", .made = every_nth},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .config = "rms_norm_eps"},
    {.key = "swiglu_clamp_exp", .form = Form::f32s, .made = routed_clamps},
    {.key = "swiglu_clamp_shexp", .form = Form::f32s, .made = shared_clamps}};
constexpr GgufOwnName kStepNames[] = {{"self_attn.g_proj.weight", "attn_gate"},
                                      {"moe.gate_proj.weight", "ffn_gate_exps"},
                                      {"moe.up_proj.weight", "ffn_up_exps"},
                                      {"moe.down_proj.weight", "ffn_down_exps"},
                                      {"moe.router_bias", "exp_probs_b.bias"}};
constexpr GgufRules kStep = {
    .base = {.family = "step3p5", .architecture = "step35", .hf_class = "Step3p5ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kStepKeys,
    .names = kStepNames,
    .more_tensors = step_factors,
    .norms_less_one = "norm.weight",
    .back = back::step3p5};

constexpr const GgufRules* kGroup[] = {&kGemma4, &kGemma4Unified, &kMinimaxM3, &kMimo, &kStep};

}  // namespace
}  // namespace of_2026_in_gguf

GgufGroup gguf_2026() {
  return of_2026_in_gguf::kGroup;
}

}  // namespace assay::families
