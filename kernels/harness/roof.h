// What this machine could do at most, measured here and now: the roof that a kernel's speed is a share of.
#pragma once

namespace assay {

struct Roof {
  double flops = 0;  // float32 multiply-adds a second, × 2, from registers
  double bytes = 0;  // read a second, from memory larger than any cache
  // Products a second of AVX512_BF16 and AVX512_VNNI, from registers; 0 where they are not.
  double bf16_products = 0, byte_products = 0;
};
// Takes about a second and 256 MiB.
Roof measure_roof(int jobs);

}  // namespace assay
