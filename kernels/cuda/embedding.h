// Rows of a table by token: embedding on the device.
#pragma once

#include "kernels/cuda/convert.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

struct EmbeddingLaunchers {
  void (*convert)(const LaunchPlan&, const ConvertArguments&, Stream);
};
EmbeddingLaunchers device_embedding_launchers();  // elementwise.cu
void add_embedding_kernels(Registry& registry, Machine& machine, const EmbeddingLaunchers& launchers);

}  // namespace assay::cuda
