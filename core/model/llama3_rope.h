// Llama 3's scaling of rotary frequencies, as factors: config.json has four numbers ("rope_type": "llama3"),
// a GGUF the tensor rope_freqs.weight, what each frequency is divided by.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay {

struct Llama3Rope {
  float factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  float original_context = 8192;
};

// Wavelengths below the high-frequency one keep their frequency, those above the low-frequency one divide it
// by `factor`, and between the two it is interpolated (Llama 3.1). float32 throughout, as torch computes it:
// a number over a tensor is the tensor's reciprocal times the number.
std::vector<float> llama3_factors(const Llama3Rope& rope, float base, std::uint64_t head_dim);

// The other way. Context, low and high enter through their ratios alone, so that many say the same: one with
// the published low = 1, high = 4 where that fits, or Llama 4's high = 1, else with low = 1. nullopt: no such scaling gives these
// factors.
std::optional<Llama3Rope> llama3_rope_of(std::span<const float> factors, float base);

}  // namespace assay
