#include "kernels/cpu/int8_input.h"

#include <bit>
#include <cstring>
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

namespace {

void put_group(const Int8Input& in, std::size_t first, std::size_t group, Input256& to) {
  const std::size_t from = first + group, side = group / 4, of_pair = group % 4;
  for (std::size_t eight = 0; eight < 4; ++eight)
    std::memcpy(to.codes[2 * of_pair + eight % 2] + 16 * (eight / 2) + 8 * side,
                in.groups[from].codes + 8 * eight, 8);
  const std::size_t place = 2 * of_pair + side;
  to.scales[place] = in.scales[from];
  to.sums_of_32[place] = in.sums_of_32[from];
  to.sums_of_16[2 * place] = in.sums_of_16[2 * from];
  to.sums_of_16[2 * place + 1] = in.sums_of_16[2 * from + 1];
}

// The group whose place among eight is `place`.
void put_wide(const Int8Input& in, std::size_t group, std::size_t place, std::uint8_t flipped,
              Input256Wide& to) {
  for (std::size_t half = 0; half < 2; ++half) {
    const std::size_t lane = place + 8 * half;
    for (std::size_t i = 0; i < 16; ++i)
      to.codes[i / 4][4 * lane + i % 4] =
          static_cast<std::int8_t>(in.groups[group].codes[16 * half + i] ^ flipped);
    to.sums_of_16[lane] = in.sums_of_16[2 * group + half];
  }
  to.scales[place] = in.scales[group];
  to.sums_of_32[place] = in.sums_of_32[group];
}

}  // namespace

Int8Input::Int8Input(std::span<const float> x)
    : groups(x.size() / 32), scales(x.size() / 32), sums_of_32(x.size() / 32), sums_of_16(x.size() / 16) {
  HWY_DYNAMIC_DISPATCH(make_int8_input)(x.data(), *this);
}

void Int8Input::arrange_super_blocks() {
  super_blocks.resize(groups.size() / 8);
  for (std::size_t b = 0; b < super_blocks.size(); ++b) {
    for (std::size_t group = 0; group < 8; ++group) put_group(*this, 8 * b, group, super_blocks[b]);
  }
}

void Int8Input::arrange_wide(Groups order, bool from_zero) {
  wide.resize(groups.size() / 8);
  for (std::size_t b = 0; b < wide.size(); ++b) {
    for (std::size_t place = 0; place < 8; ++place) {
      const std::size_t group = order == Groups::in_order ? place : place / 2 + 4 * (place % 2);
      put_wide(*this, 8 * b + group, place, from_zero ? 128 : 0, wide[b]);
    }
  }
}

}  // namespace assay::cpu
#endif
