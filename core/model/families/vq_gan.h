// A VQ-GAN as Janus draws with it, and the VAE of FLUX, whose convolutions are the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/blocks.h"

namespace assay::families {

struct VqNames {
  std::string path, down, up, block;
  std::array<std::string, 3> middle;
};

struct VqGan {
  VqNames names;
  Quantity base, latent, in, out, embedding, words;
  std::vector<std::uint64_t> multipliers;
  std::uint64_t blocks;
  bool doubled;
  bool words_of_it = true;  // what it tells are words of a table; else numbers (a VAE)
  bool narrowest_attends = words_of_it;
  bool draws = true;  // false: there is no decoder
  Quantity channels(std::size_t level) const { return Quantity(multipliers[level]) * base; }
};

Module vq_gan(const VqGan& gan);

}  // namespace assay::families
