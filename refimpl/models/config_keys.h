// What becomes of each key of a config.json when the model is run. Every one is
//
//   used        by the module tree or the forward rule, as the class of transformers uses it;
//   idle        of no effect on what this class computes, or on what any class computes (training,
//   generation,
//               bookkeeping);
//   fixed       a switch of the class whose other positions are not computed here: an error that names it;
//   or unread   neither the class nor the rule looks at it: a note.
//
// data/make_config_keys.py asks transformers what its classes read; the test ConfigKeys holds both lists
// against each other.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/known_keys.h"

namespace assay {

// used, of every decoder with rotary positions.
inline constexpr std::string_view kDecoderKeys[] = {
    "vocab_size",          "hidden_size",  "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "rms_norm_eps", "max_position_embeddings", "original_max_position_embeddings",
    "rope_theta",          "rope_scaling", "rope_parameters",         "tie_word_embeddings"};

// … of latent attention (MLA);
inline constexpr std::string_view kLatentKeys[] = {"attention_bias",   "kv_lora_rank",     "q_lora_rank",
                                                   "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"};
// … of DeepSeek's mixtures, chosen in groups;
inline constexpr std::string_view kDeepseekMixtureKeys[] = {
    "first_k_dense_replace", "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
    "moe_intermediate_size", "n_group",          "topk_group",       "routed_scaling_factor"};
// … of what chooses the keys of sparse attention (DSA).
inline constexpr std::string_view kIndexerKeys[] = {"index_n_heads", "index_head_dim", "index_topk"};

// kDecoderKeys, those that a family adds, and those of whole `groups`, in one constant list.
template <std::size_t N, std::size_t... M>
constexpr auto decoder_keys(const std::string_view (&more)[N], const std::string_view (&... groups)[M]) {
  std::array<std::string_view, std::size(kDecoderKeys) + N + (M + ... + 0)> all;
  std::size_t count = 0;
  const auto append = [&](const auto& keys) {
    for (const std::string_view key : keys) all[count++] = key;
  };
  append(kDecoderKeys), append(more), (append(groups), ...);
  return all;
}

// Of no effect, whatever the family.
bool is_idle_everywhere(std::string_view key);
// Switches that any class may have.
std::span<const FixedKey> fixed_everywhere();

// Throws Error::input for a fixed key with another value.
void require_fixed_keys(const ModelConfig& config, const ConfigKeys& keys);
// The unread ones, nested ones of rope_scaling as "rope_scaling.alpha"; in order, without those that are null
// or empty. None of a GGUF, whose metadata were renamed.
std::vector<std::string> unread_keys(const ModelConfig& config, const ConfigKeys& keys);

}  // namespace assay
