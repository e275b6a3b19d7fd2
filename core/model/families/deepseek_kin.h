// What the kin of DeepSeek-V3.2 of 2026 share.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

struct MixtureDefaults {
  std::uint64_t experts, active, width;
};
// V3's router and shared experts, of which there are some.
blocks::Mixture read_kin_mixture(ConfigReader& config, ModuleTree& tree, const blocks::Decoder& d,
                                 const MixtureDefaults& of);

// Hyper-connections: which streams a block reads, and how its output is dealt out to them.
void add_hyper_connection(Module& module, const std::string& path, const Quantity& coefficients,
                          std::uint64_t scales, const Quantity& streams, const Quantity& hidden);

}  // namespace assay::families
