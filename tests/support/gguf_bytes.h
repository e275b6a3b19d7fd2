// GGUF files byte by byte, well-formed or not: GgufBytes(1, 0).tensor("t", {4}, 0, 0).data(32).take().
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace assay::test {

class GgufBytes {
 public:
  GgufBytes(std::int64_t tensors, std::int64_t keys) {
    raw("GGUF").u32(3).u64(static_cast<std::uint64_t>(tensors)).u64(static_cast<std::uint64_t>(keys));
  }
  GgufBytes& version(std::uint32_t version) {
    std::memcpy(bytes_.data() + 4, &version, sizeof version);
    return *this;
  }
  GgufBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBytes& u32(std::uint32_t value) { return number(value); }
  GgufBytes& u64(std::uint64_t value) { return number(value); }
  GgufBytes& text(std::string_view value) { return u64(value.size()).raw(value); }
  GgufBytes& text_key(std::string_view key, std::string_view value) { return text(key).u32(8).text(value); }
  GgufBytes& u32_key(std::string_view key, std::uint32_t value) { return text(key).u32(4).u32(value); }
  GgufBytes& tensor(std::string_view name, const std::vector<std::int64_t>& ne, std::uint32_t type,
                    std::uint64_t offset) {
    text(name).u32(static_cast<std::uint32_t>(ne.size()));
    for (const std::int64_t n : ne) u64(static_cast<std::uint64_t>(n));
    return u32(type).u64(offset);
  }
  GgufBytes& align(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  // Padding to the default alignment, then `count` zeros.
  GgufBytes& data(std::size_t count) { return align(32).raw(std::string(count, '\0')); }
  std::string take() const { return bytes_; }

 private:
  template <class T>
  GgufBytes& number(T value) {
    return raw(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }
  std::string bytes_;
};

}  // namespace assay::test
