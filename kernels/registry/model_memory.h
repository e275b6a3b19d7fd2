// Memory that a device's kernels and the host's code both reach, for a whole model on that device: what no
// kernel of it takes, the reference computes in the same place, once the device is done.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/registry/device_glue.h"

namespace assay {

class ModelMemory {
 public:
  virtual ~ModelMemory() = default;
  // Not zeroed; may be in use by kernels under way until synchronise().
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // `bytes` of it, which no kernel is at any more, for the host to read until it asks again: where looking would move pages
  // from the device and back again, they are copied.
  virtual const void* host_copy(const void* from, std::size_t bytes) {
    static_cast<void>(bytes);
    return from;
  }
  // Waits for all kernels. Throws Error for what went wrong in them.
  virtual void synchronise() = 0;
  // Between these two, kernels of this thread find matrices where they lie, weights are copied to the device
  // once in this object's life, and kernels are not waited for.
  virtual void enter() = 0;
  virtual void leave() = 0;
};

// A device as a whole model uses it. Both null: there is none, or none is used.
struct ModelDevice {
  std::unique_ptr<ModelMemory> memory;
  std::unique_ptr<DeviceGlue> glue;
};

}  // namespace assay
