#include "core/model/derived_roles.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

namespace assay {
namespace {

struct Word {
  std::string_view word;
  Role role;
};

// The last name of a linear layer's module, as decoders and llama.cpp call them.
constexpr Word kAttentionWords[] = {{"q_proj", Role::q},
                                    {"wq", Role::q},
                                    {"query", Role::q},
                                    {"to_q", Role::q},
                                    {"k_proj", Role::k},
                                    {"wk", Role::k},
                                    {"key", Role::k},
                                    {"to_k", Role::k},
                                    {"v_proj", Role::v},
                                    {"wv", Role::v},
                                    {"value", Role::v},
                                    {"to_v", Role::v},
                                    {"o_proj", Role::attention_output},
                                    {"wo", Role::attention_output},
                                    {"to_out", Role::attention_output},
                                    {"qkv", Role::qkv},
                                    {"qkv_proj", Role::qkv},
                                    {"wqkv", Role::qkv},
                                    {"query_key_value", Role::qkv},
                                    {"c_attn", Role::qkv},
                                    {"q_a_proj", Role::q_a},
                                    {"q_b_proj", Role::q_b},
                                    {"kv_a_proj_with_mqa", Role::kv_a},
                                    {"kv_b_proj", Role::kv_b},
                                    {"out_proj", Role::attention_output},
                                    {"attn_q", Role::q},
                                    {"attn_k", Role::k},
                                    {"attn_v", Role::v},
                                    {"attn_qkv", Role::qkv},
                                    {"attn_output", Role::attention_output},
                                    {"attn_out", Role::attention_output},
                                    {"attn_q_a", Role::q_a},
                                    {"attn_q_b", Role::q_b},
                                    {"attn_kv_a_mqa", Role::kv_a},
                                    {"attn_kv_b", Role::kv_b},
                                    {"attn_k_b", Role::kv_b},
                                    {"attn_v_b", Role::kv_b},
                                    {"dense", Role::attention_output}};
constexpr Word kMlpWords[] = {{"gate_proj", Role::mlp_gate},
                              {"w1", Role::mlp_gate},
                              {"up_proj", Role::mlp_up},
                              {"w3", Role::mlp_up},
                              {"fc1", Role::mlp_up},
                              {"fc_in", Role::mlp_up},
                              {"c_fc", Role::mlp_up},
                              {"up", Role::mlp_up},
                              {"gate", Role::mlp_gate},
                              {"down_proj", Role::mlp_down},
                              {"w2", Role::mlp_down},
                              {"fc2", Role::mlp_down},
                              {"fc_out", Role::mlp_down},
                              {"down", Role::mlp_down},
                              {"gate_up_proj", Role::mlp_gate_up},
                              {"gate_up", Role::mlp_gate_up},
                              {"ffn_gate", Role::mlp_gate},
                              {"ffn_up", Role::mlp_up},
                              {"ffn_down", Role::mlp_down},
                              {"ffn_gate_up", Role::mlp_gate_up},
                              {"dense_h_to_4h", Role::mlp_up},
                              {"dense_4h_to_h", Role::mlp_down}};

bool holds(std::string_view name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// A word between dots, or underscores, and perhaps with a digit behind it: siglip, clip_model, siglip2.
bool has_word(std::string_view name, std::string_view word) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || name[at - 1] == '.' || name[at - 1] == '_';
    if (begins && (end == name.size() || !is_letter(name[end]))) return true;
  }
  return false;
}
bool has_word(std::string_view name, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return has_word(name, word); });
}

const Word* find_word(std::span<const Word> words, std::string_view own) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.word == own; });
  return at == words.end() ? nullptr : &*at;
}

constexpr std::string_view kVision[] = {"vision", "visual", "image", "video", "patch_embed"};
constexpr std::string_view kAudio[] = {"audio", "speech", "sound"};
constexpr std::string_view kProjectors[] = {"projector", "mm_proj", "multi_modal"};
// Towers and what joins them by names of their own: whole words of the name, before any layer's number.
constexpr std::string_view kVisionWords[] = {"vpm", "sam_model", "siglip", "clip"};
constexpr std::string_view kAudioWords[] = {"apm",      "talker",      "vocoder",      "token2wav",
                                            "code2wav", "codec_model", "depth_decoder"};
constexpr std::string_view kProjectorWords[] = {"connector", "aligner", "resampler",
                                                "perceiver", "mlp1",    "patch_merger"};
constexpr std::string_view kTables[] = {"embed", "embd", "wte", "wpe", "token_types"};
constexpr std::string_view kPositions[] = {"wpe", "pos", "token_types"};
constexpr std::string_view kHeads[] = {"lm_head", "embed_out", "output_head", "unembed"};
constexpr std::string_view kNorms[] = {"norm", "ln_", "layer_scale"};
constexpr std::string_view kNormVectors[] = {"scale", "gamma"};  // as JAX and others before torch call them
constexpr std::string_view kAttention[] = {"attn", "attention", "mamba",     "ssm",
                                           "conv", "mixer",     "recurrent", "rwkv"};
constexpr std::string_view kShared[] = {"shared_expert", "shared_mlp", "_shexp"};
constexpr std::string_view kRouters[] = {"router",      ".gate.weight",   ".wg.weight",  "e_score_correction",
                                         "expert_bias", ".ffn_gate_inp.", ".exp_probs_b"};
// What llama.cpp ends names by, of all experts of a layer and of shared ones.
constexpr std::string_view kGgufExperts[] = {"_exps", "_chexps", "_shexp"};
// How a GGUF begins the names of towers.
constexpr std::string_view kGgufVision = "v.", kGgufAudio = "a.", kGgufProjector = "mm.";

bool is_norm(std::string_view own, std::size_t dimensions) {
  const bool vector =
      std::find(std::begin(kNormVectors), std::end(kNormVectors), own) != std::end(kNormVectors);
  return holds(own, kNorms) || (dimensions == 1 && (vector || own.starts_with("ln")));
}

}  // namespace

DerivedRole derive_role(std::string_view name, std::size_t dimensions, bool in_layer, bool of_expert,
                        bool gguf) {
  const auto begins = [&](std::string_view start) { return gguf && name.starts_with(start); };
  DerivedRole derived;
  std::string_view module = name;
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (!name.ends_with(ending)) continue;
    module.remove_suffix(ending.size());
    derived.bias = ending == ".bias";
  }
  std::string_view own = module.substr(module.rfind('.') + 1);  // npos + 1: the whole
  for (const std::string_view ending : kGgufExperts) {
    if (own.ends_with(ending)) own.remove_suffix(ending.size());
  }
  const auto is = [&](Part part, Role role) {
    derived.part = part, derived.role = role;
    return derived;
  };
  // Within a layer of text a connector, or a second MLP, is its own; of the stack before it the names tell.
  const std::string_view stack = in_layer ? name.substr(0, name.find("{layer}")) : module;
  if (holds(name, kProjectors) || begins(kGgufProjector) || has_word(stack, kProjectorWords))
    return is(Part::projector, Role::tower);
  if (has_word(stack, kAudioWords)) return is(Part::audio, Role::tower);  // a talker may see
  if (holds(name, kVision) || name.starts_with("vit.") || begins(kGgufVision) ||
      has_word(stack, kVisionWords))
    return is(Part::vision, Role::tower);
  if (holds(name, kAudio) || begins(kGgufAudio)) return is(Part::audio, Role::tower);
  if (!in_layer && (holds(name, kHeads) || module == "output")) return is(Part::output, Role::output_head);
  if (!in_layer && is_norm(own, dimensions)) return is(Part::norm, Role::final_norm);
  if (!in_layer && holds(name, kTables)) {
    const bool positions = holds(name, kPositions);
    return is(Part::embedding, positions ? Role::position_embedding : Role::token_embedding);
  }
  if (is_norm(own, dimensions)) return is(Part::norm, in_layer ? Role::input_norm : Role::final_norm);
  const bool shared = holds(name, kShared);
  if (!of_expert && !shared && holds(name, kRouters)) return is(Part::router, Role::router);
  const Part mlp = of_expert ? Part::routed_expert : shared ? Part::shared_expert : Part::dense_mlp;
  const bool attends = !of_expert && !shared && holds(module, kAttention);
  const std::span<const Word> first = attends ? std::span<const Word>(kAttentionWords) : kMlpWords,
                              second = attends ? std::span<const Word>(kMlpWords) : kAttentionWords;
  const Word* word = find_word(first, own);
  if (word == nullptr && !of_expert) word = find_word(second, own);
  derived.part = attends || (word != nullptr && find_word(kMlpWords, own) == nullptr) ? Part::attention : mlp;
  if (word != nullptr) derived.role = word->role;
  derived.linear =
      in_layer && !derived.bias && dimensions >= 2 && (word != nullptr || own.ends_with("_proj"));
  return derived;
}

}  // namespace assay
