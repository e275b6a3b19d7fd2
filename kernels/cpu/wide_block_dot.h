// One row of GGUF blocks by the inputs of up to eight tokens, of 8 bits, where AVX-512 multiplies bytes (VNNI): codes are
// unpacked once, 64 to a vector, and a token takes an instruction for each 64 of them. The same sums in the same order as
// by shorter vectors (small_block_dot.h, super_block_dot.h), and so the same bits. To be included inside the namespace of
// that instruction set.
//
// 256 codes at a time, a super-block or eight blocks of 32, as Input256Wide (int8_input.h) has the inputs: lanes s and s + 8
// of a vector belong to one group of 32, to its first and its last sixteenth, and vector j has codes 4·j … of these. Groups
// are in the order 0 4 1 5 2 6 3 7 in super-blocks, in their own in eight blocks.

HWY_INLINE __m512i lanes_of(const std::uint8_t (&of)[16]) {
  return _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(of)));
}
// Lanes of one vector, or of two.
HWY_INLINE __m512i picked(__m512i first, __m512i lanes, __m512i last) {
  return _mm512_permutex2var_epi32(first, lanes, last);
}
HWY_INLINE __m512i next(__m512i lanes) {
  return _mm512_add_epi32(lanes, _mm512_set1_epi32(1));
}
HWY_INLINE __m512i bits_of(__m512i v, int of_each_byte) {
  return _mm512_and_si512(v, _mm512_set1_epi32(of_each_byte * 0x01010101));
}
HWY_INLINE __m512i loaded(const void* at) {
  return _mm512_loadu_si512(at);
}

struct WideCodes {
  __m512i of[4];
};

// 32 bytes for each two groups, the first in the low nibbles.
template <class Stored>
HWY_INLINE WideCodes wide_nibbles(const Stored& block) {
  alignas(16) static constexpr std::uint8_t kLanes[16] = {0, 16, 0, 16, 8,  24, 8,  24,
                                                          4, 20, 4, 20, 12, 28, 12, 28};
  alignas(16) static constexpr std::uint8_t kShifts[16] = {0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4};
  const __m512i first = loaded(block.qs), last = loaded(block.qs + 64), shifts = lanes_of(kShifts);
  __m512i lanes = lanes_of(kLanes);
  WideCodes codes;
  unrolled<4>([&](auto j) UNROLLED {
    codes.of[j] = bits_of(_mm512_srlv_epi32(picked(first, lanes, last), shifts), 15);
    lanes = next(lanes);
  });
  return codes;
}
HWY_INLINE WideCodes wide_codes(const gguf_blocks::Q4_K& block) {
  return wide_nibbles(block);
}
// Bit g of a byte of qh is the fifth of a code of group g.
HWY_INLINE WideCodes wide_codes(const gguf_blocks::Q5_K& block) {
  alignas(16) static constexpr std::uint8_t kLanes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4};
  alignas(16) static constexpr std::uint8_t kTurns[16] = {4, 0, 3, 31, 2, 30, 1, 29,
                                                          4, 0, 3, 31, 2, 30, 1, 29};
  const __m512i high = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.qh)));
  const __m512i turns = lanes_of(kTurns);
  __m512i lanes = lanes_of(kLanes);
  WideCodes codes = wide_nibbles(block);
  unrolled<4>([&](auto j) UNROLLED {
    const __m512i fifths = _mm512_rolv_epi32(_mm512_permutexvar_epi32(lanes, high), turns);
    codes.of[j] = _mm512_or_si512(codes.of[j], bits_of(fifths, 16));
    lanes = next(lanes);
  });
  return codes;
}
// Halves of 128 codes: four groups, of which ql has the lower nibbles of the first two and in the upper ones the others,
// qh their upper bits, the first group's lowest.
HWY_INLINE WideCodes wide_codes(const gguf_blocks::Q6_K& block) {
  alignas(16) static constexpr std::uint8_t kLow[16] = {0, 16, 8,  24, 0, 16, 8,  24,
                                                        4, 20, 12, 28, 4, 20, 12, 28};
  alignas(16) static constexpr std::uint8_t kShifts[16] = {0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4};
  alignas(16) static constexpr std::uint8_t kHigh[16] = {0, 8, 0, 8, 0, 8, 0, 8, 4, 12, 4, 12, 4, 12, 4, 12};
  alignas(16) static constexpr std::uint8_t kTurns[16] = {4, 4, 2, 2, 0, 0, 30, 30, 4, 4, 2, 2, 0, 0, 30, 30};
  const __m512i first = loaded(block.ql), last = loaded(block.ql + 64), high = loaded(block.qh);
  const __m512i shifts = lanes_of(kShifts), turns = lanes_of(kTurns);
  __m512i low_lanes = lanes_of(kLow), high_lanes = lanes_of(kHigh);
  WideCodes codes;
  unrolled<4>([&](auto j) UNROLLED {
    const __m512i low = _mm512_srlv_epi32(picked(first, low_lanes, last), shifts);
    const __m512i upper = _mm512_rolv_epi32(_mm512_permutexvar_epi32(high_lanes, high), turns);
    codes.of[j] = _mm512_or_si512(bits_of(low, 15), bits_of(upper, 48));
    low_lanes = next(low_lanes), high_lanes = next(high_lanes);
  });
  return codes;
}

// 256 codes as they are multiplied: sums of lanes begin with `start` and are `scaled`; each group's counts its scale, and
// beside them its sum of inputs its minimum.
struct WideFactors {
  WideCodes codes;
  __m256 scales;
  HWY_INLINE __m512i start(const Input256Wide&) const { return _mm512_setzero_si512(); }
  HWY_INLINE __m512i products(__m512i sums, std::size_t j, __m512i inputs) const {
    return _mm512_dpbusd_epi32(sums, codes.of[j], inputs);
  }
  HWY_INLINE __m512i scaled(__m512i sums) const { return sums; }
};

template <class Stored>  // Q4_K, Q5_K
struct Wide256 : WideFactors {
  static constexpr bool kMinimum = true;
  __m256 minima;
  HWY_INLINE void unpack(const Stored* block) {
    codes = wide_codes(*block);
    SixBitScales bytes;
    unpack_six_bits<true>(block->scales, bytes);
    const auto numbers = [&](std::size_t i) UNROLLED {
      return _mm256_cvtepi32_ps(
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes.each + i))));
    };
    scales = _mm256_mul_ps(numbers(0), _mm256_set1_ps(widen(block->d)));
    minima = _mm256_mul_ps(numbers(8), _mm256_set1_ps(-widen(block->dmin)));
  }
};
template <>  // a scale of 8 bits for each sixteenth; codes that mean 32 less
struct Wide256<gguf_blocks::Q6_K> : WideFactors {
  static constexpr bool kMinimum = false;
  __m512i of_sixteenths;
  HWY_INLINE void unpack(const gguf_blocks::Q6_K* block) {
    codes = wide_codes(*block);
    scales = _mm256_set1_ps(widen(block->d));
    alignas(16) static constexpr std::uint8_t kLanes[16] = {0, 8, 2, 10, 4, 12, 6, 14,
                                                            1, 9, 3, 11, 5, 13, 7, 15};
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block->scales));
    of_sixteenths = _mm512_cvtepi8_epi32(
        _mm_shuffle_epi8(bytes, _mm_load_si128(reinterpret_cast<const __m128i*>(kLanes))));
  }
  HWY_INLINE __m512i start(const Input256Wide& x) const {
    return _mm512_slli_epi32(_mm512_sub_epi32(_mm512_setzero_si512(), loaded(x.sums_of_16)), 5);
  }
  HWY_INLINE __m512i scaled(__m512i sums) const { return _mm512_mullo_epi32(sums, of_sixteenths); }
};

// Of eight blocks the codes, which `at` gives block by block.
template <class At>
HWY_INLINE WideCodes of_eight_blocks(const At& at) {
  // Four blocks' lanes of vectors j and j + 1, then those of all eight.
  alignas(16) static constexpr std::uint8_t kOfFour[16] = {0, 8, 16, 24, 4, 12, 20, 28,
                                                           1, 9, 17, 25, 5, 13, 21, 29};
  const __m512i this_one = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i next_one = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const auto pair = [&](int i) UNROLLED {
    return _mm512_inserti64x4(_mm512_castsi256_si512(at(i).raw), at(i + 1).raw, 1);
  };
  const __m512i pairs[4] = {pair(0), pair(2), pair(4), pair(6)};
  __m512i lanes = lanes_of(kOfFour);
  WideCodes codes;
  unrolled<2>([&](auto half) UNROLLED {
    const __m512i first = picked(pairs[0], lanes, pairs[1]), last = picked(pairs[2], lanes, pairs[3]);
    codes.of[2 * half] = _mm512_permutex2var_epi64(first, this_one, last);
    codes.of[2 * half + 1] = _mm512_permutex2var_epi64(first, next_one, last);
    lanes = next(next(lanes));
  });
  return codes;
}

template <class Stored>  // Q4_0, Q4_1, Q5_0, Q5_1
struct WideEight : WideFactors {
  static constexpr bool kMinimum = true;
  __m256 minima;
  HWY_INLINE void unpack(const Stored* block) {
    codes = of_eight_blocks([&](int i) UNROLLED { return Small<Stored>::codes(block[i], 0); });
    const VF scale = halves_of(block, &Stored::d);
    scales = scale.raw;
    if constexpr (kOwnMinimum<Stored>)
      minima = halves_of(block, &Stored::m).raw;
    else
      minima = hn::Mul(scale, hn::Set(DF(), Small<Stored>::kScales)).raw;
  }
};
// Codes with a sign are the right factor, inputs the left one, 128 too large: Σ (q + 128)·w - 128·Σ w.
template <>
struct WideEight<gguf_blocks::Q8_0> : WideFactors {
  static constexpr bool kMinimum = false;
  __m512i centring;
  HWY_INLINE void unpack(const gguf_blocks::Q8_0* block) {
    codes = of_eight_blocks([&](int i) UNROLLED {
      return hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(block[i].qs));
    });
    scales = halves_of(block, &gguf_blocks::Q8_0::d).raw;
    __m512i sums = _mm512_setzero_si512();
    unrolled<4>([&](auto j)
                    UNROLLED { sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(-128), codes.of[j]); });
    centring = _mm512_sub_epi32(_mm512_setzero_si512(), sums);
  }
  HWY_INLINE __m512i start(const Input256Wide&) const { return centring; }
  HWY_INLINE __m512i products(__m512i sums, std::size_t j, __m512i inputs) const {
    return _mm512_dpbusd_epi32(sums, inputs, codes.of[j]);
  }
};

// Where rows are in memory, `bytes` apart.
template <class Stored>
struct WideRows {
  const std::byte* at;
  std::size_t bytes;
  HWY_INLINE const Stored* block(std::size_t row, std::size_t b) const {
    return reinterpret_cast<const Stored*>(at + row * bytes) + b;
  }
};

// Whole 256 codes of some rows, a block `step` on each, added up. Inputs are loaded once for all the rows: two loads of 64
// bytes would take as long as two products.
template <class Wide, std::size_t Rows, class Stored, std::size_t Tokens>
HWY_INLINE void add_wide(const WideRows<Stored>& w, std::size_t step, std::size_t blocks,
                         const Inputs<Tokens>& x, VF (&y)[Rows][Tokens]) {
  __m256 totals[Rows][Tokens];
  unrolled<Rows>([&](auto r) UNROLLED {
    unrolled<Tokens>([&](auto t) UNROLLED { totals[r][t] = _mm256_setzero_ps(); });
  });
  for (std::size_t b = 0; b < blocks; ++b) {
    unrolled<Rows>([&](auto r) UNROLLED { fetch_ahead(w.block(r, b * step), step * sizeof(Stored)); });
    Wide wide[Rows];
    unrolled<Rows>([&](auto r) UNROLLED { wide[r].unpack(w.block(r, b * step)); });
    unrolled<Tokens>([&](auto t) UNROLLED {
      const Input256Wide& in = x[t].wide[b];
      const __m512i inputs[4] = {loaded(in.codes[0]), loaded(in.codes[1]), loaded(in.codes[2]),
                                 loaded(in.codes[3])};
      const __m256 scales = _mm256_load_ps(in.scales);
      unrolled<Rows>([&](auto r) UNROLLED {
        __m512i sums = wide[r].start(in);
        unrolled<4>([&](auto j) UNROLLED { sums = wide[r].products(sums, j, inputs[j]); });
        sums = wide[r].scaled(sums);
        const __m256i of_groups =
            _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
        __m256& total = totals[r][t];
        total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(of_groups), _mm256_mul_ps(wide[r].scales, scales), total);
        if constexpr (Wide::kMinimum)
          total = _mm256_fmadd_ps(wide[r].minima, _mm256_load_ps(in.sums_of_32), total);
      });
    });
  }
  unrolled<Rows>([&](auto r)
                     UNROLLED { unrolled<Tokens>([&](auto t) UNROLLED { y[r][t] = VF{totals[r][t]}; }); });
}

template <class Block, std::size_t Rows, std::size_t Tokens>
HWY_INLINE void dot_wide_blocks(const std::byte* w, std::size_t row_bytes, std::size_t groups,
                                const Inputs<Tokens>& x, float (&y)[Rows][Tokens]) {
  using Stored = typename Block::Stored;
  const WideRows<Stored> rows = {w, row_bytes};
  VF sums[Rows][Tokens];
  float rest[Rows][Tokens] = {};
  if constexpr (Block::kCodes == 256) {
    add_wide<Wide256<Stored>>(rows, 1, groups / 8, x, sums);
  } else {
    add_wide<WideEight<Stored>>(rows, 8, groups / 8, x, sums);
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t b = groups / 8 * 8; b < groups; ++b) add_block(*rows.block(r, b), x, b, rest[r]);
    }
  }
  unrolled<Rows>([&](auto r) UNROLLED {
    unrolled<Tokens>([&](auto t)
                         UNROLLED { y[r][t] = hn::GetLane(hn::SumOfLanes(DF(), sums[r][t])) + rest[r][t]; });
  });
}
