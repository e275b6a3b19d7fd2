// Another checkpoint whose scales are used in place of new ones (--scales-from).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/model/open_model.h"

namespace assay {

struct GivenScales : OpenedModel {
  GivenScales(const fs::path& path, int jobs);
  const LogicalTensor* find(std::string_view weight) const;
  std::map<std::string, std::uint32_t, std::less<>> places;
};

}  // namespace assay
