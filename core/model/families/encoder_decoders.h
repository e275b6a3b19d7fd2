// What models that read and write share, and layers of BART's kind, for those that have one side of it.
#pragma once

#include <string>
#include <string_view>

#include "core/model/blocks.h"

namespace assay::families {

// The sizes of a side that writes, by the keys that BART's kin have: d_model, decoder_ffn_dim, decoder_layers and
// decoder_attention_heads. Whether its head is tied is the caller's to say.
blocks::Decoder read_writer(ConfigReader& config, const blocks::DecoderDefaults& of,
                            std::string_view head_keys = "decoder_attention_heads");

// Layers below `path`; those of the side that writes attend to what was read, too.
Module bart_layers(const blocks::Decoder& d, const std::string& path, const std::string& title, bool writes);
// As NLLB's mixture and SeamlessM4T name them.
Module nllb_layers(const blocks::Decoder& d, const std::string& path, const std::string& title, bool writes);

// Keys and values of what another model has made, whose width is `seen`.
void widen_keys(Module& across, const blocks::Decoder& d, const Quantity& seen);

// Layers of both sides are numbered from 0; the side that writes caches.
void note_both_sides(ModuleTree& tree, const blocks::HeadAttention& a, const Quantity& written,
                     const Quantity& read);

// Experts whose class, and not the config, tells how many a token meets.
blocks::Experts read_fixed_experts(ConfigReader& config, ModuleTree& tree, std::uint64_t count,
                                   std::uint64_t active);

}  // namespace assay::families
