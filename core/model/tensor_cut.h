// One tensor and the parts of it that files of several ranks hold.
//
// The tensor is seen as `rows` rows of `row_bytes` bytes: a matrix cut along its columns is its rows, one cut
// along its rows a single long row. Every part takes some of the rows, and of each of them the same ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/model/parallel_cut.h"

namespace assay {

struct PartRange : IndexRange {
  bool repeated = false;  // another part has the same bytes: gathering takes them there
};
struct RankPart {
  std::uint32_t file = 0;         // which of the files, as the owner counts them
  std::uint64_t offset = 0;       // in that file
  IndexRange rows;                // that it takes
  std::vector<PartRange> ranges;  // bytes of each row, as they lie in the file, one after the other
  std::uint64_t row_bytes = 0;    // of a row in the file: the ranges, and zeros that pad it
};

struct TensorCut {
  std::uint64_t rows = 1, row_bytes = 0;
  std::vector<RankPart> parts;
  std::uint64_t bytes() const { return rows * row_bytes; }
};

// Bytes `at` … `at` + bytes.size() of the tensor to the place in its file that `part` gives them:
// `write(offset, bytes)`.
void scatter(const TensorCut& cut, const RankPart& part, std::uint64_t at, std::span<const std::byte> bytes,
             const std::function<void(std::uint64_t, std::span<const std::byte>)>& write);

// The reverse, over all parts: `read(file, offset, bytes)`. Parts that cover the tensor once fill `bytes`.
void gather(const TensorCut& cut, std::uint64_t at, std::span<std::byte> bytes,
            const std::function<void(std::uint32_t, std::uint64_t, std::span<std::byte>)>& read);

// Do the parts cover every byte of the tensor, and none twice?
bool covers_once(const TensorCut& cut);

}  // namespace assay
