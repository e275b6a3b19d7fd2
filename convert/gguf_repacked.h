// The tensors of `--to gguf:mxfp4` and `gguf:nvfp4`: what is FP4 of that kind in its blocks, bit for bit (repack.h), all
// else as llama.cpp's converter has it beside them.
#pragma once

#include <vector>

#include "convert/plan.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_mix.h"
#include "core/model/gguf_rules.h"

namespace assay {

// `plan` has the checkpoint and how its weights are stored; `tensors` are in the converter's order of a file without
// FP4. Throws Error::refused where nothing is FP4 of that kind in whole blocks.
std::vector<DerivedOutput> repacked_tensors(const ConversionPlan& plan, const GgufRules& rules,
                                            std::vector<GgufTensor> tensors, GgufFileType type,
                                            const fs::path& in);

}  // namespace assay
