// How llama.cpp keeps Phi-3, Phi-4 and Phi-3.5-MoE (conversion/phi.py).
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/system/error.h"

namespace assay::families {
namespace phi_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;

// Phi-3's two lists of factors are tensors; how cos and sin are scaled beside them is a key.
ParsedJson phi3_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 1.0);
  return static_cast<std::uint64_t>(part * facts.number("hidden_size")) /
         static_cast<std::uint64_t>(facts.number("num_attention_heads"));
}
ParsedJson phi3_original(const GgufFacts& facts) {
  const auto found = facts.rope.find("original_max_position_embeddings");
  if (found != facts.rope.end() && found->is_number()) return *found;
  throw Error::input("original_max_position_embeddings is missing, which a GGUF of Phi-3 needs")
      .in(facts.config.source());
}
ParsedJson phi3_attention_factor(const GgufFacts& facts) {
  if (!facts.rope.contains("long_factor") || facts.rope["long_factor"].empty()) return nullptr;
  const double original = phi3_original(facts).get<double>();
  const double scale = facts.number("n_positions|max_position_embeddings") / original;
  if (scale <= 1) return 1.0;
  if (facts.rope.value("rope_type", "") == "yarn") return 0.1 * std::log(scale) + 1.0;
  return std::sqrt(1 + std::log(scale) / std::log(original));
}
ParsedJson phi3_window(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("sliding_window", 0));
}
ParsedJson rope_theta(const GgufFacts& facts) {
  return facts.rope.value("rope_theta", 10000.0);
}
constexpr GgufOwnKey kPhi3Early[] = {
    {.key = "rope.scaling.attn_factor", .form = Form::f32, .made = phi3_attention_factor}};
constexpr GgufOwnKey kPhi3Keys[] = {
    {.key = "context_length", .config = "n_positions|max_position_embeddings"},
    {.key = "rope.scaling.original_context_length", .made = phi3_original},
    {.key = "embedding_length", .config = "hidden_size|n_embd"},
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "block_count", .config = "num_hidden_layers"},
    {.key = "attention.head_count", .config = "num_attention_heads|n_head"},
    {.key = "attention.head_count_kv", .config = "num_key_value_heads|n_head_kv"},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .config = "rms_norm_eps"},
    {.key = "rope.dimension_count", .made = phi3_rotary},
    {.key = "rope.freq_base", .form = Form::f32, .made = rope_theta},
    {.key = "general", .form = Form::file_type},
    {.key = "attention.sliding_window", .made = phi3_window},
    {.key = "expert_used_count", .config = "num_experts_per_tok|num_experts_per_token"},
    {.key = "expert_count", .config = "num_local_experts|num_experts"}};
constexpr std::size_t kKeysOfPhi3 = 12;
constexpr GgufRules kPhi3 = {.base = {.family = "phi3",
                                      .architecture = "phi3",
                                      .hf_class = "Phi3ForCausalLM",
                                      .vocabulary = Vocabulary::sentencepiece_first},
                             .keys_of = Keys::own,
                             .keys = std::span(kPhi3Keys).first(kKeysOfPhi3),
                             .early_keys = kPhi3Early,
                             .more_tensors = own_keys::longrope_factors,
                             .rope_types = "longrope|su",
                             .tokenizer = GgufRules::Tokenizer::phi3,
                             .back = back::phi3};

constexpr GgufRules kPhimoe = {.base = {.family = "phimoe",
                                        .architecture = "phimoe",
                                        .hf_class = "PhiMoEForCausalLM",
                                        .vocabulary = Vocabulary::sentencepiece_first},
                               .keys_of = Keys::own,
                               .keys = kPhi3Keys,
                               .early_keys = kPhi3Early,
                               .more_tensors = own_keys::longrope_factors,
                               .rope_types = "longrope|su",
                               .tokenizer = GgufRules::Tokenizer::phi3,
                               .back = back::phi3};

constexpr const GgufRules* kGroup[] = {&kPhi3, &kPhimoe};

}  // namespace
}  // namespace phi_in_gguf

GgufGroup gguf_phi() {
  return phi_in_gguf::kGroup;
}

}  // namespace assay::families
