// FP8 codes under block scales to BF16: the cast that 700 GB at a time are put through, straight from codes to bits.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/error_sums.h"
#include "core/model/stored_reader.h"

namespace assay {

// A value is its code under the scale of its block, and nothing else.
bool is_code_by_scale(const LogicalTensor& tensor);

// Rows `first`, `first + 1` … of all slices, BF16 into `out`. False where values are to be looked at one by one: another
// form, small blocks, a scale beyond what e4m3_to_bf16 takes, a NaN, or a value that check_plausible might not believe;
// then neither `out` nor `sums` means anything.
bool cast_fp8_to_bf16(const CheckpointReader& source, const LogicalTensor& tensor, std::uint64_t first,
                      std::uint64_t rows, std::span<std::byte> out, ErrorSums& sums);

}  // namespace assay
