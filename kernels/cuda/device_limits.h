// What a launch has to respect on a GPU, by compute capability: a plan that asks for more is refused by the
// driver ("OutOfResources"), at run time, on the customer's board. So plans are made against these numbers,
// and sm_89's 101,376 bytes of shared memory are not taken for sm_80's 166,912.
//
//   const DeviceLimits* ada = limits_of(89);            // nullptr: an architecture we know nothing of
//   DeviceLimits here = …;                              // of the device at hand: runtime.h
//
// Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the granularities
// of cuda_occupancy.h, which comes with the toolkit.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace assay::cuda {

struct DeviceLimits {
  int sm = 0;                        // 89 for compute capability 8.9
  std::size_t shared_per_block = 0;  // opt-in: with cudaFuncAttributeMaxDynamicSharedMemorySize
  std::size_t shared_per_sm = 0;
  unsigned threads_per_sm = 0, blocks_per_sm = 0;
  unsigned sm_count = 0;   // of `board`, where no device is at hand
  std::string_view board;  // a usual board of this architecture
  unsigned threads_per_block = 1024;
  unsigned registers_per_sm = 65'536, registers_per_thread = 255;
};

inline constexpr std::size_t kReservedShared = 1024;      // the driver's own, of each block, from sm_80 on
inline constexpr unsigned kMostGridRows = 65'535;         // gridDim.y and .z
inline constexpr unsigned kMostGridColumns = 0x7FFFFFFF;  // gridDim.x
inline constexpr unsigned kWarp = 32;

std::span<const DeviceLimits> all_device_limits();
// The architecture itself; nullptr where there is none of that number.
const DeviceLimits* limits_of(int sm);

// How many blocks an SM holds at once; 0: none fits.
unsigned resident_blocks(const DeviceLimits& limits, unsigned threads, std::size_t shared_bytes,
                         unsigned registers_per_thread);

}  // namespace assay::cuda
