// How llama.cpp keeps dense decoders (conversion/*.py): OLMo, Granite, SmolLM3, Seed-OSS, EXAONE 4, ERNIE 4.5, Arcee,
// Mistral Small 3.1 and Ministral 3, Nemotron, Hunyuan, Jais 2, Command-R, StarCoder2, GLM-4, Gemma.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace dense_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using Vocabulary = GgufFamily::Vocabulary;
using own_keys::head_width;
using own_keys::windowed_layers;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
constexpr GgufOwnKey kWindow = {.key = "attention.sliding_window", .config = "sliding_window"};
constexpr GgufOwnKey kHeadRotary = {.key = "rope.dimension_count", .made = head_width};
constexpr GgufOwnKey kFileType = {.key = "general", .form = Form::file_type};

ParsedJson no_scaling(const GgufFacts&) {
  return "none";
}
constexpr GgufOwnKey kNoScaling = {.key = "rope.scaling.type", .form = Form::text, .made = no_scaling};

// A Llama's.
constexpr GgufOwnKey kLlamaKeys[] = {kVocabulary, kHeadRotary};

// OLMo-3 has windows in all layers but every fourth where layer_types does not say.
ParsedJson olmo3_windows(const GgufFacts& facts) {
  if (facts.find("sliding_window") == nullptr) return nullptr;
  if (facts.find("layer_types") != nullptr) return windowed_layers(facts);
  ParsedJson flags = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) flags.push_back((i + 1) % 4 != 0);
  return flags;
}
constexpr GgufOwnKey kOlmo3Keys[] = {
    kWindow, {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = olmo3_windows}};
constexpr GgufOwnKey kOlmoKeys[] = {
    {.key = "attention.layer_norm_epsilon", .form = Form::f32, .constant = 1e-5},
    {.key = "attention.clamp_kqv", .form = Form::f32, .config = "clip_qkv"}};
constexpr GgufRules kOlmo2 = {
    .base = {.family = "olmo2", .architecture = "olmo2", .hf_class = "Olmo2ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kOlmo3Keys};
constexpr GgufRules kOlmo3 = {.base = {.family = "olmo3",
                                       .architecture = "olmo2",
                                       .hf_class = "Olmo3ForCausalLM",
                                       .told_by = ToldBy::nothing},
                              .keys_of = Keys::of_config,
                              .keys = kOlmo3Keys,
                              .back = back::windows,
                              .told = back::has_window};
constexpr GgufRules kOlmo = {
    .base = {.family = "olmo", .architecture = "olmo", .hf_class = "OlmoForCausalLM", .paired_heads = true},
    .keys_of = Keys::of_config,
    .keys = kOlmoKeys};

constexpr GgufOwnKey kGraniteKeys[] = {
    kVocabulary,
    kHeadRotary,
    {.key = "attention.scale", .form = Form::f32, .config = "attention_multiplier", .unless_zero = true},
    {.key = "embedding_scale", .form = Form::f32, .config = "embedding_multiplier", .unless_zero = true},
    {.key = "residual_scale", .form = Form::f32, .config = "residual_multiplier", .unless_zero = true},
    {.key = "logit_scale", .form = Form::f32, .config = "logits_scaling", .unless_zero = true}};
constexpr GgufRules kGranite = {.base = {.family = "granite",
                                         .architecture = "granite",
                                         .hf_class = "GraniteForCausalLM",
                                         .paired_heads = true,
                                         .writes_rope_factors = true,
                                         .vocabulary = Vocabulary::llama},
                                .keys_of = Keys::of_config,
                                .keys = kGraniteKeys,
                                .ignores_head_dim = true};
constexpr GgufRules kSmollm3 = {.base = {.family = "smollm3",
                                         .architecture = "smollm3",
                                         .hf_class = "SmolLM3ForCausalLM",
                                         .paired_heads = true,
                                         .writes_rope_factors = true,
                                         .vocabulary = Vocabulary::llama},
                                .keys_of = Keys::of_config,
                                .keys = kLlamaKeys};
// Ministral 3's YaRN and the temperature of its queries; Mistral Small 3.1 has neither.
bool is_ministral3(const GgufFacts& facts) {
  const ParsedJson* type = facts.find("model_type");
  return type != nullptr && *type == "ministral3";
}
ParsedJson log_of_scale(const GgufFacts& facts) {
  return is_ministral3(facts) ? facts.rope.value("mscale_all_dim", ParsedJson()) : ParsedJson();
}
ParsedJson temperature(const GgufFacts& facts) {
  return is_ministral3(facts) ? facts.rope.value("llama_4_scaling_beta", ParsedJson()) : ParsedJson();
}
constexpr GgufOwnKey kMistral3Keys[] = {
    kVocabulary,
    kHeadRotary,
    {.key = "rope.scaling.yarn_log_multiplier", .form = Form::f32, .made = log_of_scale},
    {.key = "attention.temperature_scale", .form = Form::f32, .made = temperature}};
constexpr GgufRules kMistral3 = {.base = {.family = "mistral3",
                                          .architecture = "mistral3",
                                          .hf_class = "Mistral3ForConditionalGeneration",
                                          .paired_heads = true,
                                          .writes_rope_factors = true,
                                          .vocabulary = Vocabulary::llama},
                                 .keys_of = Keys::of_config,
                                 .keys = kMistral3Keys,
                                 .back = back::ministral};
constexpr GgufRules kArcee = {.base = {.family = "arcee",
                                       .architecture = "arcee",
                                       .hf_class = "ArceeForCausalLM",
                                       .paired_heads = true,
                                       .writes_rope_factors = true,
                                       .vocabulary = Vocabulary::llama},
                              .keys_of = Keys::of_config,
                              .keys = kLlamaKeys,
                              .activations = "relu2"};
constexpr GgufOwnName kSeedNames[] = {{"post_attention_layernorm.weight", "post_attention_norm"}};
constexpr GgufRules kSeedOss = {
    .base = {.family = "seed_oss", .architecture = "seed_oss", .hf_class = "SeedOssForCausalLM"},
    .keys_of = Keys::of_config,
    .names = kSeedNames};

ParsedJson exaone_windows(const GgufFacts& facts) {
  return facts.find("sliding_window") == nullptr ? ParsedJson() : windowed_layers(facts);
}
constexpr GgufOwnKey kExaone4Keys[] = {
    kVocabulary,
    kWindow,
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = exaone_windows}};
constexpr GgufRules kExaone4 = {.base = {.family = "exaone4",
                                         .architecture = "exaone4",
                                         .hf_class = "Exaone4ForCausalLM",
                                         .writes_rope_factors = true},
                                .keys_of = Keys::of_config,
                                .keys = kExaone4Keys,
                                .back = back::exaone4};
constexpr GgufRules kErnie = {.base = {.family = "ernie4_5",
                                       .architecture = "ernie4_5",
                                       .hf_class = "Ernie4_5ForCausalLM",
                                       .vocabulary = Vocabulary::sentencepiece_first},
                              .keys_of = Keys::of_config,
                              .tokenizer = GgufRules::Tokenizer::ernie,
                              .back = back::untied_bias};

ParsedJson nemotron_rotary(const GgufFacts& facts) {
  const auto factor = facts.rope.find("partial_rotary_factor");
  const double part = factor != facts.rope.end() && factor->is_number() ? factor->get<double>() : 0.5;
  const auto heads = static_cast<std::uint64_t>(facts.number("num_attention_heads"));
  return static_cast<std::uint64_t>(part * facts.number("hidden_size")) / heads;
}
ParsedJson nemotron_scaling(const GgufFacts& facts) {
  return facts.rope.contains("factor") && !facts.rope["factor"].is_null() ? "linear" : "none";
}
ParsedJson rope_factor(const GgufFacts& facts) {
  return facts.rope.value("factor", ParsedJson());
}
constexpr GgufOwnKey kNemotronKeys[] = {
    kVocabulary,
    {.key = "attention.layer_norm_epsilon",
     .form = Form::f32,
     .config = "layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps"},
    {.key = "rope.dimension_count", .made = nemotron_rotary},
    {.key = "rope.scaling.type", .form = Form::text, .made = nemotron_scaling},
    {.key = "rope.scaling.factor", .form = Form::f32, .made = rope_factor}};
constexpr GgufRules kNemotron = {.base = {.family = "nemotron",
                                          .architecture = "nemotron",
                                          .hf_class = "NemotronForCausalLM",
                                          .vocabulary = Vocabulary::sentencepiece_first},
                                 .keys_of = Keys::of_config,
                                 .keys = kNemotronKeys,
                                 .activations = "relu2",
                                 .norms_less_one = "norm.weight",
                                 .tokenizer = GgufRules::Tokenizer::nemotron};

constexpr GgufRules kHunyuan = {.base = {.family = "hunyuan_v1_dense",
                                         .architecture = "hunyuan-dense",
                                         .hf_class = "HunYuanDenseV1ForCausalLM",
                                         .omits_tied_head = true},
                                .keys_of = Keys::of_config,
                                .tokenizer = GgufRules::Tokenizer::hunyuan};
constexpr GgufOwnKey kJais2Keys[] = {kHeadRotary};
constexpr GgufRules kJais2 = {
    .base = {.family = "jais2", .architecture = "jais2", .hf_class = "Jais2ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kJais2Keys,
    .activations = "relu2"};

constexpr GgufOwnKey kLogitScale = {.key = "logit_scale", .form = Form::f32, .config = "logit_scale"};
ParsedJson cohere2_rotary(const GgufFacts& facts) {
  const double part = facts.number("rotary_pct", 1);
  const std::uint64_t width = static_cast<std::uint64_t>(facts.number("hidden_size")) /
                              static_cast<std::uint64_t>(facts.number("num_attention_heads"));
  return static_cast<std::uint64_t>(part * static_cast<double>(width));
}
// The context that the model was trained with, where config.json has it beside the shorter one.
constexpr GgufOwnKey kCohereKeys[] = {
    {.key = "context_length", .config = "model_max_length|max_position_embeddings"}, kLogitScale, kNoScaling};
constexpr GgufOwnKey kCohere2Keys[] = {
    kLogitScale, kWindow, kVocabulary, {.key = "rope.dimension_count", .made = cohere2_rotary}, kNoScaling};
constexpr GgufRules kCohere = {
    .base = {.family = "cohere", .architecture = "command-r", .hf_class = "CohereForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kCohereKeys};
constexpr GgufRules kCohere2 = {
    .base = {.family = "cohere2", .architecture = "cohere2", .hf_class = "Cohere2ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kCohere2Keys,
    .back = back::windows};

constexpr GgufRules kStarcoder2 = {
    .base = {.family = "starcoder2", .architecture = "starcoder2", .hf_class = "Starcoder2ForCausalLM"},
    .keys_of = Keys::of_config,
    .activations = "gelu_pytorch_tanh|gelu_new|gelu",
    .back = back::untied_bias};

ParsedJson glm_rotary(const GgufFacts& facts) {
  const auto factor = facts.rope.find("partial_rotary_factor");
  const double part = factor != facts.rope.end() && factor->is_number() ? factor->get<double>() : 0.5;
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * part);
}
constexpr GgufOwnKey kGlm4Keys[] = {{.key = "rope.dimension_count", .made = glm_rotary}};
constexpr GgufRules kGlm4 = {.base =
                                 {
                                     .family = "glm4",
                                     .architecture = "glm4",
                                     .hf_class = "Glm4ForCausalLM",
                                 },
                             .keys_of = Keys::of_config,
                             .keys = kGlm4Keys,
                             .tokenizer = GgufRules::Tokenizer::glm4};

constexpr const char* kRopeObjects[] = {"rope_parameters", "rope_scaling"};
// GLM-4V's heads turn neighbours, and llama.cpp's kernel for axes of positions the halves of what turns. Where the config
// names no axes rows stay where they are.
std::vector<DerivedTensor> turned_by_halves(const GgufSource& source) {
  DerivedTensor made =
      whole(gguf_name_of(source.stem, source.layer, source.spec.bias), source.stored, source.place);
  const bool axes = std::any_of(std::begin(kRopeObjects), std::end(kRopeObjects), [&](const char* key) {
    const auto rope = source.values.find(key);
    return rope != source.values.end() && rope->is_object() && rope->contains("mrope_section");
  });
  if (!axes) return {std::move(made)};
  made.order = HeadRows::halves_from_pairs;
  made.head_rows = source.tree.attention.front().qk_head_dim;
  made.turning_rows = hyperparameters(source.tree).ropes.front().rotary_dim;
  return {std::move(made)};
}
constexpr GgufOwnName kGlm4vNames[] = {{"self_attn.q_proj.weight", "attn_q", turned_by_halves},
                                       {"self_attn.q_proj.bias", "attn_q", turned_by_halves},
                                       {"self_attn.k_proj.weight", "attn_k", turned_by_halves},
                                       {"self_attn.k_proj.bias", "attn_k", turned_by_halves}};
constexpr GgufRules kGlm4v = {.base = {.family = "glm4v_text",
                                       .architecture = "glm4",
                                       .hf_class = "Glm4vForConditionalGeneration",
                                       .told_by = GgufFamily::ToldBy::nothing},
                              .keys_of = Keys::of_config,
                              .keys = kGlm4Keys,
                              .names = kGlm4vNames,
                              .rope_types = "mrope",
                              .tokenizer = GgufRules::Tokenizer::glm4};

ParsedJson gemma_key_heads(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_key_value_heads|num_attention_heads"));
}
// 1 / √query_pre_attn_scalar is the scale of scores, which no key keeps: llama.cpp takes the width of a head, but for the
// models that have as many layers as the 27 B ones hidden_size / heads.
void require_known_scale(const GgufFacts& facts, double width, double layers_of_27b) {
  const double heads = facts.number("num_attention_heads", 8);
  const bool is_27b = facts.number("num_hidden_layers", 26) == layers_of_27b;
  const double taken = is_27b ? std::floor(facts.number("hidden_size", 2304) / heads) : width;
  const double scalar = facts.number("query_pre_attn_scalar", 256);
  if (scalar == taken) return;
  throw Error::refused(
      fmt::format("query_pre_attn_scalar is {:g}, which GGUF cannot say: llama.cpp would take {:g}", scalar,
                  taken))
      .in(facts.config.source());
}
ParsedJson gemma2_width(const GgufFacts& facts) {
  require_known_scale(facts, head_width(facts).get<double>(), 46);
  return head_width(facts);
}
constexpr GgufOwnKey kGemmaKeys[] = {
    {.key = "context_length", .config = "max_position_embeddings"},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "block_count", .config = "num_hidden_layers"},
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "attention.head_count_kv", .made = gemma_key_heads},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .config = "rms_norm_eps"},
    {.key = "attention.key_length", .made = head_width},
    {.key = "attention.value_length", .made = head_width},
    kFileType,
    {.key = "attn_logit_softcapping", .form = Form::f32, .config = "attn_logit_softcapping"},
    {.key = "final_logit_softcapping", .form = Form::f32, .config = "final_logit_softcapping"},
    kWindow};
constexpr std::size_t kKeysOfGemma1 = 10;
constexpr auto kGemma2Keys = [] {
  std::array<GgufOwnKey, std::size(kGemmaKeys)> keys{};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = kGemmaKeys[i];
    if (keys[i].key == "attention.key_length") keys[i].made = gemma2_width;
  }
  return keys;
}();
constexpr std::string_view kGeluTanh = "gelu_pytorch_tanh|gelu|gelu_new";
constexpr GgufRules kGemma = {.base = {.family = "gemma",
                                       .architecture = "gemma",
                                       .hf_class = "GemmaForCausalLM",
                                       .omits_tied_head = true,
                                       .vocabulary = Vocabulary::sentencepiece_first},
                              .keys_of = Keys::own,
                              .keys = std::span(kGemmaKeys).first(kKeysOfGemma1),
                              .activations = kGeluTanh,
                              .norms_less_one = "norm.weight",
                              .tokenizer = GgufRules::Tokenizer::code_gemma};
constexpr GgufRules kGemma2 = {.base = {.family = "gemma2",
                                        .architecture = "gemma2",
                                        .hf_class = "Gemma2ForCausalLM",
                                        .omits_tied_head = true,
                                        .vocabulary = Vocabulary::sentencepiece_first},
                               .keys_of = Keys::own,
                               .keys = kGemma2Keys,
                               .activations = kGeluTanh,
                               .norms_less_one = "norm.weight",
                               .tokenizer = GgufRules::Tokenizer::gemma,
                               .back = back::gemma2};

// What the class has where a published config is silent.
ParsedJson context_or(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("max_position_embeddings", 131072));
}
ParsedJson heads_or(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_attention_heads", 8));
}
ParsedJson epsilon_or(const GgufFacts& facts) {
  return facts.number("rms_norm_eps", 1e-6);
}
ParsedJson width_or(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("head_dim", 256));
}
ParsedJson gemma3_width(const GgufFacts& facts) {
  require_known_scale(facts, facts.number("head_dim", 256), 62);
  return width_or(facts);
}
ParsedJson theta_or(const GgufFacts& facts) {
  return facts.rope.value("rope_theta", 1e6);
}
ParsedJson gemma3_window(const GgufFacts& facts) {
  if (facts.number("sliding_window_pattern", 0) == 1) return nullptr;
  return static_cast<std::uint64_t>(facts.number("sliding_window"));
}
ParsedJson key_heads_or(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_key_value_heads", 4));
}
constexpr GgufOwnKey kGemma3Keys[] = {
    {.key = "context_length", .made = context_or},
    {.key = "attention.head_count", .made = heads_or},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .made = epsilon_or},
    {.key = "attention.key_length", .made = gemma3_width},
    {.key = "attention.value_length", .made = width_or},
    {.key = "rope.freq_base", .form = Form::f32, .made = theta_or},
    {.key = "final_logit_softcapping",
     .form = Form::f32,
     .config = "final_logit_softcapping",
     .unless_zero = true},
    {.key = "attention.sliding_window", .made = gemma3_window},
    {.key = "attention.head_count_kv", .made = key_heads_or}};
constexpr GgufRules kGemma3 = {.base = {.family = "gemma3",
                                        .architecture = "gemma3",
                                        .hf_class = "Gemma3ForCausalLM",
                                        .vocabulary = Vocabulary::sentencepiece_first},
                               .keys_of = Keys::of_config,
                               .keys = kGemma3Keys,
                               .activations = kGeluTanh,
                               .norms_less_one = "norm.weight",
                               .tokenizer = GgufRules::Tokenizer::gemma,
                               .back = back::gemma3};

// --- Gemma 3n ----------------------------------------------------------------------------------------------------

// As llama.cpp has them for the first layers (gguf_demands_2026.cpp): the normal distribution's quantile of 0.95, as
// torch has it in float32, and of 0.
ParsedJson sparsity_scales(const GgufFacts& facts) {
  constexpr double kOf95 = 1.6448535919189453;
  ParsedJson scales = ParsedJson::array();
  const ParsedJson* pattern = facts.find("activation_sparsity_pattern");
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) {
    const bool sparse = pattern == nullptr || i >= pattern->size() ? i < 10 : (*pattern)[i] != 0.0;
    scales.push_back(sparse ? kOf95 : -std::numeric_limits<double>::infinity());
  }
  return scales;
}
ParsedJson altup_active(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("altup_active_idx", 0));
}
ParsedJson altup_inputs(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("altup_num_inputs", 4));
}
ParsedJson width_of_own(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("hidden_size_per_layer_input", 256));
}
ParsedJson shared_caches(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_kv_shared_layers", 15));
}
constexpr GgufOwnKey kOwn3nKeys[] = {
    {.key = "altup.active_idx", .made = altup_active},
    {.key = "altup.num_inputs", .made = altup_inputs},
    {.key = "embedding_length_per_layer_input", .made = width_of_own},
    {.key = "attention.shared_kv_layers", .made = shared_caches},
    {.key = "activation_sparsity_scale", .form = Form::f32s, .made = sparsity_scales},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = own_keys::windows_by_layer}};
constexpr auto kGemma3nKeys = [] {
  std::array<GgufOwnKey, std::size(kGemma3Keys) + std::size(kOwn3nKeys)> keys{};
  for (std::size_t i = 0; i < std::size(kGemma3Keys); ++i) {
    keys[i] = kGemma3Keys[i];
    if (keys[i].key == "attention.key_length") keys[i].made = width_or;
  }
  for (std::size_t i = 0; i < std::size(kOwn3nKeys); ++i) keys[std::size(kGemma3Keys) + i] = kOwn3nKeys[i];
  return keys;
}();
// Layers that read the caches of others have keys and values all the same, which llama.cpp loads.
constexpr GgufOwnName kGemma3nNames[] = {
    {"altup_projections.0.weight", ""},
    {"altup_projections.1.weight", ""},
    {"altup_projections.2.weight", "altup_proj", gguf_transforms::stacked_siblings},
    {"altup_unembed_projections.0.weight", ""},
    {"altup_unembed_projections.1.weight", ""},
    {"altup_unembed_projections.2.weight", "altup_unembd_proj", gguf_transforms::stacked_siblings},
    {"embed_tokens_per_layer.weight", "per_layer_token_embd", gguf_transforms::padded_rows},
    {"per_layer_model_projection.weight", "per_layer_model_proj"},
    {"per_layer_projection_norm.weight", "per_layer_proj_norm"},
    {"self_attn.k_proj.weight", "attn_k"},
    {"self_attn.v_proj.weight", "attn_v"},
    {"self_attn.k_norm.weight", "attn_k_norm"},
    {"altup.correct_output_scale", "altup_correct_scale"},
    {"altup.correction_coefs.weight", "altup_correct_coef"},
    {"altup.prediction_coefs.weight", "altup_predict_coef"},
    {"altup.modality_router.weight", "altup_router"},
    {"altup.router_norm.weight", "altup_router_norm"},
    {"laurel.linear_left.weight", "laurel_l"},
    {"laurel.linear_right.weight", "laurel_r"},
    {"laurel.post_laurel_norm.weight", "laurel_post_norm"},
    {"per_layer_input_gate.weight", "inp_gate"},
    {"per_layer_projection.weight", "proj"},
    {"post_per_layer_input_norm.weight", "post_norm"}};
constexpr GgufRules kGemma3n = {.base = {.family = "gemma3n",
                                         .architecture = "gemma3n",
                                         .hf_class = "Gemma3nForConditionalGeneration",
                                         .vocabulary = Vocabulary::sentencepiece_first},
                                .keys_of = Keys::of_config,
                                .keys = kGemma3nKeys,
                                .names = kGemma3nNames,
                                .activations = "gelu_pytorch_tanh",
                                .f32_parts = "_coef",
                                .tokenizer = GgufRules::Tokenizer::gemma,
                                .back = back::gemma3n};

constexpr const GgufRules* kGroup[] = {&kGlm4v,   &kOlmo2,    &kOlmo3,   &kOlmo,    &kGranite,    &kSmollm3,
                                       &kArcee,   &kMistral3, &kSeedOss, &kExaone4, &kErnie,      &kNemotron,
                                       &kHunyuan, &kJais2,    &kCohere,  &kCohere2, &kStarcoder2, &kGlm4,
                                       &kGemma,   &kGemma2,   &kGemma3,  &kGemma3n};

}  // namespace
}  // namespace dense_in_gguf

GgufGroup gguf_dense() {
  return dense_in_gguf::kGroup;
}

}  // namespace assay::families
