#include "core/formats/gguf_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/system/error.h"

namespace assay::gguf {
namespace {

constexpr std::uint32_t kVersion = 3;

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void put_text(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

template <class T>
Array array_of(ValueType type, std::span<const T> values) {
  Array array{type, values.size(), std::string(values.size_bytes(), '\0')};
  if (!values.empty()) std::memcpy(array.encoded.data(), values.data(), values.size_bytes());
  return array;
}

// Every variant that may hold a number of `type`, as that type's bytes.
template <class T>
void put_number(std::string& out, const Value& value) {
  std::visit(
      [&](const auto& held) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(held)>>)
          put(out, static_cast<T>(held));
        else
          throw Error::internal("a GGUF value is not of its type");
      },
      value);
}

void put_value(std::string& out, const KeyValue& kv) {
  switch (kv.type) {
    case ValueType::u8: return put_number<std::uint8_t>(out, kv.value);
    case ValueType::i8: return put_number<std::int8_t>(out, kv.value);
    case ValueType::u16: return put_number<std::uint16_t>(out, kv.value);
    case ValueType::i16: return put_number<std::int16_t>(out, kv.value);
    case ValueType::u32: return put_number<std::uint32_t>(out, kv.value);
    case ValueType::i32: return put_number<std::int32_t>(out, kv.value);
    case ValueType::f32: return put_number<float>(out, kv.value);
    case ValueType::boolean: return put_number<std::uint8_t>(out, kv.value);
    case ValueType::u64: return put_number<std::uint64_t>(out, kv.value);
    case ValueType::i64: return put_number<std::int64_t>(out, kv.value);
    case ValueType::f64: return put_number<double>(out, kv.value);
    case ValueType::string: return put_text(out, std::get<std::string>(kv.value));
    case ValueType::array: {
      const auto& array = std::get<Array>(kv.value);
      put(out, static_cast<std::uint32_t>(array.type));
      put(out, array.count);
      out += array.encoded;
      return;
    }
  }
}

}  // namespace

KeyValue u16_value(std::string key, std::uint64_t value) {
  return {std::move(key), ValueType::u16, value};
}
KeyValue u32_value(std::string key, std::uint64_t value) {
  return {std::move(key), ValueType::u32, value};
}
KeyValue i32_value(std::string key, std::int64_t value) {
  return {std::move(key), ValueType::i32, value};
}
KeyValue f32_value(std::string key, double value) {
  return {std::move(key), ValueType::f32, value};
}
KeyValue bool_value(std::string key, bool value) {
  return {std::move(key), ValueType::boolean, value};
}
KeyValue text_value(std::string key, std::string value) {
  return {std::move(key), ValueType::string, std::move(value)};
}

KeyValue texts_value(std::string key, std::span<const std::string> values) {
  Array array{ValueType::string, values.size(), {}};
  for (const std::string& text : values) put_text(array.encoded, text);
  return {std::move(key), ValueType::array, std::move(array)};
}
KeyValue i32s_value(std::string key, std::span<const std::int32_t> values) {
  return {std::move(key), ValueType::array, array_of(ValueType::i32, values)};
}
KeyValue f32s_value(std::string key, std::span<const float> values) {
  return {std::move(key), ValueType::array, array_of(ValueType::f32, values)};
}
KeyValue bools_value(std::string key, const std::vector<bool>& values) {
  Array array{ValueType::boolean, values.size(), {}};
  for (const bool value : values) array.encoded += value ? '\x01' : '\0';
  return {std::move(key), ValueType::array, std::move(array)};
}

void set_value(std::vector<KeyValue>& metadata, KeyValue value) {
  for (KeyValue& kv : metadata) {
    if (kv.key != value.key) continue;
    kv = std::move(value);
    return;
  }
  metadata.push_back(std::move(value));
}

void move_to_end(std::vector<KeyValue>& metadata, KeyValue value) {
  remove_key(metadata, value.key);
  metadata.push_back(std::move(value));
}

void remove_key(std::vector<KeyValue>& metadata, std::string_view key) {
  std::erase_if(metadata, [&](const KeyValue& kv) { return kv.key == key; });
}

std::uint64_t place_tensors(std::vector<Tensor>& tensors, std::uint64_t alignment) {
  std::uint64_t next = 0;
  for (Tensor& tensor : tensors) {
    const ElementInfo& element = info(tensor.type);
    const std::uint64_t row = tensor.ne.empty() ? 1 : tensor.ne[0];
    const auto elements = element_count(tensor.ne);
    if (row % element.block_elements != 0 || !elements || !storage_bytes(tensor.type, *elements)) {
      throw Error::refused(fmt::format("rows of {} elements are no whole blocks of {}, which {} needs", row,
                                       element.block_elements, element.name))
          .tensor(tensor.name);
    }
    tensor.bytes = storage_bytes(tensor.type, *elements).value_or(0);
    tensor.offset = next;
    const auto size = padded(tensor.bytes, alignment);
    if (!size || __builtin_add_overflow(next, *size, &next))
      throw Error::refused("the file would be longer than 64 bits can say").tensor(tensor.name);
  }
  return next;
}

std::string serialize_header(std::span<const KeyValue> metadata, std::span<const Tensor> tensors,
                             std::uint64_t alignment) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, std::uint64_t{tensors.size()});
  put(out, std::uint64_t{metadata.size()});
  for (const KeyValue& kv : metadata) {
    put_text(out, kv.key);
    put(out, static_cast<std::uint32_t>(kv.type));
    put_value(out, kv);
  }
  for (const Tensor& tensor : tensors) {
    if (tensor.name.size() > kMaxNameBytes) {
      throw Error::refused(fmt::format("the name is longer than the {} bytes that ggml loads", kMaxNameBytes))
          .tensor(tensor.name);
    }
    put_text(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.ne.size()));
    for (const std::uint64_t n : tensor.ne) put(out, n);
    put(out, static_cast<std::uint32_t>(info(tensor.type).ggml_id));
    put(out, tensor.offset);
  }
  out.resize(padded(out.size(), alignment).value(), '\0');
  return out;
}

}  // namespace assay::gguf
