#include "kernels/cuda/cuda_kernels.h"

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gate.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/softmax.h"
#include "kernels/registry.h"

// Without nvcc a kernel is registered with nothing to launch: it says that it is unavailable, and why.
#ifdef ASSAY_HAS_CUDA
#define ASSAY_BUILT(launchers) launchers
#else
#define ASSAY_BUILT(launchers) \
  {}
#endif

namespace assay {

void add_cuda_kernels(Registry& registry) {
  cuda::Machine& machine = cuda::device_machine();
  cuda::add_norm_kernels(registry, machine, ASSAY_BUILT(cuda::device_norm_launchers()));
  cuda::add_softmax_kernels(registry, machine, ASSAY_BUILT(cuda::device_softmax_launchers()));
  cuda::add_elementwise_kernels(registry, machine, ASSAY_BUILT(cuda::device_elementwise_launchers()));
  cuda::add_quantize_kernels(registry, machine, ASSAY_BUILT(cuda::device_quantize_launchers()));
  cuda::add_gate_kernels(registry, machine, ASSAY_BUILT(cuda::device_gate_launchers()));
}

}  // namespace assay
