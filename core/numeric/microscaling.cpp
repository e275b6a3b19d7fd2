#include "core/numeric/microscaling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

// Floor or ceil of the binary logarithm of a positive number.
int floor_log2(float x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent - 1;
}
int ceil_log2(float x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5F ? exponent - 1 : exponent;
}

// The magnitudes from which on a value takes codes 1 … 7: the middles between the numbers of E2M1, and where
// a tie goes down the next float above.
using Steps = std::array<float, 7>;
constexpr Steps steps(Fp4Ties ties) {
  constexpr Steps kMiddles = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
  Steps from = kMiddles;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool tie_goes_up = ties == Fp4Ties::even && i % 2 == 1;  // to the code whose last bit is 0
    if (!tie_goes_up) from[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(from[i]) + 1);
  }
  return from;
}

constexpr std::size_t kChunk = 64;  // values between loops that the compiler turns into vectors

}  // namespace

std::uint8_t mx_scale(float amax, MxScaling scaling, const MxElements& elements) {
  if (amax == 0) return 0;
  int power = 0;
  switch (scaling) {
    case MxScaling::floor: power = floor_log2(amax) - elements.largest_power; break;
    case MxScaling::ceil: power = ceil_log2(amax) - elements.largest_power; break;
    case MxScaling::even: {
      // A quarter of the leading bit carries into the exponent from 1.75 on.
      const std::uint32_t raised = std::bit_cast<std::uint32_t>(amax) + (1u << 21);
      power = static_cast<int>(raised >> 23) - 127 - elements.largest_power;
      break;
    }
    case MxScaling::rceil: {
      const float least = amax / elements.largest;
      power = least == 0 ? -127 : ceil_log2(least);
      break;
    }
  }
  return static_cast<std::uint8_t>(std::clamp(power, -127, 127) + 127);
}

void encode_fp4(std::span<const float> values, Fp4Ties ties, std::span<std::byte> out) {
  const Steps from = steps(ties);
  std::array<std::uint32_t, kChunk> codes;
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[begin + i]);
      // Magnitudes are ordered as their bits are.
      const auto magnitude = static_cast<std::int32_t>(bits & 0x7FFFFFFFu);
      std::uint32_t code = bits > 0x80000000u ? 8u : 0u;  // negative, and not -0
      for (const float step : from) code += magnitude >= std::bit_cast<std::int32_t>(step) ? 1u : 0u;
      codes[i] = code;
    }
    for (std::size_t i = 0; i < count; i += 2)
      out[(begin + i) / 2] = static_cast<std::byte>(codes[i] | codes[i + 1] << 4);
  }
}

std::uint64_t divide_blocks(std::span<const float> values, std::uint64_t block, std::span<const float> scales,
                            float limit, std::span<float> out) {
  std::uint64_t beyond = 0, next = 0;
  for (std::uint64_t begin = 0; begin < values.size(); begin += block) {
    const std::uint64_t count = std::min<std::uint64_t>(block, values.size() - begin);
    const float scale = scales[next++];
    const float* from = &values[begin];
    float* to = &out[begin];
    std::uint32_t larger = 0;
    for (std::uint64_t i = 0; i < count; ++i) to[i] = from[i] / scale;
    for (std::uint64_t i = 0; i < count; ++i) larger += std::abs(to[i]) > limit ? 1 : 0;
    beyond += larger;
  }
  return beyond;
}

void quantize_groups(std::span<const float> values, std::uint64_t block, std::span<const float> scales,
                     std::span<const float> zeros, float low, float high, std::span<std::uint8_t> out) {
  constexpr float kRounder = 12582912.0F;  // 1.5 · 2^23: adding it leaves whole numbers, ties to even
  std::array<std::int32_t, kChunk> codes;
  std::uint64_t next = 0;
  for (std::uint64_t begin = 0; begin < values.size(); begin += block, ++next) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + block, values.size());
    const float scale = scales[next], zero = zeros[next];
    for (std::uint64_t at = begin; at < end; at += kChunk) {
      const std::uint64_t count = std::min<std::uint64_t>(kChunk, end - at);
      const float* from = &values[at];
      for (std::uint64_t i = 0; i < count; ++i) {
        float x = from[i] / scale + zero;
        x = x < low ? low : x;
        x = x > high ? high : x;
        codes[i] = static_cast<std::int32_t>((x + kRounder) - kRounder - low);
      }
      for (std::uint64_t i = 0; i < count; ++i) out[at + i] = static_cast<std::uint8_t>(codes[i]);
    }
  }
}

void dequantize_groups(std::span<const std::uint8_t> codes, std::uint64_t block,
                       std::span<const float> scales, std::span<const float> offsets, std::span<float> out) {
  std::uint64_t next = 0;
  for (std::uint64_t begin = 0; begin < codes.size(); begin += block, ++next) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + block, codes.size());
    const float scale = scales[next], offset = offsets[next];
    for (std::uint64_t i = begin; i < end; ++i) out[i] = (static_cast<float>(codes[i]) + offset) * scale;
  }
}

void group_ranges(std::span<const float> values, std::uint64_t block, std::span<float> smallest,
                  std::span<float> largest) {
  constexpr std::uint64_t kLanes = 16;  // independent, so that they fit vectors
  std::uint64_t next = 0;
  for (std::uint64_t begin = 0; begin < values.size(); begin += block, ++next) {
    const std::uint64_t count = std::min<std::uint64_t>(block, values.size() - begin);
    const float* from = &values[begin];
    std::array<float, kLanes> low{}, high{};
    std::uint64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
        const float x = from[i + lane];
        low[lane] = x < low[lane] ? x : low[lane];
        high[lane] = x > high[lane] ? x : high[lane];
      }
    }
    for (; i < count; ++i) {
      low[0] = std::min(low[0], from[i]);
      high[0] = std::max(high[0], from[i]);
    }
    smallest[next] = *std::min_element(low.begin(), low.end());
    largest[next] = *std::max_element(high.begin(), high.end());
  }
}

}  // namespace assay
