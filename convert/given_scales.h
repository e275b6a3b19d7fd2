// Another checkpoint whose scales are used in place of new ones (--scales-from).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/model/stored_reader.h"

namespace assay {

struct GivenScales {
  explicit GivenScales(const fs::path& path, int jobs);
  GivenScales(const GivenScales&) = delete;
  GivenScales& operator=(const GivenScales&) = delete;
  const LogicalTensor* find(std::string_view weight) const;
  Checkpoint checkpoint;
  StoredTensors stored;
  CheckpointReader reader;
  std::map<std::string, std::uint32_t, std::less<>> places;
};

}  // namespace assay
