// Rectangles of stored matrices, as elements and as floats: what decoders are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/stored_reader.h"
#include "core/numeric/codec_simd.h"

namespace assay {

// A rectangle of a stored matrix of elements, row by row.
template <class Element>
std::vector<Element> read_rectangle(const CheckpointReader& source, const CheckpointTensor& tensor,
                                    std::uint64_t row_elements, std::uint64_t first_row, std::uint64_t rows,
                                    std::uint64_t first, std::uint64_t count) {
  std::vector<Element> out(rows * count);
  source.read_rectangle(tensor, row_elements * sizeof(Element), first_row, rows, first * sizeof(Element),
                        std::as_writable_bytes(std::span(out)));
  return out;
}

// The same of floats of any type.
inline std::vector<float> read_floats(const CheckpointReader& source, const CheckpointTensor& tensor,
                                      std::uint64_t row_elements, std::uint64_t first_row, std::uint64_t rows,
                                      std::uint64_t first, std::uint64_t count) {
  const std::uint64_t size = info(tensor.type).block_bytes;
  const auto bytes = read_rectangle<std::byte>(source, tensor, row_elements * size, first_row, rows,
                                               first * size, count * size);
  std::vector<float> out(rows * count);
  simd::decode(tensor.type, bytes, out.data());
  return out;
}

}  // namespace assay
