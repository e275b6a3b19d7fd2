#include "core/formats/gguf.h"

#include <set>

#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

// Tensors lie one after the other, aligned, inside the file.
void check_layout(const gguf::Header& header) {
  std::set<std::string_view> names;
  std::uint64_t next = 0;
  for (const gguf::Tensor& tensor : header.tensors) {
    fuzz::require(names.insert(tensor.name).second, "tensor names are unique");
    fuzz::require(tensor.offset == next && tensor.offset % header.alignment == 0, "tensors are consecutive");
    const auto elements = element_count(tensor.ne);
    fuzz::require(elements && storage_bytes(tensor.type, *elements) == tensor.bytes,
                  "sizes follow from shapes");
    fuzz::require(tensor.bytes <= header.file_bytes &&
                      header.data_offset <= header.file_bytes - tensor.bytes &&
                      tensor.offset <= header.file_bytes - tensor.bytes - header.data_offset,
                  "tensors lie inside the file");
    next = *gguf::padded(tensor.offset + tensor.bytes, header.alignment);
  }
}

void check_metadata(const gguf::Header& header, std::size_t size) {
  std::set<std::string_view> keys;
  std::uint64_t array_bytes = 0;
  for (const gguf::KeyValue& kv : header.metadata) {
    fuzz::require(!kv.key.empty() && keys.insert(kv.key).second, "keys are there, and once");
    const auto* array = std::get_if<gguf::Array>(&kv.value);
    fuzz::require((array != nullptr) == (kv.type == gguf::ValueType::array), "values are of their type");
    if (array == nullptr) continue;
    array_bytes += array->encoded.size();
    if (array->type == gguf::ValueType::string) {
      fuzz::require(array->strings().size() == array->count, "an array has its count of strings");
    } else {
      fuzz::require(array->numbers().size() == array->count, "an array has its count of numbers");
      fuzz::accepted([&] { return array->integers(); });
    }
  }
  fuzz::require(array_bytes <= size, "arrays are no longer than the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::as_bytes(fuzz::as_text(data, size));
  const auto read = [&](std::uint64_t file_bytes) {
    const auto shown = bytes.first(std::min<std::uint64_t>(bytes.size(), file_bytes));
    return fuzz::accepted([&] { return gguf::parse_header(shown, file_bytes, "fuzz.gguf"); });
  };
  const auto header = read(size);
  if (!header) return 0;
  check_layout(*header);
  check_metadata(*header, size);
  const auto longer = read(size + (1ull << 40));
  fuzz::require(longer && longer->tensors.size() == header->tensors.size(),
                "more bytes at the end change no tensor");
  if (!header->tensors.empty() && header->tensors.back().bytes > 0) {
    const gguf::Tensor& last = header->tensors.back();
    fuzz::require(!read(header->data_offset + last.offset + last.bytes - 1), "one byte short is refused");
  }
  return 0;
}
