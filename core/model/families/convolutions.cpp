#include "core/model/families/convolutions.h"

#include <algorithm>

#include "core/model/families/norm_statistics.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using blocks::Tower;

void add_convolution(Module& module, const std::string& path, const Convolution& of) {
  Tower into(module, Part::vision);
  into.tensor(path + ".weight", {of.out, of.in, of.reach, of.reach});
  if (of.bias) into.tensor(path + ".bias", {of.out});
}

void add_batch_norm(Module& module, const std::string& path, const Quantity& width) {
  Tower(module, Part::vision).norm(path, width, true);
  add_norm_statistics(module, path, width.value());
}

void add_normed(Module& module, const std::string& convolution, const std::string& norm,
                const Convolution& of) {
  add_convolution(module, convolution, of);
  add_batch_norm(module, norm, of.out);
}

Quantity divisible_channels(double channels, std::uint64_t divisor, std::uint64_t least) {
  const auto rounded =
      static_cast<std::uint64_t>(channels + static_cast<double>(divisor) / 2) / divisor * divisor;
  std::uint64_t made = std::max(least, rounded);
  if (static_cast<double>(made) < 0.9 * channels) made += divisor;
  return made;
}

}  // namespace assay::families
