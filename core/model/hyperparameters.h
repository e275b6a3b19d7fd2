// What a forward pass computes with beyond the shapes of the module tree: ε, rotary positions, scales, caps,
// the choice of experts. Read once, by the family, from config.json (or GGUF metadata under its names), with
// the defaults of the class of transformers where it is silent; the key stands beside each.
//
//   const Hyperparameters& h = hyperparameters(tree);      core/model/module_tree.h
//
// Windows, grouped heads and latent ranks are the tree's (AttentionGeometry), as are biases, sinks and the
// layers of multi-token prediction: tensors, which are there or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// How positions rotate heads: rope_scaling, rope_parameters and what stands beside them. The formulas are
// rope_frequencies()'s, refimpl/ops.
struct RopeRule {
  enum class Type : std::uint8_t { standard, linear, dynamic, yarn, llama3, longrope, proportional };
  Type type = Type::standard;        // rope_type, type
  double theta = 10000;              // rope_theta
  std::size_t rotary_dim = 0;        // the part of a head that rotates: partial_rotary_factor of it
  double factor = 1;                 // factor; else context / original_context
  std::size_t context = 0;           // max_position_embeddings
  std::size_t original_context = 0;  // original_max_position_embeddings: what it was first trained on
  // YaRN. cos and sin are scaled by attention_factor where the config gives it; else by
  // m(mscale) / m(mscale_all_dim) with m(s) = 0.1 s ln(factor) + 1, or m(1) where it gives neither.
  double beta_fast = 32, beta_slow = 1, attention_factor = 0, mscale = 0, mscale_all_dim = 0;
  std::size_t moving_pairs = 0;  // proportional: the first so many; the rest stand still
  bool truncate = true;          // the ramp's ends are rounded outwards to whole pairs
  // llama3
  double low_freq_factor = 1, high_freq_factor = 4;
  // longrope: one factor a pair. A GGUF has them as tensors, and the weights' reader puts them here.
  std::vector<double> short_factor, long_factor;
};

// DeepSeek's ways of choosing experts (arXiv 2405.04434 §2.2, 2412.19437 §2.1.2), and what others have of them.
struct ExpertRouting {
  enum class Method : std::uint8_t { greedy, group_limited_greedy, noaux_tc };
  Method method = Method::greedy;               // topk_method
  std::uint64_t groups = 1, chosen_groups = 1;  // n_group, topk_group
  double scale = 1;                             // routed_scaling_factor
  bool renormalize = false;                     // norm_topk_prob: weights of the chosen add up to 1
};

struct Hyperparameters {
  double epsilon = 1e-6;        // rms_norm_eps; layer_norm_epsilon
  std::string activation;       // hidden_act, hidden_activation, activation_function, as ACT2FN names it
  std::string activation_key;   // under which of these
  double activation_limit = 0;  // swiglu_limit; 0: no clamp
  std::uint64_t context = 0;    // max_position_embeddings, n_positions
  std::vector<RopeRule> ropes;  // one, or one for each kind of layer; none where positions are learnt
  // By layer: which of `ropes`; nullopt: the layer rotates nothing.
  std::vector<std::optional<std::size_t>> rope_of;
  // Elements 2i and 2i + 1 of a head rotate together, not i and i + d/2: rope_interleave; and in GGUFs of
  // Llamas, whose rows are put in that order.
  bool interleaved_pairs = false;
  double attention_scale = 0;    // of scores; 0: 1/√(width of a head). 1/√query_pre_attn_scalar
  bool scaled_by_layer = false;  // scores / (layer + 1) as well: scale_attn_by_inverse_layer_idx
  double attention_cap = 0, final_cap = 0;  // attn_logit_softcapping, final_logit_softcapping; 0: none
  double embedding_scale = 1;               // scale_emb; Gemma: √hidden_size
  double residual_scale = 1;                // scale_depth / √num_hidden_layers; residual_multiplier
  double head_scale = 1;                    // dim_model_base / hidden_size; logit_scale; 1 / logits_scaling
  double value_scale = 1;                   // attention_value_scale
  double clip_qkv = 0;                      // clip_qkv: queries, keys and values lie in ± this; 0: anywhere
  // Attention by linear biases in place of rotation: the largest exponent of their slopes, 8. 0: none.
  double alibi_exponent = 0;
  // Attention and MLP both see what enters the layer: use_parallel_residual, parallel_attn.
  bool parallel_branches = false;
  // q and k are made of length √(head_dim) after they were rotated: Llama 4's use_qk_norm.
  bool unit_heads = false;
  // Queries × 1 + scale · ln(1 + ⌊(position + offset) / floor⌋), by layer where it is not all of them.
  struct Temperature {
    double scale = 0, floor = 1, offset = 0;  // attn_scale, floor_scale
    std::vector<bool> layers;                 // empty: all
  };
  std::optional<Temperature> temperature;
  ExpertRouting routing;
};

}  // namespace assay
