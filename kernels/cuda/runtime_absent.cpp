// The runtime where assay is built without CUDA.
#include "core/system/error.h"
#include "kernels/cuda/device_roof.h"
#include "kernels/cuda/runtime.h"

namespace assay::cuda {
namespace {

class AbsentMachine final : public Machine {
 public:
  std::string unavailable() const override { return "no CUDA device: assay was built without CUDA"; }
  const DeviceLimits& limits() const override { throw Error::internal(unavailable()); }
  std::unique_ptr<Staging> stage() override { throw Error::internal(unavailable()); }
};

}  // namespace

Machine& device_machine() {
  static AbsentMachine machine;
  return machine;
}

std::string device_board() {
  return {};
}

DeviceRoof measure_device_roof() {
  return {};
}

std::unique_ptr<ModelMemory> managed_memory() {
  return nullptr;
}

}  // namespace assay::cuda
