// Codes into values, in vectors, once for each of Highway's targets: included after hwy/highway.h, hence the
// guard that toggles.
#if defined(ASSAY_GGUF_CODES_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_GGUF_CODES_LANES
#undef ASSAY_GGUF_CODES_LANES
#else
#define ASSAY_GGUF_CODES_LANES
#endif

#include <hwy/highway.h>

#include <span>

#include "core/numeric/gguf_layout.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Code = std::int8_t;
using Values = hn::CappedTag<float, 16>;
using Wide = hn::RebindToSigned<Values>;

// y = scale * code - minimum, rounded after either step. Subtracting a minimum of +0 changes no bit.
HWY_INLINE void put_lanes(hn::Vec<Values> code, float scale, float minimum, float* y) {
  const Values d;
  hn::StoreU(hn::Sub(hn::Mul(hn::Set(d, scale), code), hn::Set(d, minimum)), d, y);
}

template <int kCount>
HWY_INLINE void put(const Code* codes, float scale, float minimum, float* HWY_RESTRICT y) {
  static_assert(kCount % 16 == 0);
  const hn::Rebind<Code, Values> narrow;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(Values())) {
    const auto code = hn::PromoteTo(Wide(), hn::LoadU(narrow, codes + i));
    put_lanes(hn::ConvertTo(Values(), code), scale, minimum, y + i);
  }
}

// Sixteen bytes, code j in the low and code j + 16 in the high nibble of byte j: put(low, j) for the one,
// put(high, j + 16) for the other, as many at a time as there are lanes.
template <class Put>
HWY_INLINE void for_each_nibble(const std::uint8_t* qs, Put put) {
  const hn::Rebind<std::uint8_t, Values> narrow;
  for (std::size_t j = 0; j < 16; j += hn::Lanes(Values())) {
    const auto bytes = hn::PromoteTo(Wide(), hn::LoadU(narrow, qs + j));
    put(hn::And(bytes, hn::Set(Wide(), 15)), j);
    put(hn::ShiftRight<4>(bytes), j + 16);
  }
}

// Calls kOne(block, out) for each block of `stored`.
template <class Block, void (*kOne)(const Block&, float* HWY_RESTRICT)>
HWY_INLINE bool for_each_block(std::span<const std::byte> stored, std::size_t elements, float* out) {
  static_assert(alignof(Block) == 1);
  for (std::size_t at = 0; at + sizeof(Block) <= stored.size(); at += sizeof(Block), out += elements) {
    kOne(*reinterpret_cast<const Block*>(stored.data() + at), out);  // all of its members are bytes
  }
  return true;
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
