// How llama.cpp keeps models with Mamba-2 beside attention (conversion/granite.py, falcon_h1.py): Granite 4, whose
// layers are one or the other, and Falcon-H1, whose layers are both. Falcon-H1's multipliers have no keys: they
// are multiplied into the weights.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace hybrid_2026_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

// --- Granite 4 ---------------------------------------------------------------------------------------------------

ParsedJson key_heads_of_layers(const GgufFacts& facts) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(0);
  for (const AttentionGeometry& geometry : facts.tree.attention) {
    for (const std::uint64_t layer : geometry.layers) list[layer] = geometry.kv_heads;
  }
  return list;
}
ParsedJson inner_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("mamba_expand", 2) * facts.number("hidden_size"));
}
// llama.cpp rotates where no layer has a state, and nowhere else; and where nothing rotates the context is as long as
// one likes.
ParsedJson rotating(const GgufFacts& facts) {
  const bool rotates = facts.tree.recurrent.empty();
  const ParsedJson* said = facts.find("position_embedding_type");
  if (rotates != (said != nullptr && *said == "rope"))
    throw Error::refused(
        rotates
            ? "position_embedding_type is not \"rope\", and llama.cpp rotates a Granite 4 of attention alone"
            : "position_embedding_type is \"rope\", and llama.cpp rotates nothing of a Granite 4 with states")
        .in(facts.config.source());
  return rotates;
}
ParsedJson unbounded(const GgufFacts& facts) {
  return facts.tree.recurrent.empty() ? ParsedJson() : ParsedJson(std::uint64_t{1} << 20);
}
constexpr GgufOwnKey kGranite4Keys[] = {
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "rope.dimension_count", .made = own_keys::head_width},
    {.key = "attention.scale", .form = Form::f32, .config = "attention_multiplier", .unless_zero = true},
    {.key = "embedding_scale", .form = Form::f32, .config = "embedding_multiplier", .unless_zero = true},
    {.key = "residual_scale", .form = Form::f32, .config = "residual_multiplier", .unless_zero = true},
    {.key = "logit_scale", .form = Form::f32, .config = "logits_scaling", .unless_zero = true},
    {.key = "expert_shared_feed_forward_length", .config = "shared_intermediate_size", .unless_zero = true},
    {.key = "ssm.conv_kernel", .config = "mamba_d_conv"},
    {.key = "ssm.state_size", .config = "mamba_d_state"},
    {.key = "ssm.group_count", .config = "mamba_n_groups"},
    {.key = "ssm.inner_size", .made = inner_width},
    {.key = "ssm.time_step_rank", .config = "mamba_n_heads"},
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = key_heads_of_layers},
    {.key = "rope.scaling.finetuned", .form = Form::flag, .made = rotating},
    {.key = "context_length", .made = unbounded}};

constexpr std::array<GgufOwnName, 10> kMambaNames = {{{"mamba.in_proj.weight", "ssm_in"},
                                                      {"mamba.in_proj.bias", "ssm_in"},
                                                      {"mamba.conv1d.weight", "ssm_conv1d", squeezed},
                                                      {"mamba.conv1d.bias", "ssm_conv1d"},
                                                      {"mamba.dt_bias", "ssm_dt.bias"},
                                                      {"mamba.A_log", "ssm_a!", minus_exp_as_column},
                                                      {"mamba.D", "ssm_d!", as_column},
                                                      {"mamba.norm.weight", "ssm_norm", rows_of_groups},
                                                      {"mamba.out_proj.weight", "ssm_out"},
                                                      {"mamba.out_proj.bias", "ssm_out"}}};
template <std::size_t N>
constexpr auto beside_mamba(const std::array<GgufOwnName, N>& names) {
  std::array<GgufOwnName, kMambaNames.size() + N> all;
  std::copy(names.begin(), names.end(), std::copy(kMambaNames.begin(), kMambaNames.end(), all.begin()));
  return all;
}
constexpr auto kExpertNames = beside_mamba(std::array<GgufOwnName, 4>{
    {{"block_sparse_moe.input_linear.weight", "ffn_gate_exps|ffn_up_exps", split_halves},
     {"block_sparse_moe.output_linear.weight", "ffn_down_exps"},
     {"shared_mlp.input_linear.weight", "ffn_gate_shexp|ffn_up_shexp", split_halves},
     {"shared_mlp.output_linear.weight", "ffn_down_shexp"}}});
constexpr auto kDenseNames = beside_mamba(
    std::array<GgufOwnName, 2>{{{"shared_mlp.input_linear.weight", "ffn_gate|ffn_up", split_halves},
                                {"shared_mlp.output_linear.weight", "ffn_down"}}});

constexpr GgufRules granite4(std::string_view architecture, std::span<const GgufOwnName> names,
                             bool (*is_of)(const ModuleTree&), bool (*told)(const GgufSaid&)) {
  return {.base = {.family = "granitemoehybrid",
                   .architecture = architecture,
                   .hf_class = "GraniteMoeHybridForCausalLM",
                   .told_by = ToldBy::nothing,
                   .paired_heads = true,
                   .vocabulary = Vocabulary::sentencepiece_first},
          .is_of = is_of,
          .keys_of = Keys::of_config,
          .keys = kGranite4Keys,
          .names = names,
          .ignores_head_dim = true,
          .back = back::granite_hybrid,
          .told = told};
}
bool with_experts(const ModuleTree& tree) {
  return !tree.recurrent.empty() && tree.experts > 0;
}
bool without_experts(const ModuleTree& tree) {
  return !tree.recurrent.empty() && tree.experts == 0;
}
bool of_attention_with_experts(const ModuleTree& tree) {
  return tree.recurrent.empty() && tree.experts > 0;
}
bool of_attention(const ModuleTree& tree) {
  return tree.recurrent.empty() && tree.experts == 0;
}
constexpr GgufRules kHybrid = granite4("granitehybrid", kExpertNames, with_experts, back::has_experts);
constexpr GgufRules kDense = granite4("granitehybrid", kDenseNames, without_experts, back::has_no_experts);
constexpr GgufRules kAttentionMoe =
    granite4("granitemoe", kExpertNames, of_attention_with_experts, back::is_granite4_attention);
constexpr GgufRules kAttention = granite4("granite", kDenseNames, of_attention, back::is_granite4_attention);
// --- Falcon-H1 ---------------------------------------------------------------------------------------------------

float multiplier(const GgufSource& source, const char* key, std::size_t place = 0) {
  const auto found = source.values.find(key);
  if (found == source.values.end() || found->is_null()) return 1;
  if (!found->is_array()) return found->get<float>();
  return place < found->size() ? (*found)[place].get<float>() : 1;
}
std::vector<DerivedTensor> times(const GgufSource& source, float first, float second = 1) {
  DerivedTensor tensor =
      whole(gguf_name_of(source.stem, source.layer, source.spec.bias), source.stored, source.place);
  tensor.pieces.front().factors = {first, second};
  return {tensor};
}
// A tied head is the embedding times another number, so that it is a tensor of its own here.
std::vector<DerivedTensor> embedding_times(const GgufSource& source) {
  std::vector<DerivedTensor> made = times(source, multiplier(source, "embedding_multiplier"));
  const bool has_head =
      std::any_of(source.stored.tensors.begin(), source.stored.tensors.end(),
                  [](const LogicalTensor& tensor) { return tensor.name == "lm_head.weight"; });
  if (!has_head) {
    made.push_back(times(source, multiplier(source, "lm_head_multiplier")).front());
    made.back().name = "output.weight";
  }
  return made;
}
std::vector<DerivedTensor> head_times(const GgufSource& source) {
  return times(source, multiplier(source, "lm_head_multiplier"));
}
std::vector<DerivedTensor> gate_times(const GgufSource& source) {
  return times(source, multiplier(source, "mlp_multipliers", 0));
}
std::vector<DerivedTensor> down_times(const GgufSource& source) {
  return times(source, multiplier(source, "mlp_multipliers", 1));
}
std::vector<DerivedTensor> attended_times(const GgufSource& source) {
  return times(source, multiplier(source, "attention_in_multiplier"));
}
std::vector<DerivedTensor> keys_times(const GgufSource& source) {
  return times(source, multiplier(source, "key_multiplier"), multiplier(source, "attention_in_multiplier"));
}
std::vector<DerivedTensor> attention_out_times(const GgufSource& source) {
  return times(source, multiplier(source, "attention_out_multiplier"));
}
std::vector<DerivedTensor> scan_out_times(const GgufSource& source) {
  return times(source, multiplier(source, "ssm_out_multiplier"));
}
// Gate, values, keys, queries and steps, each by its own.
std::vector<DerivedTensor> scan_in_times(const GgufSource& source) {
  DerivedTensor tensor = times(source, 1).front();
  tensor.pieces.clear();
  std::uint64_t row = 0;
  for (std::size_t part = 0; part < source.spec.parallel.members.size(); ++part) {
    const std::uint64_t rows = source.spec.parallel.members[part].size;
    DerivedTensor::Piece piece{source.place, row, rows};
    piece.factors = {multiplier(source, "ssm_in_multiplier"), multiplier(source, "ssm_multipliers", part)};
    tensor.pieces.push_back(piece);
    row += rows;
  }
  return {tensor};
}

constexpr GgufOwnName kFalconNames[] = {{"embed_tokens.weight", "token_embd", embedding_times},
                                        {"lm_head.weight", "output", head_times},
                                        {"pre_ff_layernorm.weight", "ffn_norm!"},
                                        {"gate_proj.weight", "ffn_gate", gate_times},
                                        {"down_proj.weight", "ffn_down", down_times},
                                        {"q_proj.weight", "attn_q", attended_times},
                                        {"k_proj.weight", "attn_k", keys_times},
                                        {"v_proj.weight", "attn_v", attended_times},
                                        {"o_proj.weight", "attn_output", attention_out_times},
                                        {"mamba.in_proj.weight", "ssm_in", scan_in_times},
                                        {"mamba.conv1d.weight", "ssm_conv1d", squeezed},
                                        {"mamba.conv1d.bias", "ssm_conv1d"},
                                        {"mamba.dt_bias", "ssm_dt.bias"},
                                        {"mamba.A_log", "ssm_a!", minus_exp_as_column},
                                        {"mamba.D", "ssm_d!", as_column},
                                        {"mamba.norm.weight", "ssm_norm", rows_of_groups},
                                        {"mamba.out_proj.weight", "ssm_out", scan_out_times},
                                        // A multiplier stands before some of them and behind others.
                                        {"_proj.bias", "", refused}};
ParsedJson falcon_inner(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(
      facts.number("mamba_d_ssm", facts.number("mamba_expand", 2) * facts.number("hidden_size")));
}
ParsedJson falcon_scans(const GgufFacts& facts) {
  return facts.tree.recurrent.front().heads;
}
ParsedJson falcon_epsilon(const GgufFacts& facts) {
  return facts.number("rms_norm_eps", 1e-5);
}
ParsedJson falcon_theta(const GgufFacts& facts) {
  return facts.rope.value("rope_theta", 1e11);
}
constexpr GgufOwnKey kFalconKeys[] = {
    {.key = "context_length", .config = "max_position_embeddings"},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "block_count", .config = "num_hidden_layers"},
    {.key = "ssm.conv_kernel", .config = "mamba_d_conv"},
    {.key = "ssm.inner_size", .made = falcon_inner},
    {.key = "ssm.state_size", .config = "mamba_d_state"},
    {.key = "ssm.time_step_rank", .made = falcon_scans},
    {.key = "ssm.group_count", .config = "mamba_n_groups"},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .made = falcon_epsilon},
    {.key = "general", .form = Form::file_type},
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "attention.head_count_kv", .config = "num_key_value_heads"},
    {.key = "attention.key_length", .made = own_keys::head_width},
    {.key = "attention.value_length", .made = own_keys::head_width},
    {.key = "rope.freq_base", .form = Form::f32, .made = falcon_theta}};
constexpr GgufRules kFalconH1 = {
    .base = {.family = "falcon_h1", .architecture = "falcon-h1", .hf_class = "FalconH1ForCausalLM"},
    .keys_of = Keys::own,
    .keys = kFalconKeys,
    .names = kFalconNames,
    .back = back::falcon_h1};

constexpr const GgufRules* kGroup[] = {&kHybrid, &kDense, &kAttentionMoe, &kAttention, &kFalconH1};

}  // namespace
}  // namespace hybrid_2026_in_gguf

GgufGroup gguf_hybrid_2026() {
  return hybrid_2026_in_gguf::kGroup;
}

}  // namespace assay::families
