// mbarrier.cuh for the emulator. A tile lands when somebody would have to wait for its barrier, and not before: until
// then it is NaN. A barrier that was not made, more bytes than 2^20, a tile that nobody waited for are errors.
#pragma once

#include "kernels/cuda/emulator.h"
#include "kernels/cuda/tensor_map.h"

namespace assay::cuda::emulator {

void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Where where);
void mbarrier_arrive(std::uint64_t* barrier, unsigned bytes_expected, Where where);
void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Where where);
void copy_tile(void* tile, const TensorMap& map, std::int32_t column_byte, std::int32_t row,
               std::uint64_t* barrier, Where where);
void copy_to_cluster(void* shared, const void* global, std::size_t bytes, std::uint64_t* barrier,
                     unsigned ranks, Where where);

}  // namespace assay::cuda::emulator
