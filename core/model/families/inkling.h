// What Inkling and Inkling 2 share: sizes of layers that see all and of those with a window, short convolutions, scores of
// relative places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/blocks.h"

namespace assay::families {

struct InklingSizes {
  blocks::Decoder d;
  blocks::HeadAttention full, narrow;
  Quantity relative, full_extent, window, kernel;
  std::vector<std::uint64_t> narrow_layers;
  bool is_narrow(std::uint64_t i) const {
    return std::binary_search(narrow_layers.begin(), narrow_layers.end(), i);
  }
  const blocks::HeadAttention& attention(std::uint64_t i) const { return is_narrow(i) ? narrow : full; }
};

struct InklingDefaults {
  std::uint64_t hidden, layers, heads, narrow_kv_heads, window;
};

InklingSizes read_inkling(ConfigReader& config, ModuleTree& tree, const InklingDefaults& of);

// Part::norm: behind attention and MLP, as what is read by role must be told from those behind keys and values.
void add_short_convolution(Module& module, const std::string& name, const Quantity& channels,
                           const Quantity& kernel, Part part = Part::attention);

// What these layers cache, and the last inputs of their convolutions of keys, values and both blocks.
void note_inkling_layers(ModuleTree& tree, const InklingSizes& s, const std::vector<std::uint64_t>& layers);

// What is added to the scores: a product of the query with a vector for each distance.
void add_relative_scores(Module& attend, const blocks::HeadAttention& a, const std::string& projection,
                         const InklingSizes& s, bool narrow);

}  // namespace assay::families
