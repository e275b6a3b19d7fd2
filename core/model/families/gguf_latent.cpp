// How llama.cpp keeps families with latent attention beside DeepSeek V2 and V3 (conversion/deepseek.py, glm.py,
// mistral3.py, kimi_linear.py): DeepSeek V3.2, GLM-5, GLM-4.7-Flash, Kimi K2.5, Youtu-LLM, Mistral Small 4, Kimi Linear. Attention is absorbed: kv_b_proj in
// halves, one key head.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/families/gguf_latent_keys.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace latent_in_gguf {
namespace {

using Keys = GgufRules::Keys;
using ToldBy = GgufFamily::ToldBy;
using namespace gguf_transforms;
using namespace latent_keys;

ParsedJson shared_experts(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("n_shared_experts", 0));
}
// As the converter has it for this architecture alone.
ParsedJson tenth_of_mscale(const GgufFacts& facts) {
  const auto all = facts.rope.find("mscale_all_dim");
  return all == facts.rope.end() || !all->is_number() ? ParsedJson() : ParsedJson(0.1 * all->get<double>());
}
ParsedJson latent_rotary(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("qk_rope_head_dim") *
                                    facts.rope.value("partial_rotary_factor", 1.0));
}

constexpr GgufOwnKey kDeepseekKeys[] = {
    kDenseFirst,
    kVocabulary,
    kQueryRank,
    kCacheRank,
    kCacheWidth,
    kCachedValues,
    kKeyWidth,
    kValueWidth,
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size|intermediate_size"},
    kExpertCount,
    {.key = "expert_shared_count", .made = shared_experts},
    kWeightsScale,
    kWeightsNorm,
    {.key = "rope.dimension_count", .made = latent_rotary},
    {.key = "rope.scaling.yarn_log_multiplier", .form = Form::f32, .made = tenth_of_mscale},
    kIndexerHeads,
    kIndexerWidth,
    kIndexerChosen,
    kIndexerTypes};
constexpr std::size_t kWithoutIndexer = 15, kWithoutTypes = 18;

constexpr GgufRules kV32 = {.base = {.family = "deepseek_v32",
                                     .architecture = "deepseek32",
                                     .hf_class = "DeepseekV32ForCausalLM",
                                     .latent = true,
                                     .omits_tied_head = true},
                            .keys_of = Keys::of_config,
                            .keys = std::span(kDeepseekKeys).first(kWithoutTypes),
                            .back = back::deepseek_sparse};
constexpr GgufRules kGlm5 = {.base = {.family = "glm_moe_dsa",
                                      .architecture = "glm-dsa",
                                      .hf_class = "GlmMoeDsaForCausalLM",
                                      .latent = true,
                                      .omits_tied_head = true},
                             .keys_of = Keys::of_config,
                             .keys = kDeepseekKeys,
                             .tokenizer = GgufRules::Tokenizer::glm,
                             .back = back::deepseek_sparse};
constexpr GgufRules kGlmLite = {.base = {.family = "glm4_moe_lite",
                                         .architecture = "deepseek2",
                                         .hf_class = "Glm4MoeLiteForCausalLM",
                                         .told_by = ToldBy::nothing,
                                         .latent = true,
                                         .omits_tied_head = true},
                                .keys_of = Keys::of_config,
                                .keys = std::span(kDeepseekKeys).first(kWithoutIndexer),
                                .tokenizer = GgufRules::Tokenizer::glm};
constexpr GgufRules kK25 = {.base = {.family = "kimi_k25",
                                     .architecture = "deepseek2",
                                     .hf_class = "KimiK25ForConditionalGeneration",
                                     .told_by = ToldBy::nothing,
                                     .latent = true,
                                     .omits_tied_head = true},
                            .keys_of = Keys::of_config,
                            .keys = std::span(kDeepseekKeys).first(kWithoutIndexer)};

constexpr GgufRules kYoutu = {.base = {.family = "youtu",
                                       .architecture = "deepseek2",
                                       .hf_class = "YoutuForCausalLM",
                                       .told_by = ToldBy::nothing,
                                       .latent = true,
                                       .omits_tied_head = true},
                              .keys_of = Keys::of_config,
                              .keys = std::span(kDeepseekKeys).first(kWithoutIndexer)};

// Queries grow with the length, which the converter says nothing of.
ParsedJson temperature(const GgufFacts& facts) {
  const auto& of = hyperparameters(facts.tree).temperature;
  return of ? ParsedJson(of->scale) : ParsedJson();
}
ParsedJson temperature_length(const GgufFacts& facts) {
  const auto& of = hyperparameters(facts.tree).temperature;
  return of ? ParsedJson(static_cast<std::uint64_t>(of->floor)) : ParsedJson();
}
constexpr auto kMistral4Keys = [] {
  std::array<GgufOwnKey, kWithoutIndexer + 2> keys{};
  std::copy_n(std::begin(kDeepseekKeys), kWithoutIndexer, keys.begin());
  for (GgufOwnKey& key : keys) {
    if (key.key == "rope.dimension_count") key = {.key = key.key, .config = "qk_rope_head_dim"};
  }
  keys[kWithoutIndexer] = {.key = "attention.temperature_scale", .form = Form::f32, .made = temperature};
  keys[kWithoutIndexer + 1] = {.key = "attention.temperature_length", .made = temperature_length};
  return keys;
}();
constexpr GgufOwnName kMistral4Names[] = {{"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                          {"experts.down_proj", "ffn_down_exps.weight"}};
constexpr GgufRules kMistral4 = {.base = {.family = "mistral4",
                                          .architecture = "mistral4",
                                          .hf_class = "Mistral4ForCausalLM",
                                          .latent = true,
                                          .omits_tied_head = true},
                                 .keys_of = Keys::of_config,
                                 .keys = kMistral4Keys,
                                 .names = kMistral4Names,
                                 .back = back::mistral4};

constexpr GgufOwnKey kKimiKeys[] = {
    kVocabulary, kKeyHeads,    kConvolution, kDeltaWidth,
    kQueryRank,  kCacheRank,   kRotary,      kCacheWidth,
    kKeyWidth,   kValueWidth,  kExpertWidth, {.key = "expert_shared_count", .config = "num_shared_experts"},
    kDenseFirst, kWeightsScale};
constexpr GgufOwnName kKimiNames[] = {{"self_attn.q_conv1d.weight", "ssm_conv1d_q", as_convolution},
                                      {"self_attn.k_conv1d.weight", "ssm_conv1d_k", as_convolution},
                                      {"self_attn.v_conv1d.weight", "ssm_conv1d_v", as_convolution},
                                      {"self_attn.A_log", "ssm_a!", minus_exp},
                                      {"self_attn.dt_bias", "ssm_dt.bias"},
                                      {"self_attn.f_a_proj.weight", "ssm_f_a"},
                                      {"self_attn.f_b_proj.weight", "ssm_f_b"},
                                      {"self_attn.g_a_proj.weight", "ssm_g_a"},
                                      {"self_attn.g_b_proj.weight", "ssm_g_b"},
                                      {"self_attn.b_proj.weight", "ssm_beta"},
                                      {"self_attn.o_norm.weight", "ssm_norm"},
                                      {"self_attn.o_proj.weight", "attn_output"},
                                      {"gate.e_score_correction_bias", "exp_probs_b.bias"}};
constexpr GgufRules kKimiLinear = {.base = {.family = "kimi_linear",
                                            .architecture = "kimi-linear",
                                            .hf_class = "KimiLinearForCausalLM",
                                            .latent = true},
                                   .keys_of = Keys::of_config,
                                   .keys = kKimiKeys,
                                   .names = kKimiNames,
                                   .back = back::kimi_linear};

constexpr const GgufRules* kGroup[] = {&kV32, &kGlm5, &kGlmLite, &kK25, &kYoutu, &kMistral4, &kKimiLinear};

}  // namespace
}  // namespace latent_in_gguf

GgufGroup gguf_latent() {
  return latent_in_gguf::kGroup;
}

}  // namespace assay::families
