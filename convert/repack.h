// FP4 as safetensors hold it in GGUF's blocks: bits are moved, and none is changed.
//
//   safetensors   element 2i in the low half of byte i, 2i + 1 in the high one; scales apart
//   MXFP4         a power of two, then 16 bytes: byte j has elements j and j + 16 of 32
//   NVFP4         four E4M3 scales, then 32 bytes: of each 16 elements, byte j has elements j and j + 8
//
// Sources: llama.cpp's converter, repack_mxfp4_blocks and _nvfp4_pack. A tensor-wide scale (NVFP4) has no
// place in a block: it becomes a tensor of its own, `.scale`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/derived_tensor.h"
#include "core/numeric/element_type.h"

namespace assay {

// Whether `tensor` is made of whole rows of MXFP4 or NVFP4, and nothing else, so that blocks of `type` hold
// its codes and scales.
bool can_repack(const DerivedTensor& tensor, ElementType type, const StoredTensors& stored);

// Rows `first` … of such a tensor; `out` has room for `count` rows of blocks.
void repack_rows(const CheckpointReader& source, const StoredTensors& stored, const DerivedTensor& tensor,
                 ElementType type, std::uint64_t first, std::uint64_t count, std::span<std::byte> out);

// What `.scale` holds: a factor for the whole tensor, or for each of its matrices; empty where all are 1.
std::vector<float> factors_of(const CheckpointReader& source, const StoredTensors& stored,
                              const DerivedTensor& tensor);

}  // namespace assay
