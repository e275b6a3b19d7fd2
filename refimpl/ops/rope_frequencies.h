// How fast each pair of a head rotates, and how cos and sin are scaled, for a sequence of some length.
// Formulas: rope_frequencies.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

struct RopeRule {
  enum class Type : std::uint8_t { standard, linear, dynamic, yarn, llama3, longrope };
  Type type = Type::standard;
  double theta = 10000;
  std::size_t rotary_dim = 0;  // the part of a head that rotates
  double factor = 1;
  std::size_t context = 0;           // max_position_embeddings
  std::size_t original_context = 0;  // what the model was first trained on
  // YaRN. cos and sin are scaled by attention_factor where the config gives it; else by
  // m(mscale) / m(mscale_all_dim) with m(s) = 0.1 s ln(factor) + 1, or m(1) where it gives neither.
  double beta_fast = 32, beta_slow = 1, attention_factor = 0, mscale = 0, mscale_all_dim = 0;
  bool truncate = true;  // the ramp's ends are rounded outwards to whole pairs
  // llama3
  double low_freq_factor = 1, high_freq_factor = 4;
  // longrope: one factor a pair
  std::vector<double> short_factor, long_factor;
};

struct RopeFrequencies {
  std::vector<double> inverse;  // radians a position, one a pair: rotary_dim / 2
  double scale = 1;             // of cos and sin
};
RopeFrequencies rope_frequencies(const RopeRule& rule, std::size_t sequence_length);

}  // namespace assay
