// What llama.cpp's loaders ask of a file beyond what its converter knows: the converter writes files that load nowhere,
// or compute something else, where a model has a bias, widths of heads or windows that llama.cpp's code for the
// architecture has not. Such a file is refused before it is written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/gguf.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_rules.h"
#include "core/model/module_tree.h"

namespace assay {

struct GgufLoaded {
  std::string_view architecture;
  // "attn_q ffn_up!": biases that are loaded, and with "!" asked for wherever there is a weight of the name.
  std::string_view biases;
  bool heads_fill_width = false;      // heads × head_dim must be the hidden width
  bool keys_as_queries = false;       // there must be as many heads of keys as of queries
  std::uint64_t window_period = 0;    // every so manieth layer sees everything; 0: windows by a key alone
  bool full_first = false;            // ... the first of so many, not the last
  bool all_windowed = false;          // every layer has a window
  bool asks_gating = false;           // how experts are scored must be said
  bool windowed_without_key = false;  // ... whether or not the file has attention.sliding_window
  bool head_is_embedding = false;     // a head of its own is not loaded
  bool asks_head = false;             // ... or has to be there, tied or not
  bool loads_rope_freqs = false;      // rope_freqs.weight: of "llama3"
  bool loads_rope_factors = false;    // rope_factors_long.weight, rope_factors_short.weight: of "longrope"
};
std::span<const GgufLoaded> gguf_loaded_table();  // of all architectures that are written

// What an architecture asks of the config alone: why it would not load, or compute something else; "": it will do.
struct GgufDemand {
  std::string_view architectures;  // "jamba|mamba"; "": of all
  std::string (*broken)(const GgufFacts& facts);
};
std::span<const GgufDemand> gguf_demands();
std::span<const GgufDemand> gguf_demands_2026();

// Throws Error::refused for a file that llama.cpp would not load, or would compute with other windows.
void require_loadable(std::string_view architecture, const ModuleTree& tree,
                      const std::vector<GgufTensor>& tensors, const std::vector<gguf::KeyValue>& keys);

// The windows that llama.cpp has none for, as a note: "" where it has, or there are none.
std::string windows_left_out(std::string_view architecture, const ModuleTree& tree,
                             const std::vector<gguf::KeyValue>& keys);

}  // namespace assay
