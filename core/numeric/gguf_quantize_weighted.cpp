// The block types with an importance matrix: how much the square of each column's activations was on average.
// A value's error then counts that much, times how large the value is against its neighbours:
//
//   w = importance * sqrt(sigma^2 + x^2)        sigma^2: mean square of the row (Q4_0 to Q5_1) or super-block
//
// and the scales of a super-block's groups are themselves fitted with the groups' sums of w. Value by value,
// as ggml's quantize_row_*_impl do it: sums in order, in float32, nothing fused.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/numeric/gguf_quantize_kernels.h"
#include "core/numeric/gguf_quantize_pack.h"

namespace assay::gguf_blocks {
namespace {

constexpr int kMostGroup = 32;

float as_float(int code) {
  return static_cast<float>(code);
}

struct Sums {
  float xl = 0, ll = 0;
  void add(float w, float x, float code) {
    xl += w * x * code;
    ll += w * code * code;
  }
};

// x = scale * (code - most), codes 0 .. 2 most - 1; the scale. Tried: the one that maps the extreme value to
// the end of the range, and nine to either side.
float fit_symmetric(const float* x, const float* w, int n, int most, std::uint8_t* codes) {
  float magnitude = 0, extreme = 0;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) <= magnitude) continue;
    magnitude = std::fabs(x[i]);
    extreme = x[i];
  }
  std::fill_n(codes, n, std::uint8_t{0});
  if (magnitude < kNothing) return 0;
  const auto code_of = [&](float inverse, int i) {
    return std::clamp(nearest_int(inverse * x[i]), -most, most - 1);
  };
  const auto take = [&](float inverse) {
    for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(code_of(inverse, i) + most);
  };
  const auto sums_of = [&](float inverse) {
    Sums sums;
    for (int i = 0; i < n; ++i) sums.add(w[i], x[i], as_float(code_of(inverse, i)));
    return sums;
  };
  const float first = as_float(-most) / extreme;
  take(first);
  Sums sums = sums_of(first);
  float scale = sums.ll != 0 ? sums.xl / sums.ll : 0, best = scale * sums.xl;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const float inverse = -(as_float(most) + 0.1F * as_float(step)) / extreme;
    sums = sums_of(inverse);
    if (!(sums.ll > 0 && sums.xl * sums.xl > best * sums.ll)) continue;
    take(inverse);
    scale = sums.xl / sums.ll;
    best = scale * sums.xl;
  }
  return scale;
}

// x = scale * code + minimum, codes 0 .. most; the scale. `minimum` is not above 0, and returned less its
// sign.
float fit_scale_and_minimum(const float* x, const float* w, int n, int most, std::uint8_t* codes,
                            float& minimum) {
  constexpr int kSteps = 36;
  float least = x[0], greatest = x[0], sum_w = w[0], sum_x = sum_w * x[0];
  for (int i = 1; i < n; ++i) {
    least = std::min(least, x[i]);
    greatest = std::max(greatest, x[i]);
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  least = std::min(least, 0.0F);
  minimum = -least;
  std::fill_n(codes, n, std::uint8_t{0});
  if (greatest <= least) return 0;
  std::uint8_t tried[kMostGroup];
  float base = least;
  const auto code_of = [&](float inverse, int i) {
    return std::clamp(nearest_int(inverse * (x[i] - base)), 0, most);
  };
  const auto error_of = [&](const std::uint8_t* of, float scale, float offset) {
    float error = 0;
    for (int i = 0; i < n; ++i) {
      const float off = scale * as_float(of[i]) + offset - x[i];
      error += w[i] * (off * off);
    }
    return error;
  };
  const float first = as_float(most) / (greatest - least);
  float scale = 1 / first;
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(code_of(first, i));
  float best = error_of(codes, scale, base);
  for (int step = 0; step <= kSteps; ++step) {
    // The base moves with every improvement, the greatest value does not.
    const float inverse = (-0.9F + 0.05F * as_float(step) + as_float(most)) / (greatest - base);
    float sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (int i = 0; i < n; ++i) {
      const int code = code_of(inverse, i);
      tried[i] = static_cast<std::uint8_t>(code);
      const float wl = w[i] * as_float(code);
      sum_l += wl;
      sum_ll += wl * as_float(code);
      sum_xl += wl * x[i];
    }
    const float determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float own_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float own_base = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
    if (own_base > 0) {
      own_base = 0;
      own_scale = sum_xl / sum_ll;
    }
    const float error = error_of(tried, own_scale, own_base);
    if (!(error < best)) continue;
    std::copy_n(tried, n, codes);
    best = error;
    scale = own_scale;
    base = own_base;
  }
  minimum = -base;
  return scale;
}

// x = scale * code, codes 0 .. most, of values from 0 up; the scale. Nine scales are tried, then codes are
// changed one at a time as long as that helps.
float fit_positive(const float* x, const float* w, int n, int most, std::uint8_t* codes) {
  float greatest = 0;
  for (int i = 0; i < n; ++i) greatest = std::max(greatest, x[i]);
  std::fill_n(codes, n, std::uint8_t{0});
  if (greatest < kNothing) return 0;
  float inverse = as_float(most) / greatest;
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(nearest_int(inverse * x[i]));
  float best = 0;
  for (int i = 0; i < n; ++i) {
    const float off = x[i] - 1 / inverse * as_float(codes[i]);
    best += w[i] * off * off;
  }
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float own = (0.1F * as_float(step) + as_float(most)) / greatest, scale = 1 / own;
    float error = 0;
    for (int i = 0; i < n; ++i) {
      const float off = x[i] - scale * as_float(std::min(most, nearest_int(own * x[i])));
      error += w[i] * off * off;
    }
    if (!(error < best)) continue;
    best = error;
    inverse = own;
  }
  Sums sums;
  for (int i = 0; i < n; ++i) {
    const int code = std::min(most, nearest_int(inverse * x[i]));
    codes[i] = static_cast<std::uint8_t>(code);
    sums.add(w[i], x[i], as_float(code));
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (int i = 0; i < n; ++i) {
      Sums without;
      without.xl = sums.xl - w[i] * x[i] * as_float(codes[i]);
      without.ll = sums.ll - w[i] * as_float(codes[i]) * as_float(codes[i]);
      if (!(without.xl > 0 && without.ll > 0)) continue;
      const int other = std::min(most, nearest_int(x[i] * without.ll / without.xl));
      if (other == codes[i]) continue;
      without.add(w[i], x[i], as_float(other));
      if (!(without.xl * without.xl * sums.ll > sums.xl * sums.xl * without.ll)) continue;
      codes[i] = static_cast<std::uint8_t>(other);
      sums = without;
      changed = true;
    }
    if (!changed) break;
  }
  return sums.ll > 0 ? sums.xl / sums.ll : 0;
}

float mean_square(const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(n);
}

// Returns the sum of the weights.
float weigh(const float* x, const float* importance, float sigma2, int n, float* w) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    w[i] = importance[i] * std::sqrt(sigma2 + x[i] * x[i]);
    sum += w[i];
  }
  return sum;
}

// --- 32 values under a scale of their own ------------------------------------------------------------------

// Weights are against the row's mean square.
void quantize_one(const float* x, const float* w, Q4_0& block) {
  std::uint8_t codes[32];
  store_half(block.d, fit_symmetric(x, w, 32, 8, codes));
  pack_halves(codes, block.qs);
}
void quantize_one(const float* x, const float* w, Q5_0& block) {
  std::uint8_t codes[32];
  store_half(block.d, fit_symmetric(x, w, 32, 16, codes));
  const std::uint32_t fifth = pack_halves(codes, block.qs);
  std::memcpy(block.qh.bytes, &fifth, sizeof fifth);
}
void quantize_one(const float* x, const float* w, Q4_1& block) {
  std::uint8_t codes[32];
  float minimum = 0;
  store_half(block.d, fit_scale_and_minimum(x, w, 32, 15, codes, minimum));
  store_half(block.m, -minimum);
  pack_halves(codes, block.qs);
}
void quantize_one(const float* x, const float* w, Q5_1& block) {
  std::uint8_t codes[32];
  float minimum = 0;
  store_half(block.d, fit_scale_and_minimum(x, w, 32, 31, codes, minimum));
  store_half(block.m, -minimum);
  const std::uint32_t fifth = pack_halves(codes, block.qs);
  std::memcpy(block.qh.bytes, &fifth, sizeof fifth);
}

template <class Block>
void quantize_by_row(const float* x, const float* importance, std::size_t columns, std::byte* out) {
  const float sigma2 = mean_square(x, columns);
  float w[32];
  for (std::size_t at = 0; at < columns; at += 32, out += sizeof(Block)) {
    Block block{};
    weigh(x + at, importance + at, sigma2, 32, w);
    quantize_one(x + at, w, block);
    std::memcpy(out, &block, sizeof block);
  }
}

// --- super-blocks ------------------------------------------------------------------------------------------

// Codes for the scale as stored; where that is 0 those of the search stay.
void recode(const float* x, int n, float scale, float minimum, int least, int most, std::uint8_t* codes) {
  if (scale == 0) return;
  for (int i = 0; i < n; ++i)
    codes[i] =
        static_cast<std::uint8_t>(std::clamp(nearest_int((x[i] + minimum) / scale), least, most) - least);
}

struct GroupFits {
  float scale[16], minimum[16], weight[16];
};

template <int kGroup, int kMost>
void fit_groups(const float* x, const float* importance, float sigma2, std::uint8_t* codes, GroupFits& fits) {
  float w[kGroup];
  for (int g = 0; g < kSuperBlock / kGroup; ++g) {
    fits.weight[g] = weigh(x + kGroup * g, importance + kGroup * g, sigma2, kGroup, w);
    fits.scale[g] =
        fit_scale_and_minimum(x + kGroup * g, w, kGroup, kMost, codes + kGroup * g, fits.minimum[g]);
  }
}

void quantize_one(const float* x, const float* importance, Q2_K& block) {
  std::uint8_t codes[kSuperBlock], scales[16], minima[16];
  GroupFits fits;
  fit_groups<16, 3>(x, importance, mean_square(x, kSuperBlock), codes, fits);
  const float d = store_half(block.d, fit_positive(fits.scale, fits.weight, 16, 15, scales));
  const float dmin = store_half(block.dmin, fit_positive(fits.minimum, fits.weight, 16, 15, minima));
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<std::uint8_t>(scales[g] | minima[g] << 4);
    recode(x + 16 * g, 16, d * as_float(block.scales[g] & 15), dmin * as_float(block.scales[g] >> 4), 0, 3,
           codes + 16 * g);
  }
  pack_codes(codes, block);
}

template <int kMost, class Block>
void quantize_scale_min(const float* x, const float* importance, Block& block) {
  std::uint8_t codes[kSuperBlock], scales[8], minima[8];
  GroupFits fits;
  fit_groups<32, kMost>(x, importance, 2 * mean_square(x, kSuperBlock), codes, fits);
  const float d = store_half(block.d, fit_positive(fits.scale, fits.weight, 8, 63, scales));
  const float dmin = store_half(block.dmin, fit_positive(fits.minimum, fits.weight, 8, 63, minima));
  for (int g = 0; g < 8; ++g) {
    const int ls = std::min<int>(63, scales[g]), lm = std::min<int>(63, minima[g]);
    put_scale_and_minimum(block, g, ls, lm);
    recode(x + 32 * g, 32, d * as_float(ls), dmin * as_float(lm), 0, kMost, codes + 32 * g);
  }
  pack_codes(codes, block);
}
void quantize_one(const float* x, const float* importance, Q4_K& block) {
  quantize_scale_min<15>(x, importance, block);
}
void quantize_one(const float* x, const float* importance, Q5_K& block) {
  quantize_scale_min<31>(x, importance, block);
}

void quantize_one(const float* x, const float* importance, Q3_K& block) {
  std::uint8_t codes[kSuperBlock], levels[16];
  float scales[16], weights[16], w[16];
  const float sigma2 = 2 * mean_square(x, kSuperBlock);
  for (int g = 0; g < 16; ++g) {
    weights[g] = weigh(x + 16 * g, importance + 16 * g, sigma2, 16, w);
    scales[g] = fit_symmetric(x + 16 * g, w, 16, 4, codes + 16 * g);
  }
  const float d = store_half(block.d, fit_symmetric(scales, weights, 16, 32, levels));
  for (int g = 0; g < 16; ++g) {
    put_level(block, g, levels[g]);
    recode(x + 16 * g, 16, d * as_float(levels[g] - 32), 0, -4, 3, codes + 16 * g);
  }
  pack_codes(codes, block);
}

// Here the importance alone is the weight.
void quantize_one(const float* x, const float* importance, Q6_K& block) {
  std::uint8_t codes[kSuperBlock];
  float scales[16], greatest = 0;
  for (int g = 0; g < 16; ++g) {
    scales[g] = fit_symmetric(x + 16 * g, importance + 16 * g, 16, 32, codes + 16 * g);
    if (std::fabs(scales[g]) > std::fabs(greatest)) greatest = scales[g];
  }
  if (std::fabs(greatest) < kNothing) return;  // zero bytes
  const float inverse = -128 / greatest;
  const float d = store_half(block.d, 1 / inverse);
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<std::int8_t>(std::min(127, nearest_int(inverse * scales[g])));
    recode(x + 16 * g, 16, d * as_float(block.scales[g]), 0, -32, 31, codes + 16 * g);
  }
  pack_codes(codes, block);
}

// --- a table of sixteen levels -----------------------------------------------------------------------------

int nearest_level(float x) {
  int code = 0;
  while (code < 15 && x >= 0.5F * as_float(kIq4Levels[code] + kIq4Levels[code + 1])) ++code;
  return code;
}

float fit_levels(const float* x, const float* w) {
  float magnitude = 0, extreme = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) <= magnitude) continue;
    magnitude = std::fabs(x[i]);
    extreme = x[i];
  }
  if (magnitude < kNothing) return 0;
  const auto sums_of = [&](float inverse) {
    Sums sums;
    for (int i = 0; i < 32; ++i) {
      const float level = as_float(kIq4Levels[nearest_level(inverse * x[i])]);
      sums.xl += w[i] * level * x[i];
      sums.ll += w[i] * level * level;
    }
    return sums;
  };
  Sums sums = sums_of(1 / (-extreme / as_float(kIq4Levels[0])));
  float scale = sums.ll > 0 ? sums.xl / sums.ll : 0, best = scale * sums.xl;
  for (int attempt = -7; attempt <= 7; ++attempt) {
    sums = sums_of(as_float(attempt + kIq4Levels[0]) / extreme);
    if (!(sums.ll > 0 && sums.xl * sums.xl > best * sums.ll)) continue;
    scale = sums.xl / sums.ll;
    best = scale * sums.xl;
  }
  return scale;
}

void code_levels(const float* x, float scale, std::uint8_t* qs) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  std::uint8_t codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(nearest_level(inverse * x[i]));
  pack_halves(codes, qs);
}

void quantize_one(const float* x, const float* importance, IQ4_NL& block) {
  float w[32];
  weigh(x, importance, 2 * mean_square(x, 32), 32, w);
  const float scale = fit_levels(x, w);
  store_half(block.d, scale);
  code_levels(x, scale, block.qs);
}

void quantize_one(const float* x, const float* importance, IQ4_XS& block) {
  float scales[8], greatest = 0, w[32];
  const float sigma2 = 2 * mean_square(x, kSuperBlock);
  for (int g = 0; g < 8; ++g) {
    weigh(x + 32 * g, importance + 32 * g, sigma2, 32, w);
    scales[g] = fit_levels(x + 32 * g, w);
    if (std::fabs(scales[g]) > std::fabs(greatest)) greatest = scales[g];
  }
  const float step = -greatest / 32, inverse = step != 0 ? 1 / step : 0;
  store_half(block.d, step);
  std::uint16_t high = 0;
  for (int g = 0; g < 8; ++g) {
    const int level = std::clamp(nearest_int(inverse * scales[g]), -32, 31);
    code_levels(x + 32 * g, step * as_float(level), block.qs + 16 * g);
    high |= put_level(block, g, level + 32);
  }
  std::memcpy(block.scales_high.bytes, &high, sizeof high);
}

template <class Block>
void quantize_blocks(const float* x, const float* importance, std::size_t columns, std::byte* out) {
  constexpr std::size_t kValues = std::is_same_v<Block, IQ4_NL> ? 32 : kSuperBlock;
  for (std::size_t at = 0; at < columns; at += kValues, out += sizeof(Block)) {
    Block block{};
    quantize_one(x + at, importance + at, block);
    std::memcpy(out, &block, sizeof block);
  }
}

using Kernel = void (*)(const float*, const float*, std::size_t, std::byte*);

Kernel kernel_for(ElementType type) {
  switch (type) {
    case ElementType::Q4_0: return quantize_by_row<Q4_0>;
    case ElementType::Q4_1: return quantize_by_row<Q4_1>;
    case ElementType::Q5_0: return quantize_by_row<Q5_0>;
    case ElementType::Q5_1: return quantize_by_row<Q5_1>;
    case ElementType::Q2_K: return quantize_blocks<Q2_K>;
    case ElementType::Q3_K: return quantize_blocks<Q3_K>;
    case ElementType::Q4_K: return quantize_blocks<Q4_K>;
    case ElementType::Q5_K: return quantize_blocks<Q5_K>;
    case ElementType::Q6_K: return quantize_blocks<Q6_K>;
    case ElementType::IQ4_NL: return quantize_blocks<IQ4_NL>;
    case ElementType::IQ4_XS: return quantize_blocks<IQ4_XS>;
    default: return nullptr;
  }
}

}  // namespace

bool can_weigh(ElementType type) {
  return kernel_for(type) != nullptr;
}

void quantize_weighted(ElementType type, const float* x, const float* importance, std::size_t columns,
                       std::byte* out) {
  kernel_for(type)(x, importance, columns, out);
}

}  // namespace assay::gguf_blocks
