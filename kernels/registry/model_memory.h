// Memory that a device's kernels and the host's code both reach, for a whole model on that device: what no
// kernel of it takes, the reference computes in the same place, once the device is done.
#pragma once

#include <cstddef>
#include <memory>

namespace assay {

class ModelMemory {
 public:
  virtual ~ModelMemory() = default;
  // Not zeroed; may be in use by kernels under way until synchronise().
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Waits for all kernels. Throws Error for what went wrong in them.
  virtual void synchronise() = 0;
  // Between these two, kernels of this thread find matrices where they lie, weights are copied to the device
  // once in this object's life, and kernels are not waited for.
  virtual void enter() = 0;
  virtual void leave() = 0;
};

}  // namespace assay
