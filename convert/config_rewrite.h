// The description of the converted weights, config.json or Mistral's own params.json, as the source's: quantization_config
// (there: quantization) as the engines read it, everything else as it was, in its order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/plan.h"

namespace assay {

struct RewrittenConfig {
  std::string name = "config.json";
  std::string text;                                         // with a final newline
  std::vector<std::pair<std::string, std::string>> beside;  // other files that say the same: name, text
  std::string note;  // what the loader must be told beside it; may be empty
};
RewrittenConfig rewrite_config(const ConversionPlan& plan, const ConvertOptions& options);

}  // namespace assay
