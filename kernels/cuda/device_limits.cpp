#include "kernels/cuda/device_limits.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/launch_plan.h"

namespace assay::cuda {
namespace {

constexpr std::size_t operator""_KiB(unsigned long long count) {
  return static_cast<std::size_t>(count) * 1024;
}

// An SM's shared memory, less what the driver reserves, is what one block may have.
constexpr std::array<DeviceLimits, 7> kKnown = {{
    {80, 163_KiB, 164_KiB, 2048, 32, 108, "A100"},
    {86, 99_KiB, 100_KiB, 1536, 16, 72, "A10"},
    {87, 163_KiB, 164_KiB, 1536, 16, 16, "Jetson AGX Orin"},
    {89, 99_KiB, 100_KiB, 1536, 24, 142, "L40S"},
    {90, 227_KiB, 228_KiB, 2048, 32, 132, "H100 SXM"},
    {100, 227_KiB, 228_KiB, 2048, 32, 148, "B200"},
    {120, 99_KiB, 100_KiB, 1536, 24, 170, "RTX 5090"},
}};

constexpr unsigned kRegisterStep = 256;  // registers are given out to a warp in steps of this
constexpr std::size_t kSharedStep = 128;

}  // namespace

std::span<const DeviceLimits> all_device_limits() {
  return kKnown;
}

const DeviceLimits* limits_of(int sm) {
  const auto it =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const DeviceLimits& l) { return l.sm == sm; });
  return it == kKnown.end() ? nullptr : &*it;
}

unsigned resident_blocks(const DeviceLimits& limits, unsigned threads, std::size_t shared_bytes,
                         unsigned registers_per_thread) {
  if (threads == 0 || threads > limits.threads_per_block || shared_bytes > limits.shared_per_block ||
      registers_per_thread > limits.registers_per_thread)
    return 0;
  const unsigned warps = (threads + kWarp - 1) / kWarp;
  const std::size_t registers =
      round_up(std::max<std::size_t>(1, registers_per_thread) * kWarp, kRegisterStep) * warps;
  const std::size_t shared = round_up(shared_bytes + kReservedShared, kSharedStep);
  const std::size_t fit = std::min({static_cast<std::size_t>(limits.blocks_per_sm),
                                    static_cast<std::size_t>(limits.threads_per_sm / (warps * kWarp)),
                                    limits.registers_per_sm / registers, limits.shared_per_sm / shared});
  return static_cast<unsigned>(fit);
}

}  // namespace assay::cuda
