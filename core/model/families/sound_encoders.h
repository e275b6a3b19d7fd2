// What stands behind an encoder of sound by itself.
#pragma once

#include <optional>
#include <string_view>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

struct SoundHead {
  Quantity hidden, depth;
  std::uint64_t narrow = 256;                   // between a classifier's matrices
  std::optional<std::uint64_t> letters = {32};  // of CTC; absent: the config must say
};
// "ForCTC", "ForSequenceClassification" or "ForAudioFrameClassification".
void add_sound_head(ConfigReader& config, ModuleTree& tree, const SoundHead& of, std::string_view head);

}  // namespace assay::families
