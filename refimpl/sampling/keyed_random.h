// Random numbers without a state: each is a function of a key and a counter, so that what is drawn at a position of
// a text depends on its seed and that position alone, whoever else is computed beside it, before it, or again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// What a number is for: numbers of one position and several purposes are independent.
enum class DrawPurpose : std::uint32_t {
  token = 0,       // the token itself
  acceptance = 1,  // speculation by rejection: is the draft taken?
  residual = 2,    // … and if not, which token instead
  draft = 3,       // the draft model's own choice
};

struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t sample = 0;  // of a request's n samples
};
// In [0, 1), 53 bits. Guesses that stand at one position have branches of their own.
double keyed_uniform(const DrawKey& key, std::uint64_t position, DrawPurpose purpose = DrawPurpose::token,
                     std::size_t branch = 0);

}  // namespace assay
