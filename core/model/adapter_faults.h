// Adapters of low rank as PEFT saves them, adapter_model.safetensors beside adapter_config.json: for every module that is adapted
// a matrix A [r, inputs] and a matrix B [outputs, r]. PEFT loads what is there and says little of what is not; what the
// config promises and the file lacks leaves those modules as the base model has them.
// Source: peft 0.18, tuners/lora/config.py and utils/save_and_load.py.
#pragma once

#include "core/formats/checkpoint.h"
#include "core/system/finding.h"

namespace assay {

// adapter.half_missing, adapter.rank_differs, adapter.target_missing; each told once, of the first module. Nothing where no
// adapter_config.json of a LoRA lies beside the weights. Throws Error::input for one that is no JSON.
Findings adapter_faults(const Checkpoint& checkpoint);

}  // namespace assay
