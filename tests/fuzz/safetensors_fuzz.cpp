#include "core/formats/safetensors.h"

#include <set>

#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

bool same_tensors(const std::vector<safetensors::Tensor>& a, const std::vector<safetensors::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const safetensors::Tensor& x, const safetensors::Tensor& y) {
                      return x.name == y.name && x.type == y.type && x.shape == y.shape &&
                             x.begin == y.begin && x.end == y.end;
                    });
}

// Tensors cover the buffer, all of it, without holes or overlap.
void check_layout(const safetensors::Header& header) {
  std::set<std::string_view> names;
  std::uint64_t next = 0;
  for (const safetensors::Tensor& tensor : header.tensors) {
    fuzz::require(names.insert(tensor.name).second, "tensor names are unique");
    fuzz::require(tensor.begin == next && tensor.end >= tensor.begin, "tensors are consecutive");
    const auto elements = element_count(tensor.shape);
    fuzz::require(elements && storage_bytes(tensor.type, *elements) == tensor.bytes(),
                  "sizes follow from shapes");
    next = tensor.end;
  }
  fuzz::require(header.buffer_offset() + next == header.file_bytes, "tensors cover the buffer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = [](std::string_view file, std::uint64_t file_bytes, safetensors::Reading reading) {
    return fuzz::accepted([&] {
      return safetensors::parse_header(fuzz::as_bytes(file), file_bytes, reading, "fuzz.safetensors");
    });
  };
  const std::string_view file = fuzz::as_text(data, size);
  const auto reference = read(file, size, safetensors::Reading::reference);
  const auto strict = read(file, size, safetensors::Reading::strict);
  if (reference) check_layout(*reference);
  if (!strict) return 0;
  check_layout(*strict);
  fuzz::require(reference && same_tensors(reference->tensors, strict->tensors),
                "strict accepts a part of reference");
  fuzz::require(!has_errors(strict->deviations), "strict has nothing to forgive");

  std::vector<safetensors::Tensor> tensors = strict->tensors;
  const std::string written = safetensors::serialize_header(tensors, strict->metadata);
  const std::uint64_t buffer = strict->file_bytes - strict->buffer_offset();
  const auto again = read(written, written.size() + buffer, safetensors::Reading::strict);
  fuzz::require(again && same_tensors(again->tensors, strict->tensors),
                "what was read can be written and read");
  return 0;
}
