// What the device at hand can do at most, measured: the bytes a copy within its memory reads and writes, and
// the sums of a large BF16 product by cuBLAS (FP8 has twice as many).
#pragma once

namespace assay::cuda {

struct DeviceRoof {
  double flops = 0, bytes = 0;  // a second; 0: not measured, there being no device or no cuBLAS
};
DeviceRoof measure_device_roof();

}  // namespace assay::cuda
