// What the models of flash-linear-attention have in common: matrices into and out of the mixing of tokens, and widths told as
// factors of the hidden size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/blocks.h"

namespace assay::families {

// `keys` times `width`, which must be whole: expand_k × hidden_size.
Quantity expanded(ConfigReader& config, std::string_view keys, double class_default, const Quantity& width);

// The width of an MLP, of which hidden_ratio makes `width`: a whole multiple of `step`.
Quantity by_hidden_ratio(ConfigReader& config, double width, std::uint64_t step);

// A matrix that is cut between heads.
struct Mixing {
  std::string name;
  Quantity in, out;
  Role role;
  Quantity heads;
  bool bias = false;
};
void add_mixing(Module& module, const Mixing& m);
// Two in its place, over so few channels: name.lora.0 and name.lora.2.
void add_low_rank(Module& module, const Mixing& m, const Quantity& rank);
// The one behind, o_proj.
void add_mixing_out(Module& module, const Quantity& in, const Quantity& hidden, const Quantity& heads);

}  // namespace assay::families
