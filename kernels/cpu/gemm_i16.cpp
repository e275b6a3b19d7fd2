#include "kernels/cpu/gemm_i16.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/vnni_targets.h"
#include "kernels/cpu/byte_form.h"
#include "kernels/cpu/team.h"
#include "kernels/cpu/tile_rows.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm_i16.cpp"
#include <hwy/foreach_target.h>
//
#include "core/numeric/vnni_highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<std::int32_t>;
using V32 = hn::Vec<F32>;
using VI = hn::Vec<I32>;

#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/float_elements.h"
#include "kernels/cpu/hold.h"
#include "kernels/cpu/int_products.h"
#include "kernels/cpu/int_rounding.h"
#include "kernels/cpu/transpose.h"

// With VNNI a tile's integers need no registers on their way, so that sums of six tokens have room beside them; elsewhere
// sums wait in memory, and tiles are as tall as integers alone have room.
constexpr bool kSumsInRegisters = ASSAY_VNNI;
constexpr std::size_t kTileRows = kSumsInRegisters ? 6 : tallest_tile(HWY_TARGET <= HWY_AVX3);

// a.low · b.low + a.high · b.high of the two 16-bit halves of each lane.
HWY_INLINE VI lane_products(VI a, VI b) {
#if ASSAY_BYTE_PRODUCTS
  return add_word_products(hn::Zero(I32()), a, b);
#else
  const auto low = [](VI v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const VI high = hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b));
  return hn::Add(hn::Mul(low(a), low(b)), high);
#endif
}

// Part of a panel, and of a tile of tokens.
struct Part {
  const std::int32_t *panel, *x;     // [terms / 2][width], [terms / 2][Rows]; bytes: [terms / 4]
  const float *w_scales, *w_minima;  // [terms / Group][width], [terms / 32][width]; minima may be none
  const float *x_scales, *x_sums;    // [terms / 32][Rows]
  const std::int32_t* centring;      // [terms / Group][Rows], for bytes
  std::size_t terms;
};

// A tile's sums, [Rows][two vectors] in memory, from where they are taken once or at each step.
template <std::size_t Rows>
class RegisterSums {
 public:
  HWY_INLINE explicit RegisterSums(float* HWY_RESTRICT at) : at_(at) {
    for (std::size_t i = 0; i < Rows; ++i) {
      low_[i] = hn::LoadU(F32(), place(i));
      high_[i] = hn::LoadU(F32(), place(i) + hn::Lanes(F32()));
    }
  }
  HWY_INLINE V32 low(std::size_t i) const { return low_[i]; }
  HWY_INLINE V32 high(std::size_t i) const { return high_[i]; }
  HWY_INLINE void set(std::size_t i, V32 low, V32 high) { low_[i] = low, high_[i] = high; }
  HWY_INLINE void finish() const {
    for (std::size_t i = 0; i < Rows; ++i) {
      hn::StoreU(low_[i], F32(), place(i));
      hn::StoreU(high_[i], F32(), place(i) + hn::Lanes(F32()));
    }
  }

 private:
  HWY_INLINE float* place(std::size_t i) const { return at_ + i * 2 * hn::Lanes(F32()); }
  float* at_;
  V32 low_[Rows], high_[Rows];
};
class MemorySums {
 public:
  HWY_INLINE explicit MemorySums(float* HWY_RESTRICT at) : at_(at) {}
  HWY_INLINE V32 low(std::size_t i) const { return hn::LoadU(F32(), place(i)); }
  HWY_INLINE V32 high(std::size_t i) const { return hn::LoadU(F32(), place(i) + hn::Lanes(F32())); }
  HWY_INLINE void set(std::size_t i, V32 low, V32 high) const {
    hn::StoreU(low, F32(), place(i));
    hn::StoreU(high, F32(), place(i) + hn::Lanes(F32()));
  }
  HWY_INLINE void finish() const {}

 private:
  HWY_INLINE float* place(std::size_t i) const { return at_ + i * 2 * hn::Lanes(F32()); }
  float* at_;
};
template <std::size_t Rows>
using SumsOf = std::conditional_t<kSumsInRegisters, RegisterSums<Rows>, MemorySums>;

// A group's sums under its scales, into the tile's.
template <std::size_t Rows, std::size_t Group, bool HasMinima>
HWY_INLINE void scale_group(const Part& p, std::size_t g, const VI (&low)[Rows], const VI (&high)[Rows],
                            SumsOf<Rows>& sums) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const float* w_scales = p.w_scales + g * 2 * lanes;
  const std::size_t x_group = g * Group / 32;
  const float *x_scales = p.x_scales + x_group * Rows, *x_sums = p.x_sums + x_group * Rows;
  const V32 s_low = hn::LoadU(d, w_scales), s_high = hn::LoadU(d, w_scales + lanes);
  const float* minima = HasMinima ? p.w_minima + g * 2 * lanes : w_scales;
  const V32 m_low = hn::LoadU(d, minima), m_high = hn::LoadU(d, minima + lanes);
  for (std::size_t i = 0; i < Rows; ++i) {
    const V32 s = hn::Set(d, x_scales[i]);
    V32 a = hn::MulAdd(hn::ConvertTo(d, low[i]), hn::Mul(s_low, s), sums.low(i));
    V32 b = hn::MulAdd(hn::ConvertTo(d, high[i]), hn::Mul(s_high, s), sums.high(i));
    if constexpr (HasMinima) {
      const V32 of_x = hn::Set(d, x_sums[i]);
      a = hn::MulAdd(m_low, of_x, a);
      b = hn::MulAdd(m_high, of_x, b);
    }
    sums.set(i, a, b);
  }
}

// How codes of 16 bits are multiplied, and added to a tile's sums.
struct WordProducts {
  static HWY_INLINE VI of(VI w, VI x) { return lane_products(w, x); }
  static HWY_INLINE void add(VI& sum, VI w, VI x) {
#if ASSAY_BYTE_PRODUCTS
    accumulate_words(sum, w, x);
#else
    sum = hn::Add(sum, lane_products(w, x));
#endif
  }
};

// A lane of codes of each output of a panel by that of each of a tile's tokens: what they give, or added to a sum.
template <class Products, bool Anew, std::size_t Rows, class V>
HWY_INLINE void multiply_lane(const std::int32_t* panel, const std::int32_t* x, V (&low)[Rows],
                              V (&high)[Rows]) {
  const I32 di;
  const VI w_low = hn::LoadU(di, panel), w_high = hn::LoadU(di, panel + hn::Lanes(di));
  for (std::size_t i = 0; i < Rows; ++i) {
    const VI value = hn::Set(di, x[i]);
    if constexpr (Anew) {
      low[i] = Products::of(w_low, value);
      hold(low[i]);  // here, and not all of a tile's products at once
      high[i] = Products::of(w_high, value);
      hold(high[i]);
    } else {
      Products::add(low[i], w_low, value);
      Products::add(high[i], w_high, value);
    }
  }
}

// `Count` of them.
template <class Products, bool Anew, std::size_t Count, std::size_t Rows, class V>
HWY_INLINE void multiply_lanes(const std::int32_t* panel, const std::int32_t* x, V (&low)[Rows],
                               V (&high)[Rows]) {
  const std::size_t width = 2 * hn::Lanes(I32());
  if constexpr (Anew) multiply_lane<Products, true>(panel, x, low, high);
  for (std::size_t k = Anew ? 1 : 0; k < Count; ++k)
    multiply_lane<Products, false>(panel + k * width, x + k * Rows, low, high);
}

template <std::size_t Rows, std::size_t Group, bool HasMinima>
HWY_INLINE void tile(const Part& p, float* HWY_RESTRICT all_sums) {
  const I32 di;
  const std::size_t lanes = hn::Lanes(di);
  const std::int32_t *panel = p.panel, *x = p.x;
  SumsOf<Rows> sums(all_sums);
  for (std::size_t g = 0; g < p.terms / Group; ++g) {
    VI low[Rows], high[Rows];
    multiply_lanes<WordProducts, true, Group / 2>(panel, x, low, high);
    panel += Group / 2 * 2 * lanes;
    x += Group / 2 * Rows;
    scale_group<Rows, Group, HasMinima>(p, g, low, high, sums);
  }
  sums.finish();
}

#include "kernels/cpu/byte_tile.h"
#include "kernels/cpu/copy_row.h"

// Codes of 16 bits, two a lane.
template <std::size_t Group, bool Minimum>
struct WordCodes {
  static constexpr std::size_t kGroup = Group;
  static constexpr bool kMinimum = Minimum;
  static constexpr int kCentre = 0;  // they are centred
};

template <class Codes, std::size_t Rows>
HWY_INLINE void tile_with(const Part& part, float* sums) {
#if ASSAY_BYTE_PRODUCTS
  if constexpr (requires { Codes::kQuads; })
    byte_tile<Rows, Codes>(part, sums);
  else
#endif
    tile<Rows, Codes::kGroup, Codes::kMinimum>(part, sums);
}

// Once for all types of weights that have such codes.
template <class Codes>
HWY_NOINLINE void tile_of(std::size_t rows, const Part& part, float* sums) {
  switch (rows) {
    case 12: return tile_with<Codes, 12>(part, sums);
    case 6: return tile_with<Codes, 6>(part, sums);
    case 4: return tile_with<Codes, 4>(part, sums);
    case 2: return tile_with<Codes, 2>(part, sums);
    default: return tile_with<Codes, 1>(part, sums);
  }
}

// Some outputs, as the product reads them.
struct Panel {
  std::vector<std::int32_t> codes;    // [terms / 2][width], or of bytes [terms / 4][width]
  std::vector<float> scales, minima;  // [terms / group][width]
};

// A row of weights as codes under scales and minima: of 16 bits, or bytes from 0 up, `Centre` more.
template <class Block, int Centre>
struct BlockRow {
  using Code = std::conditional_t<Centre == 0, std::int16_t, std::uint8_t>;
  static constexpr std::size_t kGroup = Block::kGroup;
  static constexpr bool kMinimum = Block::kMinimum;
  static HWY_INLINE void read(const std::byte* row, std::size_t terms, Code* codes, float* scales,
                              float* minima) {
    UnpackedBlock u;
    const auto* block = reinterpret_cast<const typename Block::Stored*>(row);
    for (std::size_t k = 0; k < terms;
         k += Block::kCodes, scales += Block::kGroups, minima += Block::kGroups) {
      put(Block::unpack(*block++, u), codes + k);
      std::copy_n(u.scales, Block::kGroups, scales);
      if constexpr (kMinimum) std::copy_n(u.minima, Block::kGroups, minima);
    }
  }

 private:
  static HWY_INLINE void put(const std::int8_t* unpacked, Code* codes) {
    if constexpr (Centre == 0) {
      const hn::ScalableTag<std::int16_t> wide;
      const hn::Rebind<std::int8_t, decltype(wide)> narrow;
      for (std::size_t i = 0; i < static_cast<std::size_t>(Block::kCodes); i += hn::Lanes(wide))
        hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, unpacked + i)), wide, codes + i);
    } else {
      const SignedBytes d;
      for (std::size_t i = 0; i < static_cast<std::size_t>(Block::kCodes); i += hn::Lanes(d)) {
        const auto moved = hn::Add(hn::LoadU(d, unpacked + i), hn::Set(d, static_cast<std::int8_t>(Centre)));
        hn::StoreU(hn::BitCast(Bytes(), moved), Bytes(), codes + i);
      }
    }
  }
};
template <class Element>
struct FloatRow {
  using Code = std::int16_t;
  static constexpr std::size_t kGroup = kInt16Group;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void read(const std::byte* row, std::size_t terms, std::int16_t* codes, float* scales,
                              float* /*minima*/) {
    const F32 d;
    const hn::Rebind<std::int16_t, F32> narrow;
    for (std::size_t k = 0; k < terms; k += kGroup) {
      const std::byte* w = row + k * Element::kBytes;
      const GroupScale scale = scale_of<Element>(w);
      for (std::size_t i = 0; i < kGroup; i += hn::Lanes(d)) {
        const V32 code = hn::Mul(Element::load(w + i * Element::kBytes), scale.inverse);
        hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(code)), narrow, codes + k + i);
      }
      *scales++ = hn::GetLane(scale.scale);
    }
  }
};

template <class Row>
void unpack_panel(const WeightView& weight, std::size_t first, std::size_t count, std::size_t width,
                  Panel& panel) {
  using Code = typename Row::Code;
  constexpr std::size_t kCodesALane = sizeof(std::int32_t) / sizeof(Code);
  const std::size_t terms = weight.columns, groups = terms / Row::kGroup;
  thread_local std::vector<std::int32_t> codes;
  thread_local std::vector<float> scales, minima;
  codes.resize(width * terms / kCodesALane);
  scales.resize(width * groups);
  minima.resize(width * groups);
  const std::int32_t* code_rows[2 * HWY_MAX_BYTES / sizeof(float)];
  const float *scale_rows[2 * HWY_MAX_BYTES / sizeof(float)],
      *minimum_rows[2 * HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t n = 0; n < count; ++n) {
    std::int32_t* lanes = &codes[n * terms / kCodesALane];
    code_rows[n] = lanes;
    scale_rows[n] = &scales[n * groups];
    minimum_rows[n] = &minima[n * groups];
    Row::read(weight.codes + (first + n) * weight.row_bytes, terms, reinterpret_cast<Code*>(lanes),
              &scales[n * groups], &minima[n * groups]);
  }
  panel.codes.resize(width * terms / kCodesALane);
  panel.scales.resize(width * groups);
  transpose_rows(code_rows, count, terms / kCodesALane, width, panel.codes.data());
  transpose_rows(scale_rows, count, groups, width, panel.scales.data());
  if constexpr (!Row::kMinimum) return;
  panel.minima.resize(width * groups);
  transpose_rows(minimum_rows, count, groups, width, panel.minima.data());
}

// A panel by all tokens, terms [k, k + terms) of it.
template <class Codes>
void multiply_part(const IntTiles& x, const Panel& panel, std::size_t k, std::size_t terms, float* sums) {
  const std::size_t width = 2 * hn::Lanes(F32()), groups = x.terms / 32, codes_a_lane = x.bytes ? 4 : 2;
  for (std::size_t token = 0; token < x.tokens;) {
    const std::size_t rows = rows_of_tile(kTileRows, x.tokens - token);
    const Part part = {
        .panel = &panel.codes[k / codes_a_lane * width],
        .x = &x.codes[(token * x.terms + k * rows) / codes_a_lane],
        .w_scales = &panel.scales[k / Codes::kGroup * width],
        .w_minima = Codes::kMinimum ? &panel.minima[k / 32 * width] : nullptr,
        .x_scales = &x.scales[token * groups + k / 32 * rows],
        .x_sums = &x.sums[token * groups + k / 32 * rows],
        .centring = x.bytes ? &x.centring[(token * x.terms + k * rows) / Codes::kGroup] : nullptr,
        .terms = terms};
    tile_of<Codes>(rows, part, sums + token * width);
    token += rows;
  }
}

template <class Row, class Codes>
void multiply_by(const IntTiles& x, const WeightView& weight, std::size_t first, std::size_t count,
                 const Matrix& y) {
  const std::size_t width = 2 * hn::Lanes(F32()), panels = (count + width - 1) / width;
  const std::size_t step = x.bytes ? 2 * kTermsAtOnce : kTermsAtOnce;
  const auto outputs_of = [&](std::size_t p) { return std::min(width, count - p * width); };
  thread_local Panel panel[kPanelsAPiece];
  for (std::size_t p = 0; p < panels; ++p)
    unpack_panel<Row>(weight, first + p * width, outputs_of(p), width, panel[p]);
  // [panels][tokens][width]: rows of y lie a power of two apart as a rule, where caches have no room for all of them.
  thread_local std::vector<float> sums;
  sums.assign(panels * x.tokens * width, 0.0F);
  const auto sums_of = [&](std::size_t p, std::size_t token) {
    return &sums[(p * x.tokens + token) * width];
  };
  for (std::size_t k = 0; k < x.terms; k += step) {
    for (std::size_t p = 0; p < panels; ++p)
      multiply_part<Codes>(x, panel[p], k, std::min(step, x.terms - k), sums_of(p, 0));
  }
  for (std::size_t p = 0; p < panels; ++p) {
    for (std::size_t token = 0; token < x.tokens; ++token)
      copy_row(sums_of(p, token), outputs_of(p), width, y.row<float>(token) + first + p * width);
  }
}

void multiply(const IntTiles& x, const WeightView& weight, std::size_t first, std::size_t count,
              const Matrix& y) {
  const auto words = [&]<class Row>(Row) {
    multiply_by<Row, WordCodes<Row::kGroup, Row::kMinimum>>(x, weight, first, count, y);
  };
  const auto block = [&]<class Block, class Codes>(Block, Codes) {
    if (x.bytes) return multiply_by<BlockRow<Block, Codes::kCentre>, Codes>(x, weight, first, count, y);
    words(BlockRow<Block, 0>());
  };
  using enum ElementType;
  switch (weight.type) {
    case BF16: return words(FloatRow<AsBF16>());
    case F16: return words(FloatRow<AsF16>());
    case Q8_0:
      if constexpr (ASSAY_VNNI) return block(Q8_0Block(), ByteCodesOf<byte_form(Q8_0), false>());
      return words(BlockRow<Q8_0Block, 0>());
    case Q4_0: return block(Q4_0Block(), ByteCodesOf<byte_form(Q4_0), false>());
    case Q4_1: return block(Q4_1Block(), ByteCodesOf<byte_form(Q4_1), true>());
    case Q5_0: return block(Q5_0Block(), ByteCodesOf<byte_form(Q5_0), false>());
    case Q5_1: return block(Q5_1Block(), ByteCodesOf<byte_form(Q5_1), true>());
    case Q4_K: return block(Q4_KBlock(), ByteCodesOf<byte_form(Q4_K), true>());
    case Q5_K: return block(Q5_KBlock(), ByteCodesOf<byte_form(Q5_K), true>());
    default: return block(Q6_KBlock(), ByteCodesOf<byte_form(Q6_K), false>());
  }
}

bool has_byte_tiles(ElementType weight) {
  return byte_form(weight).group != 0 && (weight == ElementType::Q8_0 ? ASSAY_VNNI : ASSAY_BYTE_PRODUCTS);
}

// A row's group of 32, into lanes `rows` apart.
template <class Code>
HWY_INLINE void put_group(const Code (&codes)[32], std::size_t rows, std::int32_t* lanes) {
  constexpr std::size_t kCodesALane = sizeof(std::int32_t) / sizeof(Code);
  for (std::size_t k = 0; k < 32 / kCodesALane; ++k)
    std::memcpy(lanes + k * rows, codes + kCodesALane * k, sizeof *lanes);
}

// Tokens [first, first + count), where a tile begins.
void pack_ints(const Matrix& x, std::size_t first, std::size_t count, ElementType weight, int bits,
               IntTiles& tiles) {
  const std::size_t groups = tiles.terms / 32, codes_a_lane = tiles.bytes ? 4 : 2;
  const ByteForm form = byte_form(weight);
  alignas(64) std::int16_t words[32];
  alignas(64) std::int8_t bytes[32];
  for (std::size_t token = first; token < first + count;) {
    const std::size_t rows = rows_of_tile(kTileRows, first + count - token);
    for (std::size_t i = 0; i < rows; ++i) {
      const float* row = x.row<float>(token + i);
      for (std::size_t g = 0; g < groups; ++g) {
        std::int32_t halves[2];
        const float* values = row + 32 * g;
        const float scale = bits == kInt8BlockBits ? eight_bit_scale(values) : group_scale(values, bits);
        std::int32_t* lanes = &tiles.codes[(token * tiles.terms + 32 * g * rows) / codes_a_lane + i];
        if (tiles.bytes) {
          eight_bit_codes(values, scale, bytes, halves);
          put_group(bytes, rows, lanes);
          std::int32_t* centring = &tiles.centring[(token * tiles.terms + 32 * g * rows) / form.group + i];
          if (form.group == 32) {
            *centring = -form.centre * (halves[0] + halves[1]);
          } else {
            for (std::size_t half = 0; half < 2; ++half) centring[half * rows] = -form.centre * halves[half];
          }
        } else {
          bits == kInt8BlockBits ? eight_bit_codes(values, scale, words, halves)
                                 : coarse_codes(values, scale, bits, words, halves);
          put_group(words, rows, lanes);
        }
        tiles.scales[token * groups + g * rows + i] = scale;
        tiles.sums[token * groups + g * rows + i] = static_cast<float>(halves[0] + halves[1]) * scale;
      }
    }
    token += rows;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(multiply);
HWY_EXPORT(pack_ints);
HWY_EXPORT(has_byte_tiles);

IntTiles::IntTiles(const Matrix& x, ElementType weight, int bits, int jobs)
    : tokens(x.rows()),
      terms(x.columns()),
      bytes(bits == kInt8BlockBits && HWY_DYNAMIC_DISPATCH(has_byte_tiles)(weight)),
      codes(tokens * terms / (bytes ? 4 : 2)),
      scales(tokens * terms / 32),
      sums(scales.size()),
      centring(bytes ? tokens * terms / byte_form(weight).group : 0) {
  constexpr std::size_t kTokens = 2 * kMostTileRows;  // a multiple of every tile's
  team_for(jobs, (tokens + kTokens - 1) / kTokens, [&](std::size_t i) {
    HWY_DYNAMIC_DISPATCH(pack_ints)
    (x, i * kTokens, std::min(kTokens, tokens - i * kTokens), weight, bits, *this);
  });
}

void integer_panel(const IntTiles& x, const WeightView& weight, std::size_t first, std::size_t count,
                   const Matrix& y) {
  HWY_DYNAMIC_DISPATCH(multiply)(x, weight, first, count, y);
}

}  // namespace assay::cpu
#endif
