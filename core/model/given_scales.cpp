#include "core/model/given_scales.h"

namespace assay {

GivenScales::GivenScales(const fs::path& path, int jobs) : OpenedModel(path, jobs) {
  for (std::uint32_t i = 0; i < stored.tensors.size(); ++i) places.emplace(stored.tensors[i].name, i);
}

const LogicalTensor* GivenScales::find(std::string_view weight) const {
  const auto found = places.find(weight);
  return found == places.end() ? nullptr : &stored.tensors[found->second];
}

}  // namespace assay
