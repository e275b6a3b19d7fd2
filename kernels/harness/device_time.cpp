#include "kernels/harness/device_time.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace assay {
namespace {

// So many rounds make up `least`: a neighbour on the machine spoils one of them, not all.
constexpr double kRounds = 5;

// Seconds of `count` calls.
double round_of(ModelMemory& memory, const std::function<void()>& call, std::size_t count) {
  const auto start = std::chrono::steady_clock::now();
  memory.enter();
  try {
    for (std::size_t i = 0; i < count; ++i) call();
  } catch (...) {
    memory.leave();
    throw;
  }
  memory.leave();
  memory.synchronise();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Matrix DeviceOps::allocate(std::size_t rows, std::size_t columns) {
  const Real real = arithmetic().storage();
  return {memory_.allocate(rows * columns * (real == Real::f64 ? sizeof(double) : sizeof(float))), real, rows,
          columns};
}

double seconds_on_device(ModelMemory& memory, const std::function<void()>& call, double least) {
  round_of(memory, call, 1);  // copies weights, loads code, lets a library choose
  double best = std::numeric_limits<double>::infinity(), total = 0;
  std::size_t count = 1;
  for (int round = 0; round < 2 || total < least; ++round) {
    const double seconds = round_of(memory, call, count);
    best = std::min(best, seconds / static_cast<double>(count));
    total += seconds;
    if (seconds < least / kRounds) count *= 2;
  }
  return best;
}

}  // namespace assay
