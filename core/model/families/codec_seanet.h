// SEANet's convolutions, with which codecs of sound begin and end (Mimi, EnCodec): each halving of time doubles what stands for it.
// Source: transformers 5.23 (mimi, encodec).
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// How a convolution is normed: not at all; by its weight, stored as lengths and directions; by what it makes.
enum class SeanetNorm { none, weight, group };

struct SeanetClass {
  std::uint64_t hidden, filters, last_reach;
  std::vector<std::uint64_t> ratios;
  bool shortcut;  // residual layers have a matrix on the way around
};

struct Seanet {
  Quantity hidden, channels, filters, reach, last_reach;
  std::vector<std::uint64_t> ratios;  // as the decoder takes them
  bool shortcut = false;
  SeanetNorm norm = SeanetNorm::none;
  std::uint64_t recurrent = 0;  // layers of an LSTM at the narrow end
  Quantity wide(std::size_t doublings) const {
    return doublings == 0 ? filters : Quantity(std::uint64_t{1} << doublings) * filters;
  }
};

inline constexpr std::uint64_t kMostSeanetLayers = 1000;  // of anything; no codec has a hundred

Seanet read_seanet(ConfigReader& config, const SeanetClass& of);
Module seanet_encoder(ConfigReader& config, const Seanet& of, const std::string& path);
Module seanet_decoder(ConfigReader& config, const Seanet& of, const std::string& path);

}  // namespace assay::families
