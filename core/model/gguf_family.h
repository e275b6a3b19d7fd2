// How llama.cpp keeps the families that are written as GGUF and read back: facts that each family's own file
// states (core/model/families). Source: llama.cpp's conversion/*.py.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/known_keys.h"
#include "core/model/module_tree.h"

namespace assay {

inline constexpr std::string_view kCarriedKeys[] = {"rms_norm_eps", "rope_theta", "rope_scaling"};

struct GgufFamily {
  std::string_view family;        // ModuleTree::family, and the model_type of its config.json
  std::string_view architecture;  // general.architecture
  std::string_view hf_class;      // "LlamaForCausalLM"
  // What tells its files from others of the architecture; `nothing`: they are read as another family's.
  enum class ToldBy { architecture, experts, sigmoid_gating, nothing } told_by = ToldBy::architecture;
  bool paired_heads = false;         // q and k rows are stored in pairs (HeadRows)
  bool writes_head_dim = false;      // the class derives head_dim, so that key_length is always written
  bool writes_widths = false;        // vocab_size and rope.dimension_count
  bool writes_expert_width = false;  // expert_feed_forward_length
  bool writes_rope_factors = false;  // Llama 3's, as the tensor rope_freqs.weight
  bool latent = false;  // absorbed latent attention: kv_b in halves, one key head, keys of its own
  bool omits_tied_head = false;
  bool always_renormalizes = false;  // the weights of the chosen experts, whatever norm_topk_prob says
  // Tokenizers are tokenizer.json's; tokenizer.model's where there is one; Llama's besides, with BPE that
  // falls back to bytes.
  enum class Vocabulary { byte_level, sentencepiece_first, llama } vocabulary = Vocabulary::byte_level;

  // And back: how its config.json counts experts, says which biases there are, which of topk_method.
  std::string_view experts_key = "num_experts";
  std::span<const std::string_view> bias_keys = {};
  std::string_view topk_method = {};  // "": by the groups, greedy or group_limited_greedy
  bool renormalizes_by_default = false;
  // Names of config.json that are written and that the class computes with, of those that a key of a GGUF may
  // be told on by.
  ConfigKeys carried = {kCarriedKeys};
};

// nullptr: not among the families that can be written as GGUF.
const GgufFamily* gguf_family(std::string_view family);
inline const GgufFamily* gguf_family(const ModuleTree& tree) {
  return gguf_family(std::string_view(tree.family));
}
std::vector<const GgufFamily*> gguf_families();

}  // namespace assay
