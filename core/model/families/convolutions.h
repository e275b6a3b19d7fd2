// Convolutions of images and their batch norms, of which encoders and detectors of many names are made.
#pragma once

#include <string>

#include "core/model/module_tree.h"

namespace assay::families {

// `in` are the channels that each of `out` looks at: one, where every channel has a convolution of its own.
struct Convolution {
  Quantity in, out;
  Quantity reach = 1;
  bool bias = false;
};
void add_convolution(Module& module, const std::string& path, const Convolution& of);
// With what it has seen, which is not counted.
void add_batch_norm(Module& module, const std::string& path, const Quantity& width);
// Both, under the two names.
void add_normed(Module& module, const std::string& convolution, const std::string& norm,
                const Convolution& of);

// A number of channels, made a multiple of `divisor` and not less than nine tenths of what it was (MobileNet's
// make_divisible, EfficientNet's round_filters).
Quantity divisible_channels(double channels, std::uint64_t divisor, std::uint64_t least);

}  // namespace assay::families
