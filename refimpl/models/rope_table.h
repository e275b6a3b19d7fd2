// Rotary frequencies as the config asks for them: default, linear, dynamic NTK, YaRN, llama3, longrope, and
// any of these on a part of the head only.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/rope_frequencies.h"

namespace assay {

// Reads rope_theta, rope_scaling or rope_parameters, partial_rotary_factor, max_position_embeddings, and
// GGUF's tensors of factors; `layer_type` picks one of several rope_parameters ("sliding_attention"; "" where
// there is one only). `head_dim` is the part that may turn. Throws Error::input on an unknown type or absurd
// numbers.
RopeRule read_rope(const Weights& weights, std::size_t head_dim, double default_theta,
                   std::string_view layer_type = {});

// The context a config states (max_position_embeddings and its aliases).
std::size_t read_context(const ModelConfig& config, std::size_t otherwise);
// And how far rotary scaling takes it, where max_position_embeddings may say what it was before.
std::size_t stretched_context(const RopeRule& rule);

// The same frequencies for sequences of both lengths? Where not, keys cached for the one are of no use to the
// other.
bool same_frequencies(const RopeRule& rule, std::size_t length, std::size_t other);

// cos and sin for every token of the batch, each sequence by its own length.
struct RopeAngles {
  Matrix cos, sin;  // [tokens, turned part / 2]
};
RopeAngles rope_angles(const RopeRule& rule, const Batch& batch, Ops& ops);

}  // namespace assay
