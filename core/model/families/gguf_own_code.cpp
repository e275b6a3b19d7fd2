// How llama.cpp keeps decoders whose checkpoints bring code of their own (conversion/exaone.py, internlm.py, orion.py, pangu.py,
// plamo.py, bailingmoe.py, deepseek.py, nanbeige.py): EXAONE 3, InternLM3, Orion, openPangu Embedded, PLaMo 3, Sarvam with experts,
// DeepSeekMoE, Nanbeige; and HRM-Text (hrm_text.py), whose layers are passed several times as Nanbeige's are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace own_code_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using Vocabulary = GgufFamily::Vocabulary;
using own_keys::head_width;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
constexpr GgufOwnKey kHeadRotary = {.key = "rope.dimension_count", .made = head_width};

// llama.cpp reads the ε of RMS norms, which the converter writes where config.json calls it so; EXAONE's says layer_norm_epsilon.
ParsedJson exaone_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 1.0);
  const double width = std::floor(facts.number("hidden_size") / facts.number("num_attention_heads"));
  return static_cast<std::uint64_t>(part * width);
}
constexpr GgufOwnKey kExaoneKeys[] = {{.key = "attention.layer_norm_rms_epsilon",
                                       .form = Form::f32,
                                       .config = "layer_norm_epsilon|rms_norm_eps"},
                                      {.key = "rope.dimension_count", .made = exaone_rotary}};
constexpr GgufRules kExaone3 = {.base =
                                    {
                                        .family = "exaone",
                                        .architecture = "exaone",
                                        .hf_class = "ExaoneForCausalLM",
                                        .writes_rope_factors = true,
                                    },
                                .keys_of = Keys::of_config,
                                .keys = kExaoneKeys};

// A Llama's file. Within the context, "dynamic" rotates as nothing does.
constexpr GgufOwnKey kWidths[] = {kVocabulary, kHeadRotary};
constexpr GgufRules kInternlm3 = {.base = {.family = "internlm3",
                                           .architecture = "llama",
                                           .hf_class = "InternLM3ForCausalLM",
                                           .told_by = ToldBy::nothing,
                                           .paired_heads = true,
                                           .vocabulary = Vocabulary::sentencepiece_first},
                                  .keys_of = Keys::of_config,
                                  .keys = kWidths,
                                  .rope_types = "dynamic",
                                  .tokenizer = GgufRules::Tokenizer::internlm3};

// Nanbeige is a Llama that is passed several times; llama.cpp norms between passes unless told otherwise.
ParsedJson passes(const GgufFacts& facts) {
  return facts.tree.attention.size();
}
ParsedJson unnormed_passes(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("skip_loop_final_norm");
  return said != nullptr && *said == true;
}
constexpr GgufOwnKey kNanbeigeKeys[] = {
    kVocabulary,
    kHeadRotary,
    {.key = "num_loops", .made = passes},
    {.key = "skip_loop_final_norm", .form = Form::flag, .made = unnormed_passes}};
constexpr GgufRules kNanbeige = {.base = {.family = "nanbeige",
                                          .architecture = "nanbeige",
                                          .hf_class = "NanbeigeForCausalLM",
                                          .paired_heads = true,
                                          .writes_rope_factors = true,
                                          .vocabulary = Vocabulary::llama},
                                 .keys_of = Keys::of_config,
                                 .keys = kNanbeigeKeys,
                                 .back = back::nanbeige};

// The stack of H stands behind that of L, and there are blocks for every pass, of which the first alone have tensors.
std::uint64_t layers_a_stack(const ModuleTree& tree) {
  for (const Module& module : tree.modules)
    if (module.path.starts_with("model.L_module.")) return module.repeat.indices.size();
  return 0;
}
std::string block_of_stack(const GgufSource& source) {
  const bool second = source.spec.name.starts_with("model.H_module.");
  const std::uint64_t number = std::stoull(source.layer.substr(std::string_view("blk.").size()));
  return fmt::format("blk.{}.", number + (second ? layers_a_stack(source.tree) : 0));
}
std::vector<DerivedTensor> in_its_stack(const GgufSource& source) {
  return {whole(gguf_name_of(source.stem, block_of_stack(source), false), source.stored, source.place)};
}
// Rows of as many matrices of one size as `stem` has names.
std::vector<DerivedTensor> split_in_its_stack(const GgufSource& source) {
  const LogicalTensor& stored = source.stored.tensors[source.place];
  const auto count = static_cast<std::uint64_t>(std::ranges::count(source.stem, '|')) + 1;
  const std::uint64_t rows = stored.rows / count;
  std::vector<DerivedTensor> made;
  std::string_view names = source.stem;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view name = names.substr(0, names.find('|'));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    made.push_back({.name = gguf_name_of(name, block_of_stack(source), false),
                    .shape = {rows, stored.columns},
                    .pieces = {{source.place, i * rows, rows}}});
  }
  return made;
}
ParsedJson stack_layers(const GgufFacts& facts) {
  return layers_a_stack(facts.tree);
}
ParsedJson stretched_embedding(const GgufFacts& facts) {
  return facts.number("embedding_scale");
}
ParsedJson reads_prefix_both_ways(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("prefix_lm");
  return said != nullptr && *said == true;
}
constexpr GgufOwnKey kHrmKeys[] = {
    kHeadRotary,
    {.key = "embedding_scale", .form = Form::f32, .made = stretched_embedding},
    {.key = "hrm.layers_per_stack", .made = stack_layers},
    {.key = "hrm.h_cycles", .config = "H_cycles"},
    {.key = "hrm.l_cycles", .config = "L_cycles"},
    {.key = "hrm.prefix_lm", .form = Form::flag, .made = reads_prefix_both_ways}};
constexpr GgufOwnName kHrmNames[] = {
    {"z_L_init", "hrm.z_l_init!"},
    {"attn.gqkv_proj.weight", "attn_gate|attn_q|attn_k|attn_v", split_in_its_stack},
    {"attn.o_proj.weight", "attn_output", in_its_stack},
    {"mlp.gate_up_proj.weight", "ffn_gate|ffn_up", split_in_its_stack},
    {"mlp.down_proj.weight", "ffn_down", in_its_stack}};
constexpr GgufRules kHrmText = {
    .base = {.family = "hrm_text", .architecture = "hrm_text", .hf_class = "HrmTextForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kHrmKeys,
    .names = kHrmNames,
    .lost = back::kNotTold};

ParsedJson orion_layout(const GgufFacts&) {
  return "Meta AI original pth";
}
ParsedJson orion_layers(const GgufFacts& facts) {
  return facts.tree.layers;
}
constexpr GgufOwnKey kOrionKeys[] = {
    {.key = "general", .form = Form::file_type},
    {.key = "tensor_data_layout", .form = Form::text, .made = orion_layout},
    {.key = "context_length", .config = "max_sequence_length|max_position_embeddings|model_max_length"},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "block_count", .made = orion_layers},
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "attention.head_count_kv", .config = "num_key_value_heads|num_attention_heads"},
    {.key = "attention.layer_norm_epsilon", .form = Form::f32, .config = "rms_norm_eps"}};
constexpr GgufRules kOrion = {.base = {.family = "orion",
                                       .architecture = "orion",
                                       .hf_class = "OrionForCausalLM",
                                       .vocabulary = Vocabulary::sentencepiece_first},
                              .keys_of = Keys::own,
                              .keys = kOrionKeys,
                              .back = back::orion};

constexpr GgufOwnKey kPanguKeys[] = {kVocabulary,
                                     kHeadRotary,
                                     {.key = "attention.key_length", .made = head_width},
                                     {.key = "attention.value_length", .made = head_width}};
constexpr GgufRules kPanguEmbedded = {.base = {.family = "pangu_embedded",
                                               .architecture = "pangu-embedded",
                                               .hf_class = "PanguEmbeddedForCausalLM",
                                               .omits_tied_head = true,
                                               .vocabulary = Vocabulary::sentencepiece_first},
                                      .keys_of = Keys::of_config,
                                      .keys = kPanguKeys,
                                      .tokenizer = GgufRules::Tokenizer::ernie};

// --- PLaMo 3 -----------------------------------------------------------------------------------------------------

// Norms are stored less 1; those behind attention less 1/5, behind MLPs less 1/√125.
std::vector<DerivedTensor> plus(const GgufSource& source, double offset) {
  const bool bare = source.stem.ends_with("!");
  const std::string stem(source.stem.substr(0, source.stem.size() - (bare ? 1 : 0)));
  DerivedTensor tensor = whole(source.layer + stem + (bare ? "" : ".weight"), source.stored, source.place);
  tensor.offset = static_cast<float>(offset);
  return {tensor};
}
std::vector<DerivedTensor> plus_one(const GgufSource& source) {
  return plus(source, 1);
}
std::vector<DerivedTensor> plus_fifth(const GgufSource& source) {
  return plus(source, 1.0 / 5);
}
std::vector<DerivedTensor> plus_root(const GgufSource& source) {
  return plus(source, 1 / std::pow(5.0, 1.5));
}
constexpr GgufOwnName kPlamo3Names[] = {{"pre_mixer_norm.weight", "attn_norm", plus_one},
                                        {"post_mixer_norm.weight", "post_attention_norm!", plus_fifth},
                                        {"pre_mlp_norm.weight", "ffn_norm", plus_one},
                                        {"post_mlp_norm.weight", "post_ffw_norm!", plus_root},
                                        {"mixer.q_norm.weight", "attn_q_norm", plus_one},
                                        {"mixer.k_norm.weight", "attn_k_norm", plus_one},
                                        {"model.norm.weight", "output_norm", plus_one}};
// Every so manieth layer sees everything, and a GGUF says no more of it.
ParsedJson plamo_period(const GgufFacts& facts) {
  const auto period = static_cast<std::uint64_t>(facts.number("sliding_window_pattern"));
  for (const AttentionGeometry& g : facts.tree.attention)
    for (const std::uint64_t layer : g.layers)
      if (period == 0 || (g.window != 0) != ((layer + 1) % period != 0))
        throw Error::refused(
            "layer_types and sliding_window_pattern differ, of which a GGUF of PLaMo 3 says the second")
            .in(facts.config.source());
  return period;
}
constexpr GgufOwnKey kPlamo3Keys[] = {
    kVocabulary,
    {.key = "attention.sliding_window", .config = "window_size|sliding_window"},
    {.key = "attention.sliding_window_pattern", .made = plamo_period}};
constexpr GgufRules kPlamo3 = {
    .base = {.family = "plamo3", .architecture = "plamo3", .hf_class = "Plamo3ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kPlamo3Keys,
    .names = kPlamo3Names,
    .activations = "swiglu|silu",
    .tokenizer = GgufRules::Tokenizer::plamo,
    .lost = "its norms are stored plus a number that is no float"};

// --- With experts --------------------------------------------------------------------------------------------------

constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"};
constexpr GgufOwnKey kSarvamKeys[] = {
    kHeadRotary,
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
    kVocabulary,
    kExpertWidth,
    {.key = "expert_shared_feed_forward_length", .made = own_keys::shared_expert_width},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    {.key = "expert_shared_count", .config = "num_shared_experts"},
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"}};
constexpr GgufOwnName kSarvamNames[] = {{"gate.expert_bias", "exp_probs_b.bias", gguf_transforms::centred}};
constexpr GgufRules kSarvam = {.base = {.family = "sarvam_moe",
                                        .architecture = "bailingmoe2",
                                        .hf_class = "SarvamMoEForCausalLM",
                                        .told_by = ToldBy::nothing},
                               .keys_of = Keys::of_config,
                               .keys = kSarvamKeys,
                               .names = kSarvamNames};

ParsedJson no_scaling(const GgufFacts&) {
  return "none";
}
constexpr GgufOwnKey kDeepseekKeys[] = {kHeadRotary,
                                        {.key = "rope.scaling.type", .form = Form::text, .made = no_scaling},
                                        {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
                                        kVocabulary,
                                        kExpertWidth,
                                        {.key = "expert_weights_scale", .form = Form::f32, .constant = 1},
                                        {.key = "expert_count", .config = "n_routed_experts"},
                                        {.key = "expert_shared_count", .config = "n_shared_experts"}};
constexpr GgufRules kDeepseekMoe = {.base = {.family = "deepseek_v1",
                                             .architecture = "deepseek",
                                             .hf_class = "DeepseekForCausalLM",
                                             .paired_heads = true,
                                             .vocabulary = Vocabulary::sentencepiece_first},
                                    .keys_of = Keys::of_config,
                                    .keys = kDeepseekKeys};

constexpr const GgufRules* kGroup[] = {&kExaone3, &kInternlm3, &kNanbeige,    &kOrion,  &kPanguEmbedded,
                                       &kPlamo3,  &kSarvam,    &kDeepseekMoe, &kHrmText};

}  // namespace
}  // namespace own_code_in_gguf

GgufGroup gguf_own_code() {
  return own_code_in_gguf::kGroup;
}

}  // namespace assay::families
