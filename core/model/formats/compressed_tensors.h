// quantization_config as compressed-tensors writes it, and what the targets in its words share.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/ignored_modules.h"
#include "core/numeric/microscaling.h"
#include "core/system/json.h"
#include "core/system/report.h"

namespace assay {

// QuantizationArgs, in the order it writes them.
Json quantization_arguments(int bits, const char* type, const char* strategy, const Json& group,
                            bool dynamic);

// One of its presets: FP8_DYNAMIC and W8A8, MXFP4A16, MXFP8, NVFP4A16 and W4A16. `inputs` is null where activations
// stay as they are: a calibration that weights alone do not give is not made up.
struct CompressedScheme {
  const char* format;
  Json weights, inputs;
};
Json compressed_tensors_config(const CompressedScheme& scheme, const IgnoredModules& ignored);

// ties=even | ties=down; false: another option.
bool take_ties(std::string_view option, Fp4Ties& ties);

}  // namespace assay
