// The keys of a GGUF as llama.cpp's converter makes them of any config.json (conversion/base.py), and those
// that an architecture adds (GgufRules::keys).
#pragma once

#include <cstdint>
#include <vector>

#include "core/formats/gguf.h"
#include "core/model/gguf_rules.h"

namespace assay {

// rope_parameters (transformers 5), or rope_scaling and what stands beside it (before), in one vocabulary.
ParsedJson rope_parameters_of(const ModelConfig& config);
// config.json with text_config within it.
ParsedJson values_of(const ModelConfig& config);

std::vector<gguf::KeyValue> gguf_own_keys(const ModelConfig& config, const GgufFamily& family,
                                          std::uint64_t file_type);

// Those that are made of config.json alone: factors on rotary frequencies.
std::vector<DerivedTensor> gguf_more_tensors(const ModelConfig& config, const GgufFamily& family);

// Values that several families share.
namespace own_keys {
ParsedJson rotary_width(const GgufFacts& facts);  // partial_rotary_factor of a head, whole where it is unsaid
ParsedJson head_width(const GgufFacts& facts);
ParsedJson windowed_layers(const GgufFacts& facts);      // layer_types as flags; null where there are none
ParsedJson windows_by_layer(const GgufFacts& facts);     // the same flags, as the tree has them
ParsedJson latent_width(const GgufFacts& facts);         // of what absorbed latent attention caches
ParsedJson latent_key_width(const GgufFacts& facts);     // of a head's key, unabsorbed
ParsedJson dense_layers(const GgufFacts& facts);         // how many there are before the first with experts
ParsedJson shared_expert_width(const GgufFacts& facts);  // Ling's: its own, or of as many routed ones
ParsedJson attending_layers(
    const GgufFacts& facts);  // of each layer 1 where it attends, 0 where it has a state
// The two lists of longrope as tensors; none where the config has none.
std::vector<DerivedTensor> longrope_factors(const GgufFacts& facts);
}  // namespace own_keys

}  // namespace assay
