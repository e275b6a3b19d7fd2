// Encoders of sound that stand in front of many language models: the tensors of each below a path of the caller's.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// Whisper's: two convolutions over the spectrum, learnt places, blocks whose keys have no bias. Its sizes go by two
// names each in configs (d_model and hidden_size, encoder_layers and num_hidden_layers, …).
struct WhisperClass {
  std::uint64_t bins = 128, hidden = 1280, layers = 32, wide = 5120;
  bool places = true;  // a table of them
  std::string_view last_norm = "layer_norm";
};
Module whisper_encoder(ConfigReader& audio, std::string path, const WhisperClass& defaults = {});
Quantity whisper_width(ConfigReader& audio, const WhisperClass& defaults = {});
Quantity whisper_wide(ConfigReader& audio, const WhisperClass& defaults = {});

// Qwen3-Omni's: three convolutions of stride 2 over the spectrum, a matrix over what is left of it, Whisper's blocks
// with a bias of keys, too.
struct SpectrumClass {
  std::uint64_t hidden = 1280, layers = 32, wide = 5120;
};
Module spectrum_encoder(ConfigReader& audio, std::string path, const SpectrumClass& defaults = {});

}  // namespace assay::families
