// Time of a device's kernel as it runs within a model: operands lie in the device's memory, weights were
// copied there before the clock starts, calls follow each other and are waited for together.
#pragma once

#include <functional>

#include "kernels/registry/model_memory.h"
#include "refimpl/ops/reference.h"

namespace assay {

// Whose matrices lie in `memory`, which outlives them.
class DeviceOps final : public ReferenceOps {
 public:
  DeviceOps(const Arithmetic& arithmetic, int jobs, ModelMemory& memory)
      : ReferenceOps(arithmetic, jobs), memory_(memory) {}
  Matrix allocate(std::size_t rows, std::size_t columns) override;

 private:
  ModelMemory& memory_;
};

// Seconds of a call: the fewest of several rounds, together at least `least` long.
double seconds_on_device(ModelMemory& memory, const std::function<void()>& call, double least);

}  // namespace assay
