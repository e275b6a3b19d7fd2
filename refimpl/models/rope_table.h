// cos and sin of a batch's positions, by the rule that the config asks for.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/rope_frequencies.h"

namespace assay {

// With the factors that a GGUF carries as tensors: Llama 3's, already worked out, and longrope's two lists.
// Throws Error::input where they are missing or misshapen.
RopeRule with_stored_factors(RopeRule rule, const Weights& weights);

// How far rotary scaling takes the context, where max_position_embeddings may say what it was before.
std::size_t stretched_context(const RopeRule& rule);

// The same frequencies for sequences of both lengths? Where not, keys cached for the one are of no use to the
// other.
bool same_frequencies(const RopeRule& rule, std::size_t length, std::size_t other);

// cos and sin for every token of the batch, each sequence by its own length.
struct RopeAngles {
  Matrix cos, sin;  // [tokens, rotary part / 2]
  // Of each sequence whose cache renumbers its rows: of all of them, the step's included. Empty where none does.
  std::vector<RopeAngles> of_rows = {};
};
// `stretch`: what each pair's frequency is multiplied by, where the model learnt it (LeRoPE).
RopeAngles rope_angles(const RopeRule& rule, const Batch& batch, Ops& ops,
                       std::span<const double> stretch = {});
// Of a text of `length` tokens, at some places: [places, rotary part / 2].
RopeAngles angles_at(const RopeRule& rule, std::span<const std::size_t> places, std::size_t length, Ops& ops);
// Those of the other way round.
RopeAngles turned_back(RopeAngles angles, Ops& ops);

// How much longer queries are made far from the beginning of a text: [tokens, 1]
Matrix temperatures(const Hyperparameters::Temperature& rule, const Batch& batch, Ops& ops);

}  // namespace assay
