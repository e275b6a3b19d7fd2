// Vector helpers of the GGUF quantizers, once for each of Highway's targets: included between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE after hwy/highway.h, hence the guard that toggles.
#if defined(ASSAY_GGUF_QUANTIZE_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_GGUF_QUANTIZE_LANES
#undef ASSAY_GGUF_QUANTIZE_LANES
#else
#define ASSAY_GGUF_QUANTIZE_LANES
#endif

#include <hwy/highway.h>

#include "core/numeric/gguf_quantize_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, 16>;  // sixteen groups of 16 are a super-block
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;
constexpr std::size_t kMostLanes = 16;

HWY_INLINE std::size_t lanes() {
  return hn::Lanes(F());
}
HWY_INLINE V splat(float x) {
  return hn::Set(F(), x);
}

// nearest_int of gguf_quantize_kernels.h.
HWY_INLINE VI nearest_int_lanes(V x) {
  const VI bits = hn::BitCast(I(), hn::Add(x, splat(kRounder)));
  return hn::Sub(hn::And(bits, hn::Set(I(), kRounderMask)), hn::Set(I(), kRounderOffset));
}
HWY_INLINE VI clamp(VI x, int least, int most) {
  return hn::Max(hn::Set(I(), least), hn::Min(hn::Set(I(), most), x));
}
HWY_INLINE V clamped_nearest(V x, int least, int most) {
  return hn::ConvertTo(F(), clamp(nearest_int_lanes(x), least, most));
}
// The same for |x| up to kRounderLimit, in fewer steps.
HWY_INLINE V clamped_nearest_small(V x, float least, float most) {
  const V rounded = hn::Sub(hn::Add(x, splat(kRounder)), splat(kRounder));
  return hn::Min(hn::Max(rounded, splat(least)), splat(most));
}

// out[i * lanes() + k] = value i of group k; lanes beyond the last group repeat it.
template <int kGroup>
HWY_INLINE void transpose(const float* x, std::size_t groups, float* HWY_RESTRICT out) {
  const VI last = hn::Set(I(), static_cast<std::int32_t>(groups - 1));
  const VI start = hn::Mul(hn::Min(hn::Iota(I(), 0), last), hn::Set(I(), kGroup));
  for (int i = 0; i < kGroup; ++i) {
    hn::Store(hn::GatherIndex(F(), x + i, start), F(), out + static_cast<std::size_t>(i) * lanes());
  }
}

// The value of the greatest magnitude, the first of several; 0 for zeros.
template <int kGroup>
HWY_INLINE V extreme(const float* HWY_RESTRICT x, V& magnitude) {
  magnitude = hn::Zero(F());
  V value = magnitude;
  for (int i = 0; i < kGroup; ++i) {
    const V xi = hn::Load(F(), x + static_cast<std::size_t>(i) * lanes());
    const auto greater = hn::Gt(hn::Abs(xi), magnitude);
    value = hn::IfThenElse(greater, xi, value);
    magnitude = hn::IfThenElse(greater, hn::Abs(xi), magnitude);
  }
  return value;
}

// Stores integers 0..255, one byte each.
HWY_INLINE void store_bytes(VI codes, std::uint8_t* out) {
  const hn::Rebind<std::uint8_t, I> bytes;
  hn::StoreU(hn::DemoteTo(bytes, codes), bytes, out);
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
