// Writes GGUF v3 headers, byte for byte as gguf-py and ggml do.
//
//   std::vector<KeyValue> keys = {text_value("general.architecture", "llama"), u32_value("llama.block_count",
//   3)}; place_tensors(tensors, kDefaultAlignment); serialize_header(keys, tensors, kDefaultAlignment);   //
//   as long as Header::data_offset will be
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/formats/gguf.h"

namespace assay::gguf {

KeyValue u16_value(std::string key, std::uint64_t value);
KeyValue u32_value(std::string key, std::uint64_t value);
KeyValue i32_value(std::string key, std::int64_t value);
KeyValue f32_value(std::string key, double value);
KeyValue bool_value(std::string key, bool value);
KeyValue text_value(std::string key, std::string value);
KeyValue texts_value(std::string key, std::span<const std::string> values);
KeyValue i32s_value(std::string key, std::span<const std::int32_t> values);
KeyValue f32s_value(std::string key, std::span<const float> values);
KeyValue bools_value(std::string key, const std::vector<bool>& values);

// A key that is there already keeps its place and takes the new value (gguf-py's rule).
void set_value(std::vector<KeyValue>& metadata, KeyValue value);
// It goes to the end, and the old one with its key is gone (ggml's rule).
void move_to_end(std::vector<KeyValue>& metadata, KeyValue value);
void remove_key(std::vector<KeyValue>& metadata, std::string_view key);

// Sets each tensor's bytes, from its type and ne, and offset: one after the other, each padded to
// `alignment`. Returns where the last one's padding ends. Throws Error::refused for rows that are no whole
// blocks and for sums beyond 64 bits.
std::uint64_t place_tensors(std::vector<Tensor>& tensors, std::uint64_t alignment);

// Preamble, keys, tensor infos, and zeros up to where the data begins.
std::string serialize_header(std::span<const KeyValue> metadata, std::span<const Tensor> tensors,
                             std::uint64_t alignment);

}  // namespace assay::gguf
