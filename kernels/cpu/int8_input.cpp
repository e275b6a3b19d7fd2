#include "kernels/cpu/int8_input.h"

#include <bit>
#include <limits>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8_input.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/int_rounding.h"

void make_int8_input(const float* x, Int8Input& in) {
  for (std::size_t g = 0; g < in.scales.size(); ++g, x += 32) {
    const float scale = eight_bit_scale(x);
    std::int32_t sums[2];
    eight_bit_codes(x, scale, in.groups[g].codes, sums);
    in.scales[g] = scale;
    in.sums_of_16[2 * g] = static_cast<std::int16_t>(sums[0]);
    in.sums_of_16[2 * g + 1] = static_cast<std::int16_t>(sums[1]);
    in.sums_of_32[g] = static_cast<float>(sums[0] + sums[1]) * scale;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(make_int8_input);

Int8Input::Int8Input(std::span<const float> x)
    : groups(x.size() / 32), scales(x.size() / 32), sums_of_32(x.size() / 32), sums_of_16(x.size() / 16) {
  HWY_DYNAMIC_DISPATCH(make_int8_input)(x.data(), *this);
}

}  // namespace assay::cpu
#endif
