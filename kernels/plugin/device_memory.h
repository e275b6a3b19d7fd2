// Memory of a CUDA device, for what is operand to kernels of that device.
#pragma once

#include <cstddef>

namespace assay {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  // Waits until everything enqueued has been done; throws with the device's own words where a kernel
  // faulted.
  virtual void finish() = 0;
  // It has faulted: nothing that this process asks of it will work any more.
  virtual bool broken() const = 0;
  virtual void* stream() = 0;
  virtual int device() const = 0;
};

// The first device of this machine. Throws Error::usage where there is none.
DeviceMemory& cuda_memory();
// Whether it was used, and has faulted.
bool cuda_broken();

}  // namespace assay
