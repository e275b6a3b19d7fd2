// Names of a checkpoint that nobody described, with the numbers in them that count layers and experts: those that repeat the
// same tensors, or that stand behind a word for a layer. Other numbers stay what they are.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/model/stored_form.h"

namespace assay {

// A name cut at its dots, and before and behind the number of its layer and of its expert: "layer_3.up" is "layer_", "3", "up".
struct CutName {
  std::vector<std::string> parts;
  const LogicalTensor* tensor;
  std::optional<std::size_t> layer, expert;  // places in parts
  std::set<std::size_t> glued = {};          // numbers before which no dot stands

  // Of the parts from `begin` on, with placeholders in the place of both numbers.
  std::string joined(std::size_t begin, std::size_t end) const;
  std::uint64_t number(std::size_t at) const;
};

std::vector<CutName> cut_names(const StoredTensors& stored);

}  // namespace assay
