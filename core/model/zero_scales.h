// A scale of zero makes zeros of whatever its block holds. Quantizers write it for a block of zeros, if at
// all: over codes that are not zero it is damage.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"

namespace assay {

struct ZeroScales {
  std::uint64_t over_codes = 0;  // how many stand over a block that holds a code other than zero
  std::uint64_t first_row = 0, first_column = 0;  // where the first of these begins, rows over all slices
};
// Of forms whose codes are numbers, FP8, INT8 and FP4, and of packed integers, where the zero point is zero.
// Others (code books) have none.
ZeroScales find_zero_scales(const CheckpointReader& reader, const LogicalTensor& tensor);

// Whether any code of that block is not zero, of forms whose codes are numbers. Rows of blocks count over all
// slices.
bool block_holds_codes(const CheckpointReader& reader, const LogicalTensor& tensor, std::uint64_t block_row,
                       std::uint64_t block_column);

}  // namespace assay
