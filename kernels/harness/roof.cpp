#include "kernels/harness/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/numeric/simd_disabled_targets.h"
#include "core/system/threads.h"
#include "kernels/harness/product_peak.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/harness/roof.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::roof::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Ten chains of multiply-adds that do not wait for each other: more than any core's latency × ports. They are
// named one by one so that each stays in a register.
constexpr std::size_t kChains = 10;

// Returns the flops done; `sink` keeps the compiler from dropping them.
double multiply_add(std::size_t steps, float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999F), y = hn::Set(d, 1e-6F);
  auto s0 = y, s1 = y, s2 = y, s3 = y, s4 = y, s5 = y, s6 = y, s7 = y, s8 = y, s9 = y;
  for (std::size_t i = 0; i < steps; ++i) {
    s0 = hn::MulAdd(s0, x, y);
    s1 = hn::MulAdd(s1, x, y);
    s2 = hn::MulAdd(s2, x, y);
    s3 = hn::MulAdd(s3, x, y);
    s4 = hn::MulAdd(s4, x, y);
    s5 = hn::MulAdd(s5, x, y);
    s6 = hn::MulAdd(s6, x, y);
    s7 = hn::MulAdd(s7, x, y);
    s8 = hn::MulAdd(s8, x, y);
    s9 = hn::MulAdd(s9, x, y);
  }
  const auto low = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), s4);
  const auto high = hn::Add(hn::Add(hn::Add(s5, s6), hn::Add(s7, s8)), s9);
  *sink = hn::GetLane(hn::Add(low, high));
  return 2.0 * static_cast<double>(steps * kChains * hn::Lanes(d));
}

float sum_of(const float* values, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, values + i));
    b = hn::Add(b, hn::LoadU(d, values + i + lanes));
    c = hn::Add(c, hn::LoadU(d, values + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, values + i + 3 * lanes));
  }
  return hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

}  // namespace assay::roof::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {
namespace roof {
HWY_EXPORT(multiply_add);
HWY_EXPORT(sum_of);
}  // namespace roof

namespace {

template <class Work>
double fastest_seconds(Work work) {
  double best = 1e9;
  for (int i = 0; i < 12; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// What all threads together make of it a second, at best.
double products_a_second(int jobs, double (*make)(std::size_t)) {
  constexpr std::size_t kSteps = 1 << 20;
  const auto threads = static_cast<std::size_t>(jobs);
  std::vector<double> made(threads);
  if (make(1) == 0) return 0;
  const double seconds =
      fastest_seconds([&] { parallel_for(jobs, threads, [&](std::size_t i) { made[i] = make(kSteps); }); });
  return std::accumulate(made.begin(), made.end(), 0.0) / seconds;
}

}  // namespace

Roof measure_roof(int jobs) {
  constexpr std::size_t kSteps = 1 << 20, kFloats = std::size_t{64} << 20, kPieces = 64;
  const auto threads = static_cast<std::size_t>(jobs);
  std::vector<float> sinks(std::max(threads, kPieces) * 16);
  std::vector<double> flops(threads);
  Roof roof;
  const double computing = fastest_seconds([&] {
    parallel_for(jobs, threads, [&](std::size_t i) {
      flops[i] = HWY_DYNAMIC_DISPATCH(roof::multiply_add)(kSteps, &sinks[i * 16]);
    });
  });
  for (const double each : flops) roof.flops += each / computing;
  roof.bf16_products = products_a_second(jobs, multiply_bf16_pairs);
  roof.byte_products = products_a_second(jobs, multiply_bytes);
  const std::vector<float> memory(kFloats, 1.0F);
  const double reading = fastest_seconds([&] {
    parallel_for(jobs, kPieces, [&](std::size_t i) {
      sinks[i * 16] = HWY_DYNAMIC_DISPATCH(roof::sum_of)(&memory[i * (kFloats / kPieces)], kFloats / kPieces);
    });
  });
  roof.bytes = static_cast<double>(kFloats * sizeof(float)) / reading;
  return roof;
}

}  // namespace assay
#endif
