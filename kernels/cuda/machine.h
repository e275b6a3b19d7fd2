// Where kernels of this folder run: the device at hand, or the emulator. What a kernel's host side needs of
// either is its limits, and its arguments in memory that the kernel can reach.
//
//   Staging& staging = …;                          // of one call: machine.stage()
//   arguments.x = staging.in(call.x);              // with its strides and padding
//   arguments.y = staging.out(y);
//   launch(plan, arguments, staging.stream());
//   staging.finish();                              // y is what the kernel wrote, padding included
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/extent.h"
#include "kernels/cuda/tensor_map.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cuda {

class DeviceWeightCache;

class Staging {
 public:
  virtual ~Staging() = default;

  // Memory of the host that the kernel reads, or reads and writes; where it lies for the kernel. The same
  // memory staged twice lies there once. Distances to multiples of 256 bytes are kept, so that alignment is
  // what it was.
  virtual const void* read(const void* host, std::size_t bytes) = 0;
  virtual void* write(void* host, std::size_t bytes) = 0;
  // As read(), of bytes that neither change nor go away: kept on the device from call to call.
  virtual const void* keep(const void* host, std::size_t bytes) = 0;
  // What `make` makes of a weight that neither changes nor goes away: made once where such things are kept,
  // else at each call. `what` is all that it depends on besides the weight.
  virtual const void* made_of(const WeightView& weight, const std::string& what,
                              const std::function<std::vector<std::byte>()>& make);
  // `bytes` that a kernel of this stream makes of a weight that neither changes nor goes away: as made_of(), but on the
  // device, by what `fill` launches.
  virtual const void* filled_of(const WeightView& weight, const std::string& what, std::size_t bytes,
                                const std::function<void(void*)>& fill);
  // Memory of the kernel's own until finish(), aligned to 256 bytes: all bits 1 under the emulator.
  virtual void* scratch(std::size_t bytes) = 0;
  // So many words that are 0 when a kernel begins, and that it leaves 0: for blocks to count each other with.
  virtual std::uint32_t* counters(std::size_t count) = 0;
  // A word, 0 at first, that kernels set to 1 where activations to be quantized are NaN or infinite. Who has to wait
  // for the kernel anyway throws for it in finish(); in a model's memory it is looked at in synchronise(), so that no
  // product waits for it.
  virtual std::int32_t* not_finite();
  // For kernels that the copy engine feeds.
  virtual TensorMap tensor_map(const TileSource& source) const = 0;
  virtual Stream stream() const = 0;
  // Waits for the kernels of the stream, and brings back what write() staged. Throws Error for what went
  // wrong on the device, Error::input where the word of not_finite() was set.
  virtual void finish() = 0;

  // A matrix of float32, from its first element to its last, what lies between its rows included.
  const float* in(const Matrix& x);
  float* out(const Matrix& x);
  // The codes of a weight that has them in memory; its scales.
  const void* codes(const WeightView& weight);
  const void* scales(const WeightView& weight);

 protected:
  void throw_if_not_finite() const;  // once what write() staged is back

 private:
  std::deque<std::vector<std::byte>> made_;  // of this call
  std::int32_t not_finite_ = 0;
};

// 8 bits have no code for NaN and infinity.
Error not_finite_activations();

class Machine {
 public:
  virtual ~Machine() = default;
  // Why nothing can run here: "no CUDA device: no driver is installed"; empty: it can.
  virtual std::string unavailable() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  virtual std::unique_ptr<Staging> stage() = 0;
};

// Everything of sm_`sm` but its speed: kernels run under the emulator, on memory where it lies. With `kept`,
// what a device keeps of weights from call to call is kept there.
std::unique_ptr<Machine> emulated_machine(int sm, DeviceWeightCache* kept = nullptr);
// Of other limits: with few processors, small calls fill the device as large ones would.
std::unique_ptr<Machine> emulated_machine(const DeviceLimits& limits, DeviceWeightCache* kept = nullptr);

}  // namespace assay::cuda
