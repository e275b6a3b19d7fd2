// GGUF blocks as small integers with a scale and a minimum a group, the form dot products want:
//
//   value[i] = scale[i / group] · code[i] + minimum[i / group]
//   Σ value[i]·x[i] = Σ_groups scale · Σ code[i]·x[i] + minimum · Σ x[i]
//
// so that the inner loop multiplies integers brought to float32, and the sums of x over groups are made once
// for all rows. Layouts: core/numeric/gguf_layout.h. Plain loops over bytes, to be included inside the
// namespace of an instruction set, for which the compiler then vectorizes them.

struct UnpackedBlock {
  alignas(64) std::int8_t codes[256];
  alignas(64) float scales[16];
  alignas(64) float minima[16];
};

template <int Codes, int Group, bool Minimum>
struct BlockShape {
  static constexpr int kCodes = Codes, kGroup = Group, kGroups = Codes / Group;
  static constexpr bool kMinimum = Minimum;
};

// float16 → float32 without tables: the exponent's bias is corrected by a multiplication, which also makes
// subnormals right.
HWY_INLINE float widen(gguf_blocks::Half half) {
  const std::uint32_t bits = static_cast<gguf_blocks::U16>(half).get();
  if ((bits & 0x7C00) == 0x7C00) return half.get();  // infinite or NaN
  const float magnitude = std::bit_cast<float>((bits & 0x7FFF) << 13) * 0x1p112F;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

struct Q4_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q4_0;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int i = 0; i < 16; ++i) u.codes[i] = static_cast<std::int8_t>((b.qs[i] & 15) - 8);
    for (int i = 0; i < 16; ++i) u.codes[i + 16] = static_cast<std::int8_t>((b.qs[i] >> 4) - 8);
    u.scales[0] = widen(b.d);
  }
};

struct Q4_1Block : BlockShape<32, 32, true> {
  using Stored = gguf_blocks::Q4_1;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int i = 0; i < 16; ++i) u.codes[i] = static_cast<std::int8_t>(b.qs[i] & 15);
    for (int i = 0; i < 16; ++i) u.codes[i + 16] = static_cast<std::int8_t>(b.qs[i] >> 4);
    u.scales[0] = widen(b.d);
    u.minima[0] = widen(b.m);
  }
};

// The fifth bits of all 32 codes stand in one word, code i's at bit i.
HWY_INLINE void add_fifth_bits(std::uint32_t high, std::int8_t* codes, int offset) {
  for (int i = 0; i < 32; ++i) {
    const int code = codes[i] | static_cast<int>(high >> i & 1) << 4;
    codes[i] = static_cast<std::int8_t>(code - offset);
  }
}

struct Q5_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q5_0;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int i = 0; i < 16; ++i) u.codes[i] = static_cast<std::int8_t>(b.qs[i] & 15);
    for (int i = 0; i < 16; ++i) u.codes[i + 16] = static_cast<std::int8_t>(b.qs[i] >> 4);
    add_fifth_bits(b.qh.get(), u.codes, 16);
    u.scales[0] = widen(b.d);
  }
};

struct Q5_1Block : BlockShape<32, 32, true> {
  using Stored = gguf_blocks::Q5_1;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int i = 0; i < 16; ++i) u.codes[i] = static_cast<std::int8_t>(b.qs[i] & 15);
    for (int i = 0; i < 16; ++i) u.codes[i + 16] = static_cast<std::int8_t>(b.qs[i] >> 4);
    add_fifth_bits(b.qh.get(), u.codes, 0);
    u.scales[0] = widen(b.d);
    u.minima[0] = widen(b.m);
  }
};

struct Q8_0Block : BlockShape<32, 32, false> {
  using Stored = gguf_blocks::Q8_0;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int i = 0; i < 32; ++i) u.codes[i] = b.qs[i];
    u.scales[0] = widen(b.d);
  }
};

// Eight 6-bit scales and minima in 12 bytes: the first four of each whole, in bytes 0–3 and 4–7, whose two
// upper bits go with the nibbles of bytes 8–11 to make the last four.
HWY_INLINE void unpack_scales(const std::uint8_t* packed, float d, float dmin, UnpackedBlock& u) {
  std::uint32_t word[3];
  std::memcpy(word, packed, sizeof word);
  std::uint32_t bytes[4];  // scales 0–3, 4–7, minima 0–3, 4–7, a byte each
  bytes[0] = word[0] & 0x3F3F3F3Fu;
  bytes[1] = (word[2] & 0x0F0F0F0Fu) | (word[0] >> 2 & 0x30303030u);
  bytes[2] = word[1] & 0x3F3F3F3Fu;
  bytes[3] = (word[2] >> 4 & 0x0F0F0F0Fu) | (word[1] >> 2 & 0x30303030u);
  std::uint8_t each[16];
  std::memcpy(each, bytes, sizeof each);
  for (int i = 0; i < 8; ++i) u.scales[i] = d * static_cast<float>(each[i]);
  for (int i = 0; i < 8; ++i) u.minima[i] = -dmin * static_cast<float>(each[8 + i]);
}

struct Q4_KBlock : BlockShape<256, 32, true> {
  using Stored = gguf_blocks::Q4_K;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int part = 0; part < 4; ++part) {
      const std::uint8_t* qs = b.qs + 32 * part;
      std::int8_t* codes = u.codes + 64 * part;
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::int8_t>(qs[i] & 15);
      for (int i = 0; i < 32; ++i) codes[i + 32] = static_cast<std::int8_t>(qs[i] >> 4);
    }
    unpack_scales(b.scales, widen(b.d), widen(b.dmin), u);
  }
};

struct Q5_KBlock : BlockShape<256, 32, true> {
  using Stored = gguf_blocks::Q5_K;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int part = 0; part < 4; ++part) {
      const std::uint8_t* qs = b.qs + 32 * part;
      std::int8_t* codes = u.codes + 64 * part;
      for (int i = 0; i < 32; ++i)
        codes[i] = static_cast<std::int8_t>((qs[i] & 15) | (b.qh[i] >> (2 * part) & 1) << 4);
      for (int i = 0; i < 32; ++i)
        codes[i + 32] = static_cast<std::int8_t>(qs[i] >> 4 | (b.qh[i] >> (2 * part + 1) & 1) << 4);
    }
    unpack_scales(b.scales, widen(b.d), widen(b.dmin), u);
  }
};

struct Q6_KBlock : BlockShape<256, 16, false> {
  using Stored = gguf_blocks::Q6_K;
  static HWY_INLINE void unpack(const Stored& b, UnpackedBlock& u) {
    for (int half = 0; half < 2; ++half) {
      const std::uint8_t *low = b.ql + 64 * half, *high = b.qh + 32 * half;
      std::int8_t* codes = u.codes + 128 * half;
      for (int i = 0; i < 32; ++i) {
        codes[i] = static_cast<std::int8_t>((low[i] & 15 | (high[i] & 3) << 4) - 32);
        codes[i + 32] = static_cast<std::int8_t>((low[i + 32] & 15 | (high[i] >> 2 & 3) << 4) - 32);
        codes[i + 64] = static_cast<std::int8_t>((low[i] >> 4 | (high[i] >> 4 & 3) << 4) - 32);
        codes[i + 96] = static_cast<std::int8_t>((low[i + 32] >> 4 | (high[i] >> 6) << 4) - 32);
      }
    }
    const float d = widen(b.d);
    for (int i = 0; i < 16; ++i) u.scales[i] = d * static_cast<float>(b.scales[i]);
  }
};
