// data/tuning's tables, made a part of the program by the build.
#pragma once

#include <string_view>
#include <vector>

namespace assay {

struct EmbeddedTuning {
  std::string_view file, json;
};
const std::vector<EmbeddedTuning>& embedded_tunings();

}  // namespace assay
