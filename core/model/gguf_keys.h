// What becomes of each key below the architecture of a GGUF ("llama.logit_scale") when the model is run, or
// written with a config.json. Every one is
//
//   read     under the name that config.json has for it, by the module tree or the forward rule;
//   neutral  of a value that changes nothing: a scale of 1, a cap of 0, no clamp;
//   idle     of no effect on logits, whatever it says;
//   an error that names it, where another value changes numbers that are not computed, or not told on;
//   or unread: a note.
//
// Keys: gguf-py/gguf/constants.py; what values mean: load_hparams of llama.cpp. The test GgufKeys holds the
// lists against those of the gguf package (data/make_gguf_keys.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/known_keys.h"

namespace assay {

enum class GgufKeyFate { read, changes_numbers, idle, unknown };
// Of a key without its architecture: "logit_scale".
GgufKeyFate fate_of_gguf_key(std::string_view key);

// `checkpoint` is a GGUF, `config` what ModelConfig::from_gguf() makes of it, `keys` those of a config.json
// that are computed or told on. Throws Error::input for a key whose value changes numbers and is not among
// them: "llama.logit_scale is 0.0625, " and `fault`.
void require_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config, const ConfigKeys& keys,
                       std::string_view fault = "which is not computed here");
// The unread ones, in order.
std::vector<std::string> unread_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const ConfigKeys& keys);

}  // namespace assay
