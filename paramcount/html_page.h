// The page that `--format html` writes: its fixed parts, between which the document goes as JSON.
#pragma once

#include <string_view>

namespace assay::html {

extern const std::string_view kLight, kDark, kStyle, kBody, kScriptStart, kHelperScript, kPictureScript,
    kScript, kPairScript, kScriptEnd;

}  // namespace assay::html
