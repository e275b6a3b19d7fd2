// Rotary frequencies as the config asks for them: default, linear, dynamic NTK, YaRN, llama3, longrope, and
// any of these on a part of the head only.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/rope_frequencies.h"

namespace assay {

// What the class of transformers has where the config is silent, and which keys it reads at all.
struct RopeClass {
  double theta = 10000;
  std::size_t context = 2048;
  std::optional<std::size_t> original_context = {};  // of the class itself: it counts before rope_scaling's
  bool partial = false;        // partial_rotary_factor is read; GGUF's metadata always count
  bool longrope_only = false;  // and what early releases called "su" or "yarn" is meant by it
};

// Reads rope_theta, rope_scaling or rope_parameters, partial_rotary_factor, max_position_embeddings, and
// GGUF's tensors of factors; `layer_type` picks one of several rope_parameters ("sliding_attention"; "" where
// there is one only). `head_dim` is the part that may rotate. Throws Error::input on an unknown type or absurd
// numbers.
RopeRule read_rope(const Weights& weights, std::size_t head_dim, const RopeClass& of_class,
                   std::string_view layer_type = {});

// The context a config states: max_position_embeddings, n_positions.
std::size_t read_context(const ModelConfig& config, std::size_t otherwise);
// And how far rotary scaling takes it, where max_position_embeddings may say what it was before.
std::size_t stretched_context(const RopeRule& rule);

// The same frequencies for sequences of both lengths? Where not, keys cached for the one are of no use to the
// other.
bool same_frequencies(const RopeRule& rule, std::size_t length, std::size_t other);

// cos and sin for every token of the batch, each sequence by its own length.
struct RopeAngles {
  Matrix cos, sin;  // [tokens, rotary part / 2]
};
RopeAngles rope_angles(const RopeRule& rule, const Batch& batch, Ops& ops);

}  // namespace assay
