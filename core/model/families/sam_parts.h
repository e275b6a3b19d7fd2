// What takes hints and what makes masks in SAM and its second version (sam.cpp).
#pragma once

#include <string>

#include "core/model/config.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

// The second version has points in one table, a token and a head that tell whether a thing is seen at all, and looks at
// finer pictures, too.
enum class SamVersion { first, second };
Module hint_taker(ConfigReader& config, SamVersion version);
Module mask_maker(ConfigReader& config, SamVersion version);

struct DeepWidths {
  Quantity in, between, out;
};
// Two matrices, and as many between as `depth` leaves.
void add_deep(blocks::Tower& into, const std::string& path, const DeepWidths& of, std::uint64_t depth);

}  // namespace assay::families
