#include "kernels/cuda/device_roof.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>

#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/runtime.h"

namespace assay::cuda {
namespace {

constexpr int kRounds = 8;

struct Free {
  void operator()(void* block) const { cudaFree(block); }
};
using Block = std::unique_ptr<void, Free>;
Block allocated(std::size_t bytes) {
  void* block = nullptr;
  if (cudaMalloc(&block, bytes) != cudaSuccess || cudaMemset(block, 0, bytes) != cudaSuccess) return nullptr;
  return Block(block);
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
Event event() {
  cudaEvent_t made = nullptr;
  cudaEventCreate(&made);
  return Event(made);
}

// Seconds of the fastest of several rounds on the default stream; 0: it failed.
template <class Work>
double fastest_seconds(Work work) {
  const Event start = event(), end = event();
  double best = 0;
  for (int i = 0; i < kRounds; ++i) {
    cudaEventRecord(start.get(), nullptr);
    work();
    cudaEventRecord(end.get(), nullptr);
    float milliseconds = 0;
    if (cudaEventSynchronize(end.get()) != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, start.get(), end.get()) != cudaSuccess)
      return 0;
    const double seconds = static_cast<double>(milliseconds) * 1e-3;
    if (i != 0) best = best == 0 ? seconds : std::min(best, seconds);  // the first loads code
  }
  return best;
}

double copied_bytes() {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  const Block from = allocated(kBytes), to = allocated(kBytes);
  if (!from || !to) return 0;
  const double seconds = fastest_seconds(
      [&] { cudaMemcpyAsync(to.get(), from.get(), kBytes, cudaMemcpyDeviceToDevice, nullptr); });
  return seconds == 0 ? 0 : 2.0 * static_cast<double>(kBytes) / seconds;
}

double multiplied_flops() {
  constexpr std::uint32_t kSide = 8192;
  if (!cublas_unavailable().empty()) return 0;
  const std::size_t elements = std::size_t{kSide} * kSide;
  const Block x = allocated(2 * elements), w = allocated(2 * elements), y = allocated(4 * elements);
  if (!x || !w || !y) return 0;
  const GemmArguments product = {.kind = GemmArguments::Kind::bf16,
                                 .m = kSide,
                                 .n = kSide,
                                 .k = kSide,
                                 .x = x.get(),
                                 .w = w.get(),
                                 .y = y.get(),
                                 .x_stride = kSide,
                                 .w_stride = kSide,
                                 .y_stride = kSide};
  const double seconds = fastest_seconds([&] { cublas_gemm(product, nullptr); });
  return seconds == 0 ? 0 : 2.0 * static_cast<double>(elements) * kSide / seconds;
}

}  // namespace

DeviceRoof measure_device_roof() {
  if (!device_machine().unavailable().empty()) return {};
  const DeviceRoof roof = {.flops = multiplied_flops(), .bytes = copied_bytes()};
  cudaGetLastError();  // what failed is told as 0, and shall not be found again
  return roof;
}

}  // namespace assay::cuda
