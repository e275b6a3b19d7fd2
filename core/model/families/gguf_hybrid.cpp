// How llama.cpp keeps models whose layers are of several kinds (conversion/lfm2.py, nemotron.py, command_r.py): LFM2,
// Nemotron-H and 3, Cohere 2 with experts. Of such a model some keys are lists, 0 where a layer has none.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace hybrid_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using namespace gguf_transforms;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"};

// `value` in the layers that the tree has attention in.
ParsedJson where_attended(const GgufFacts& facts, std::uint64_t value) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(0U);
  for (const AttentionGeometry& geometry : facts.tree.attention) {
    for (const std::uint64_t layer : geometry.layers) list[layer] = value;
  }
  return list;
}
ParsedJson key_heads(const GgufFacts& facts) {
  return where_attended(facts, static_cast<std::uint64_t>(facts.number("num_key_value_heads")));
}
constexpr GgufOwnKey kKeyHeads = {.key = "attention.head_count_kv", .form = Form::i32s, .made = key_heads};

// What the config's width becomes by block_ffn_dim_multiplier and its kin: the tree knows.
ParsedJson lfm2_width(const GgufFacts& facts) {
  std::uint64_t width = 0;
  for_each_spec(facts.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.main() && spec.role == Role::mlp_gate && spec.part == Part::dense_mlp)
      width = spec.shape.front();
  });
  return width;
}
constexpr GgufOwnName kLfm2Names[] = {{"conv.conv.weight", "shortconv.conv", squeezed},
                                      {"conv.in_proj.weight", "shortconv.in_proj"},
                                      {"conv.out_proj.weight", "shortconv.out_proj"},
                                      {"embedding_norm.weight", "token_embd_norm"},
                                      {"feed_forward.expert_bias", "exp_probs_b.bias"}};
constexpr GgufOwnKey kLfm2Keys[] = {kKeyHeads,
                                    kVocabulary,
                                    {.key = "shortconv.l_cache", .config = "conv_L_cache"},
                                    {.key = "feed_forward_length", .made = lfm2_width}};
constexpr GgufOwnKey kLfm2MoeKeys[] = {kKeyHeads,
                                       kExpertWidth,
                                       {.key = "leading_dense_block_count", .config = "num_dense_layers"},
                                       {.key = "expert_gating_func", .constant = kGgufSigmoidGating},
                                       kVocabulary,
                                       {.key = "shortconv.l_cache", .config = "conv_L_cache"}};
constexpr GgufRules kLfm2 = {.base = {.family = "lfm2",
                                      .architecture = "lfm2",
                                      .hf_class = "Lfm2ForCausalLM",
                                      .omits_tied_head = true},
                             .keys_of = Keys::of_config,
                             .keys = kLfm2Keys,
                             .names = kLfm2Names,
                             .back = back::lfm2};
constexpr GgufRules kLfm2Moe = {.base = {.family = "lfm2_moe",
                                         .architecture = "lfm2moe",
                                         .hf_class = "Lfm2MoeForCausalLM",
                                         .omits_tied_head = true},
                                .keys_of = Keys::of_config,
                                .keys = kLfm2MoeKeys,
                                .names = kLfm2Names,
                                .back = back::lfm2};

// Of Nemotron-H a layer is one mixer: a scan, attention, an MLP or experts.
ParsedJson where_mixed(const GgufFacts& facts, Part part, std::uint64_t value) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(0U);
  for_each_spec(facts.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.role != Role::mlp_up || spec.part != part) return;
    for (const Module* module : where.path) {
      if (module->repeat.over != Repeat::Over::layers) continue;
      for (const std::uint64_t layer : module->repeat.indices) list[layer] = value;
    }
  });
  return list;
}
ParsedJson expert_widths(const GgufFacts& facts) {
  return where_mixed(facts, Part::routed_expert,
                     static_cast<std::uint64_t>(facts.number("moe_intermediate_size")));
}
ParsedJson mlp_widths(const GgufFacts& facts) {
  return where_mixed(facts, Part::dense_mlp, static_cast<std::uint64_t>(facts.number("intermediate_size")));
}
ParsedJson scan_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("mamba_num_heads") * facts.number("mamba_head_dim"));
}
// Attention rotates nothing; the key is there all the same.
ParsedJson unused_rotary(const GgufFacts& facts) {
  return facts.tree.hidden_size / static_cast<std::uint64_t>(facts.number("num_attention_heads"));
}
ParsedJson attended_width(const GgufFacts& facts) {
  return facts.tree.attention.empty() ? ParsedJson() : ParsedJson(facts.tree.attention.front().qk_head_dim);
}
constexpr GgufOwnKey kNemotronKeys[] = {
    kVocabulary,
    {.key = "rope.dimension_count", .made = unused_rotary},
    {.key = "ssm.conv_kernel", .config = "conv_kernel"},
    {.key = "ssm.state_size", .config = "ssm_state_size"},
    {.key = "ssm.group_count", .config = "n_groups"},
    {.key = "ssm.inner_size", .made = scan_width},
    {.key = "ssm.time_step_rank", .config = "mamba_num_heads"},
    kKeyHeads,
    {.key = "rope.scaling.finetuned", .form = Form::flag, .constant = 0},
    {.key = "context_length", .constant = 1 << 20},
    {.key = "attention.key_length", .made = attended_width},
    {.key = "attention.value_length", .made = attended_width},
    {.key = "feed_forward_length", .form = Form::i32s, .made = mlp_widths}};
constexpr GgufOwnKey kNemotronMoeKeys[] = {
    kVocabulary,
    {.key = "rope.dimension_count", .made = unused_rotary},
    {.key = "ssm.conv_kernel", .config = "conv_kernel"},
    {.key = "ssm.state_size", .config = "ssm_state_size"},
    {.key = "ssm.group_count", .config = "n_groups"},
    {.key = "ssm.inner_size", .made = scan_width},
    {.key = "ssm.time_step_rank", .config = "mamba_num_heads"},
    kKeyHeads,
    {.key = "rope.scaling.finetuned", .form = Form::flag, .constant = 0},
    {.key = "context_length", .constant = 1 << 20},
    {.key = "attention.key_length", .made = attended_width},
    {.key = "attention.value_length", .made = attended_width},
    {.key = "feed_forward_length", .form = Form::i32s, .made = expert_widths},
    kExpertWidth,
    {.key = "expert_shared_feed_forward_length", .config = "moe_shared_expert_intermediate_size"},
    {.key = "expert_shared_count", .config = "n_shared_experts"},
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    {.key = "moe_latent_size", .config = "moe_latent_size"}};
constexpr GgufOwnName kNemotronNames[] = {{"mixer.in_proj.weight", "ssm_in"},
                                          {"mixer.in_proj.bias", "ssm_in"},
                                          {"mixer.conv1d.weight", "ssm_conv1d", squeezed},
                                          {"mixer.conv1d.bias", "ssm_conv1d"},
                                          {"mixer.dt_bias", "ssm_dt.bias"},
                                          {"mixer.A_log", "ssm_a!", minus_exp_as_column},
                                          {"mixer.D", "ssm_d!", as_column},
                                          {"mixer.norm.weight", "ssm_norm", rows_of_groups},
                                          {"mixer.out_proj.weight", "ssm_out"},
                                          {"mixer.out_proj.bias", "ssm_out"},
                                          {"mixer.fc1_latent_proj.weight", "ffn_latent_down"},
                                          {"mixer.fc1_latent_proj.bias", "ffn_latent_down"},
                                          {"mixer.fc2_latent_proj.weight", "ffn_latent_up"},
                                          {"mixer.fc2_latent_proj.bias", "ffn_latent_up"},
                                          {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"}};
constexpr GgufRules kNemotronH = {.base = {.family = "nemotron_h",
                                           .architecture = "nemotron_h",
                                           .hf_class = "NemotronHForCausalLM",
                                           .paired_heads = true},
                                  .keys_of = Keys::of_config,
                                  .keys = kNemotronKeys,
                                  .names = kNemotronNames,
                                  .activations = {},
                                  .ignores_head_dim = true,
                                  .back = back::nemotron_h};
constexpr GgufRules kNemotronMoe = {.base = {.family = "nemotron_h",
                                             .architecture = "nemotron_h_moe",
                                             .hf_class = "NemotronHForCausalLM",
                                             .told_by = ToldBy::experts,
                                             .paired_heads = true},
                                    .keys_of = Keys::of_config,
                                    .keys = kNemotronMoeKeys,
                                    .names = kNemotronNames,
                                    .activations = {},
                                    .ignores_head_dim = true,
                                    .back = back::nemotron_h};

ParsedJson dense_first(const GgufFacts& facts) {
  const ParsedJson* types = facts.find("mlp_layer_types");
  if (types == nullptr || !types->is_array())
    return static_cast<std::uint64_t>(facts.number("first_k_dense_replace", 0));
  const auto sparse =
      std::find_if(types->begin(), types->end(), [](const ParsedJson& type) { return type != "dense"; });
  return static_cast<std::uint64_t>(sparse - types->begin());
}
ParsedJson renormalized(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("norm_topk_prob");
  return said == nullptr ? ParsedJson(false) : *said;
}
ParsedJson shared_width(const GgufFacts& facts) {
  const auto shared = static_cast<std::uint64_t>(facts.number("num_shared_experts", 0));
  return shared == 0 ? ParsedJson()
                     : ParsedJson(shared * static_cast<std::uint64_t>(facts.number("intermediate_size")));
}
ParsedJson no_scaling(const GgufFacts&) {
  return "none";
}
constexpr GgufOwnKey kCohereKeys[] = {
    {.key = "logit_scale", .form = Form::f32, .config = "logit_scale"},
    {.key = "attention.sliding_window", .config = "sliding_window"},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = own_keys::windowed_layers},
    kVocabulary,
    {.key = "expert_feed_forward_length", .config = "intermediate_size"},
    {.key = "leading_dense_block_count", .made = dense_first},
    {.key = "expert_weights_norm", .form = Form::flag, .made = renormalized},
    {.key = "expert_shared_count", .config = "num_shared_experts", .unless_zero = true},
    {.key = "expert_shared_feed_forward_length", .made = shared_width},
    {.key = "rope.dimension_count", .config = "head_dim"},
    {.key = "rope.scaling.type", .form = Form::text, .made = no_scaling}};
constexpr GgufRules kCohere2Moe = {
    .base = {.family = "cohere2_moe", .architecture = "cohere2moe", .hf_class = "Cohere2MoeForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kCohereKeys,
    .back = back::cohere2_moe};

constexpr const GgufRules* kGroup[] = {&kLfm2, &kLfm2Moe, &kNemotronH, &kNemotronMoe, &kCohere2Moe};

}  // namespace
}  // namespace hybrid_in_gguf

GgufGroup gguf_hybrid() {
  return hybrid_in_gguf::kGroup;
}

}  // namespace assay::families
