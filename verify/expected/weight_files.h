// Which files hold a model's weights, by their names: it is their bytes that somebody has to vouch for.
#pragma once

#include <string_view>

namespace assay {

// What follows the last '/' of a file's name: all of it where there is none.
std::string_view base_of(std::string_view name);

// safetensors, GGUF, pickles, ONNX, NumPy, HDF5 and their like. In a training checkpoint the optimizer's
// state too.
bool may_hold_weights(std::string_view name);

// What a training checkpoint keeps beside the weights: its absence makes no model incomplete.
bool is_training_state(std::string_view name);

// "model.safetensors.index.json", "pytorch_model.bin.index.json", "x.safetensors.index.fp16.json".
bool is_shard_index_name(std::string_view name);

}  // namespace assay
