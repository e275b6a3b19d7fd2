// What makes samples of units of sound: HiFi-GAN over tables of units, languages and speakers.
#pragma once

#include <string>
#include <vector>

#include "core/model/tower_blocks.h"

namespace assay::families {

Module unit_vocoder(ConfigReader& config, std::string path);

// HiFi-GAN: each stage makes more samples of half as many channels, and mends them by blocks of several reaches.
struct HifiGan {
  std::string path;  // in front of its names: "hifi_gan."
  Quantity in;
  std::vector<std::uint64_t> longer,
      reaches;  // upsample_rates and upsample_kernel_sizes, where the config is silent
  bool last_bias = true;
};
void add_hifi_gan(ConfigReader& config, blocks::Tower& into, const HifiGan& of);

// Two convolutions with norms and a matrix, which tell how long each unit lasts.
struct Lengths {
  Quantity in, between, reach;
};
void add_lengths(blocks::Tower& into, const std::string& path, const Lengths& of);

}  // namespace assay::families
