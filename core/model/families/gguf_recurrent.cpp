// How llama.cpp keeps layers with a state (conversion/mamba.py, jamba.py, qwen.py): Mamba 1 and 2, Jamba, Qwen3-Next,
// Qwen3.5. What a state decays by is stored as its logarithm, and kept as -exp of that.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace recurrent_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

constexpr GgufOwnKey kFileType = {.key = "general", .form = Form::file_type};

// --- Mamba -------------------------------------------------------------------------------------------------------

ParsedJson hidden(const GgufFacts& facts) {
  return facts.tree.hidden_size;
}
ParsedJson layer_count(const GgufFacts& facts) {
  return facts.tree.layers;
}
std::uint64_t whole_number(const GgufFacts& facts, std::string_view names, std::uint64_t otherwise) {
  const auto given = static_cast<std::uint64_t>(facts.number(names, 0));
  return given == 0 ? otherwise : given;
}
ParsedJson scan_kernel(const GgufFacts& facts) {
  return whole_number(facts, "conv_kernel|d_conv|mamba_d_conv", 4);
}
ParsedJson scan_inner(const GgufFacts& facts) {
  return whole_number(facts, "intermediate_size|d_inner", 2 * facts.tree.hidden_size);
}
ParsedJson scan_state(const GgufFacts& facts) {
  return whole_number(facts, "state_size|d_state|mamba_d_state", 16);
}
ParsedJson scan_rank(const GgufFacts& facts) {
  return whole_number(facts, "time_step_rank|dt_rank|mamba_dt_rank", (facts.tree.hidden_size + 15) / 16);
}
ParsedJson scan_epsilon(const GgufFacts& facts) {
  const double epsilon = facts.number("layer_norm_epsilon|rms_norm_eps", 0);
  return epsilon == 0 ? 1e-5 : epsilon;
}
ParsedJson normed_steps(const GgufFacts& facts) {
  return facts.config.model_type() == "falcon_mamba";
}
constexpr GgufOwnKey kHidden = {.key = "embedding_length", .made = hidden};
constexpr GgufOwnKey kLayers = {.key = "block_count", .made = layer_count};
constexpr GgufOwnKey kKernel = {.key = "ssm.conv_kernel", .made = scan_kernel};
constexpr GgufOwnKey kEpsilon = {
    .key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .made = scan_epsilon};
constexpr GgufOwnKey kAnyContext = {.key = "context_length", .constant = 1 << 20};
constexpr GgufOwnKey kNoFeedForward = {.key = "feed_forward_length", .constant = 0};
constexpr GgufOwnKey kNoHeads = {.key = "attention.head_count", .constant = 0};

constexpr GgufOwnName kMambaNames[] = {{"mixer.in_proj.weight", "ssm_in"},
                                       {"mixer.in_proj.bias", "ssm_in"},
                                       {"mixer.conv1d.weight", "ssm_conv1d", squeezed},
                                       {"mixer.conv1d.bias", "ssm_conv1d"},
                                       {"mixer.x_proj.weight", "ssm_x"},
                                       {"mixer.dt_proj.weight", "ssm_dt"},
                                       {"mixer.dt_proj.bias", "ssm_dt"},
                                       {"mixer.A_log", "ssm_a!", minus_exp},
                                       {"mixer.D", "ssm_d!"},
                                       {"mixer.out_proj.weight", "ssm_out"},
                                       {"mixer.out_proj.bias", "ssm_out"}};
constexpr GgufOwnKey kMambaKeys[] = {kAnyContext,
                                     kHidden,
                                     kNoFeedForward,
                                     kNoHeads,
                                     kLayers,
                                     kKernel,
                                     {.key = "ssm.inner_size", .made = scan_inner},
                                     {.key = "ssm.state_size", .made = scan_state},
                                     {.key = "ssm.time_step_rank", .made = scan_rank},
                                     kEpsilon,
                                     {.key = "ssm.dt_b_c_rms", .form = Form::flag, .made = normed_steps},
                                     kFileType};
constexpr GgufRules kMamba = {.base = {.family = "mamba",
                                       .architecture = "mamba",
                                       .hf_class = "MambaForCausalLM",
                                       .omits_tied_head = true},
                              .keys_of = Keys::own,
                              .keys = kMambaKeys,
                              .names = kMambaNames,
                              .back = back::mamba};

ParsedJson scan2_inner(const GgufFacts& facts) {
  const auto expand = static_cast<std::uint64_t>(facts.number("mamba_expand|expand", 2));
  return whole_number(facts, "mamba_d_ssm|intermediate_size|d_inner", expand * facts.tree.hidden_size);
}
ParsedJson scan2_state(const GgufFacts& facts) {
  return whole_number(facts, "state_size|d_state", 128);
}
ParsedJson scan2_heads(const GgufFacts& facts) {
  return scan2_inner(facts).get<std::uint64_t>() / whole_number(facts, "mamba_d_head|head_dim", 64);
}
ParsedJson scan2_groups(const GgufFacts& facts) {
  return whole_number(facts, "n_groups", 1);
}
constexpr GgufOwnName kMamba2Names[] = {{"mixer.in_proj.weight", "ssm_in"},
                                        {"mixer.in_proj.bias", "ssm_in"},
                                        {"mixer.conv1d.weight", "ssm_conv1d", squeezed},
                                        {"mixer.conv1d.bias", "ssm_conv1d"},
                                        {"mixer.dt_bias", "ssm_dt.bias"},
                                        {"mixer.A_log", "ssm_a!", minus_exp_as_column},
                                        {"mixer.D", "ssm_d!", as_column},
                                        {"mixer.norm.weight", "ssm_norm", rows_of_groups},
                                        {"mixer.out_proj.weight", "ssm_out"},
                                        {"mixer.out_proj.bias", "ssm_out"}};
constexpr GgufOwnKey kMamba2Keys[] = {kAnyContext,
                                      kHidden,
                                      kNoFeedForward,
                                      kNoHeads,
                                      kLayers,
                                      kKernel,
                                      {.key = "ssm.inner_size", .made = scan2_inner},
                                      {.key = "ssm.state_size", .made = scan2_state},
                                      {.key = "ssm.time_step_rank", .made = scan2_heads},
                                      {.key = "ssm.group_count", .made = scan2_groups},
                                      kEpsilon,
                                      kFileType};
constexpr GgufRules kMamba2 = {
    .base = {.family = "mamba2", .architecture = "mamba2", .hf_class = "Mamba2ForCausalLM"},
    .keys_of = Keys::own,
    .keys = kMamba2Keys,
    .names = kMamba2Names,
    .back = back::mamba2};

// Attention in one layer of attn_layer_period, the others have no heads.
ParsedJson jamba_key_heads(const GgufFacts& facts) {
  const auto period = whole_number(facts, "attn_layer_period", 8);
  const auto offset = static_cast<std::uint64_t>(facts.number("attn_layer_offset", 4));
  const auto heads = static_cast<std::uint64_t>(facts.number("num_key_value_heads"));
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i)
    list.push_back(i >= offset && (i - offset) % period == 0 ? heads : 0);
  return list;
}
ParsedJson jamba_inner(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("mamba_expand", 2)) * facts.tree.hidden_size;
}
constexpr GgufOwnName kJambaNames[] = {{"mamba.in_proj.weight", "ssm_in"},
                                       {"mamba.in_proj.bias", "ssm_in"},
                                       {"mamba.conv1d.weight", "ssm_conv1d", squeezed},
                                       {"mamba.conv1d.bias", "ssm_conv1d"},
                                       {"mamba.x_proj.weight", "ssm_x"},
                                       {"mamba.dt_proj.weight", "ssm_dt"},
                                       {"mamba.dt_proj.bias", "ssm_dt"},
                                       {"mamba.A_log", "ssm_a!", minus_exp},
                                       {"mamba.D", "ssm_d!"},
                                       {"mamba.out_proj.weight", "ssm_out"},
                                       {"mamba.out_proj.bias", "ssm_out"},
                                       {"mamba.b_layernorm.weight", "ssm_b_norm"},
                                       {"mamba.c_layernorm.weight", "ssm_c_norm"},
                                       {"mamba.dt_layernorm.weight", "ssm_dt_norm"}};
constexpr GgufOwnKey kJambaKeys[] = {
    kLayers,
    {.key = "context_length", .config = "max_position_embeddings|n_ctx"},
    kHidden,
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = jamba_key_heads},
    kKernel,
    {.key = "ssm.inner_size", .made = jamba_inner},
    {.key = "ssm.state_size", .made = scan_state},
    {.key = "ssm.time_step_rank", .made = scan_rank},
    {.key = "attention.layer_norm_rms_epsilon",
     .form = Form::f32,
     .config = "layer_norm_epsilon|rms_norm_eps"},
    {.key = "expert_count", .config = "num_local_experts|num_experts"},
    {.key = "expert_used_count", .config = "num_experts_per_tok|num_experts_per_token"},
    kFileType};
constexpr GgufRules kJamba = {.base = {.family = "jamba",
                                       .architecture = "jamba",
                                       .hf_class = "JambaForCausalLM",
                                       .vocabulary = Vocabulary::sentencepiece_first},
                              .keys_of = Keys::own,
                              .keys = kJambaKeys,
                              .names = kJambaNames,
                              .tokenizer = GgufRules::Tokenizer::jamba,
                              .back = back::jamba};

// --- Gated DeltaNet ----------------------------------------------------------------------------------------------

// Heads of keys and of values, and their widths: of what the tree says of the first such layer.
struct DeltaHeads {
  std::uint64_t keys = 1, values = 1, value_width = 1;
  std::uint64_t per_key() const { return values / keys; }
};
DeltaHeads delta_heads(const GgufSource& source) {
  DeltaHeads heads;
  heads.keys = source.tree.recurrent.front().heads;
  for_each_spec(source.tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.name.ends_with("linear_attn.A_log")) heads.values = spec.shape.front();
    if (spec.name.ends_with("linear_attn.norm.weight")) heads.value_width = spec.shape.front();
  });
  return heads;
}

// Qwen3-Next keeps a key head's query, key, values and gates together; a GGUF all queries, keys, values, and the
// gates apart.
std::vector<DerivedTensor> split_qkvz(const GgufSource& source) {
  const DeltaHeads heads = delta_heads(source);
  const LogicalTensor& stored = source.stored.tensors[source.place];
  const std::uint64_t values = heads.per_key() * heads.value_width, all = stored.rows / heads.keys;
  const std::uint64_t key = (all - 2 * values) / 2;
  DerivedTensor qkv{.name = source.layer + "attn_qkv.weight",
                    .shape = {stored.rows - heads.keys * values, stored.columns}};
  DerivedTensor gate{.name = source.layer + "attn_gate.weight",
                     .shape = {heads.keys * values, stored.columns}};
  const auto add = [&](DerivedTensor& to, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t head = 0; head < heads.keys; ++head)
      to.pieces.push_back({source.place, head * all + first, count});
  };
  add(qkv, 0, key);
  add(qkv, key, key);
  add(qkv, 2 * key, values);
  add(gate, 2 * key + values, values);
  return {qkv, gate};
}

// Qwen3.5's values lie key head by key head; in a GGUF the first of every key head comes first, for ggml repeats keys
// as a whole. `kept` rows before them stay.
std::vector<DerivedTensor> values_across(const GgufSource& source, std::uint64_t kept, std::uint64_t width) {
  const DeltaHeads heads = delta_heads(source);
  DerivedTensor tensor = squeezed(source).front();
  if (heads.per_key() == 1) return {tensor};
  tensor.pieces.clear();
  if (kept > 0) tensor.pieces.push_back({source.place, 0, kept});
  for (std::uint64_t value = 0; value < heads.per_key(); ++value) {
    for (std::uint64_t key = 0; key < heads.keys; ++key)
      tensor.pieces.push_back({source.place, kept + (key * heads.per_key() + value) * width, width});
  }
  return {tensor};
}
std::vector<DerivedTensor> last_values_across(const GgufSource& source) {
  const DeltaHeads heads = delta_heads(source);
  const std::uint64_t rows = source.stored.tensors[source.place].all_rows();
  // A convolution's [channels, 1, kernel] has as many rows as channels.
  return values_across(source, rows - heads.values * heads.value_width, heads.value_width);
}
std::vector<DerivedTensor> gates_across(const GgufSource& source) {
  return values_across(source, 0, delta_heads(source).value_width);
}
std::vector<DerivedTensor> heads_across(const GgufSource& source) {
  return values_across(source, 0, 1);
}
std::vector<DerivedTensor> regrouped_vector(const GgufSource& source) {
  const DeltaHeads heads = delta_heads(source);
  DerivedTensor tensor =
      whole(gguf_name_of(source.stem, source.layer, source.spec.bias), source.stored, source.place);
  if (heads.per_key() > 1) tensor.regrouped = {heads.keys, heads.per_key(), 1};
  return {tensor};
}
std::vector<DerivedTensor> regrouped_minus_exp(const GgufSource& source) {
  auto made = regrouped_vector(source);
  made.front().times_exp = -1;
  return made;
}
std::vector<DerivedTensor> regrouped_columns(const GgufSource& source) {
  const DeltaHeads heads = delta_heads(source);
  auto made = regrouped_vector(source);
  if (heads.per_key() > 1) made.front().regrouped.width = heads.value_width;
  return made;
}

ParsedJson linear_inner(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("linear_value_head_dim") *
                                    facts.number("linear_num_value_heads"));
}
ParsedJson linear_layers(const GgufFacts& facts) {
  const ParsedJson* types = facts.find("layer_types");
  if (types == nullptr || !types->is_array()) return nullptr;
  ParsedJson flags = ParsedJson::array();
  for (const ParsedJson& type : *types) flags.push_back(type == "linear_attention");
  return flags;
}
ParsedJson full_interval(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("full_attention_interval", 4));
}
ParsedJson quarter_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 0.25);
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * part);
}
// Where the config is silent: what every published one has.
ParsedJson usual_sections(const GgufFacts& facts) {
  return facts.rope.contains("mrope_section") ? ParsedJson() : ParsedJson({11, 11, 10, 0});
}
constexpr GgufOwnKey kDeltaKeys[] = {
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"},
    {.key = "expert_shared_feed_forward_length", .config = "shared_expert_intermediate_size"},
    {.key = "ssm.conv_kernel", .config = "linear_conv_kernel_dim"},
    {.key = "ssm.state_size", .config = "linear_key_head_dim"},
    {.key = "ssm.group_count", .config = "linear_num_key_heads"},
    {.key = "ssm.time_step_rank", .config = "linear_num_value_heads"},
    {.key = "ssm.inner_size", .made = linear_inner},
    {.key = "attention.recurrent_layers", .form = Form::flags, .made = linear_layers},
    {.key = "full_attention_interval", .made = full_interval},
    {.key = "rope.dimension_count", .made = quarter_rotary},
    {.key = "rope.dimension_sections", .form = Form::i32s, .made = usual_sections}};
constexpr std::size_t kKeysOfQwen3Next = 10;
constexpr GgufOwnName kQwen3NextNames[] = {
    {"linear_attn.A_log", "ssm_a!", minus_exp},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.conv1d.weight", "ssm_conv1d", squeezed},
    {"linear_attn.in_proj_qkvz.weight", "attn_qkv|attn_gate", split_qkvz},
    {"linear_attn.in_proj_ba.weight", "ssm_ba"},
    {"linear_attn.norm.weight", "ssm_norm"},
    {"linear_attn.out_proj.weight", "ssm_out"},
    {"post_attention_layernorm.weight", "post_attention_norm"}};
constexpr GgufOwnName kQwen35Names[] = {
    {"linear_attn.A_log", "ssm_a!", regrouped_minus_exp},
    {"linear_attn.dt_bias", "ssm_dt.bias", regrouped_vector},
    {"linear_attn.conv1d.weight", "ssm_conv1d", last_values_across},
    {"linear_attn.in_proj_qkv.weight", "attn_qkv", last_values_across},
    {"linear_attn.in_proj_z.weight", "attn_gate", gates_across},
    {"linear_attn.in_proj_b.weight", "ssm_beta", heads_across},
    {"linear_attn.in_proj_a.weight", "ssm_alpha", heads_across},
    {"linear_attn.norm.weight", "ssm_norm"},
    {"linear_attn.out_proj.weight", "ssm_out", regrouped_columns},
    {"post_attention_layernorm.weight", "post_attention_norm"},
    {"experts.gate_up_proj", "ffn_gate_exps.weight|ffn_up_exps.weight", split_halves},
    {"experts.down_proj", "ffn_down_exps.weight"}};
constexpr GgufRules kQwen3Next = {
    .base = {.family = "qwen3_next", .architecture = "qwen3next", .hf_class = "Qwen3NextForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = std::span(kDeltaKeys).first(kKeysOfQwen3Next),
    .names = kQwen3NextNames,
    .norms_less_one = "norm.weight",
    .norms_as_they_are = "linear_attn.norm.weight",
    .back = back::gated_delta};
constexpr GgufRules kQwen35 = {.base = {.family = "qwen3_5",
                                        .architecture = "qwen35",
                                        .hf_class = "Qwen3_5ForConditionalGeneration",
                                        .vocabulary = Vocabulary::sentencepiece_first},
                               .keys_of = Keys::of_config,
                               .keys = kDeltaKeys,
                               .names = kQwen35Names,
                               .norms_less_one = "norm.weight",
                               .norms_as_they_are = "linear_attn.norm.weight",
                               .back = back::qwen3_5};
constexpr GgufRules kQwen35Moe = {.base = {.family = "qwen3_5_moe",
                                           .architecture = "qwen35moe",
                                           .hf_class = "Qwen3_5MoeForConditionalGeneration"},
                                  .keys_of = Keys::of_config,
                                  .keys = kDeltaKeys,
                                  .names = kQwen35Names,
                                  .norms_less_one = "norm.weight",
                                  .norms_as_they_are = "linear_attn.norm.weight",
                                  .back = back::qwen3_5_moe};

constexpr const GgufRules* kGroup[] = {&kMamba, &kMamba2, &kJamba, &kQwen3Next, &kQwen35, &kQwen35Moe};

}  // namespace
}  // namespace recurrent_in_gguf

GgufGroup gguf_recurrent() {
  return recurrent_in_gguf::kGroup;
}

}  // namespace assay::families
