// The names under which checkpoints keep a weight in few bits: beside the codes there are scales, zero
// points, and tables, each told by the ending of its name.
//
//   model.layers.0.mlp.up_proj.weight_scale_inv    a scale of …up_proj.weight   (FP8 in blocks)
//   model.layers.0.mlp.up_proj.qweight             codes of …up_proj.weight     (GPTQ, AWQ)
//   model.layers.0.mlp.experts.down_proj_blocks    codes of …experts.down_proj  (MXFP4 of gpt-oss)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class StoredPart {
  codes,       // the values, packed
  scale,       // what codes are multiplied by, at whatever level
  zero_point,  // what is subtracted from codes first
  table,       // column orders, shapes, code books: needed to decode, no part of the arithmetic
};

struct StoredName {
  std::string weight;  // the weight it belongs to; empty where it belongs to none (scales of a KV cache)
  StoredPart part;
  std::string_view suffix;  // "weight_scale_inv"
};

// nullopt: nothing in the name says that it is anything but a plain tensor. ".scale" and ".scales" alone are
// names of ordinary parameters too: whoever asks should look for the weight before believing them.
std::optional<StoredName> parse_stored_name(std::string_view name);

// Tensors that old exports saved though they are no parameters and no model class declares them: rotary
// frequencies, causal masks, position ids.
bool is_known_buffer(std::string_view name);

}  // namespace assay
