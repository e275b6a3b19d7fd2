// What the models of flash-linear-attention have in common: matrices into and out of the mixing of tokens, and widths told as
// factors of the hidden size.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// `keys` times `width`, which must be whole: expand_k × hidden_size.
Quantity expanded(ConfigReader& config, std::string_view keys, double class_default, const Quantity& width);

// A matrix that is cut between heads.
struct Mixing {
  std::string name;
  Quantity in, out;
  Role role;
  Quantity heads;
  bool bias = false;
};
void add_mixing(Module& module, const Mixing& m);
// The one behind, o_proj.
void add_mixing_out(Module& module, const Quantity& in, const Quantity& hidden, const Quantity& heads);

}  // namespace assay::families
