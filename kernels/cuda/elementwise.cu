#include "kernels/cuda/elementwise.cuh"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/embedding.h"

namespace assay::cuda {

ElementwiseLaunchers device_elementwise_launchers() {
  return {.rope = launch_rope, .activation = launch_activation, .dequantize = launch_dequantize};
}
EmbeddingLaunchers device_embedding_launchers() {
  return {.convert = launch_convert};
}

}  // namespace assay::cuda
