// What makes samples of units of sound: HiFi-GAN over tables of units, languages and speakers.
#pragma once

#include <string>

#include "core/model/tower_blocks.h"

namespace assay::families {

Module unit_vocoder(ConfigReader& config, std::string path);

// Two convolutions with norms and a matrix, which tell how long each unit lasts.
struct Lengths {
  Quantity in, between, reach;
};
void add_lengths(blocks::Tower& into, const std::string& path, const Lengths& of);

}  // namespace assay::families
