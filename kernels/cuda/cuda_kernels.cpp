#include "kernels/cuda/cuda_kernels.h"

#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/fp8_library.h"
#include "kernels/cuda/gate.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/softmax.h"
#include "kernels/registry/model_memory.h"
#include "kernels/registry/registry.h"

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
  cuda::add_gemv_kernel(registry, machine, ASSAY_BUILT(cuda::device_gemm_launchers()));
  cuda::add_library_linear_kernels(registry, machine, ASSAY_BUILT(cuda::device_library_linear_launchers()));
  cuda::add_fp8_library_kernels(registry, machine, ASSAY_BUILT(cuda::device_fp8_library_launchers()));
  cuda::add_norm_kernels(registry, machine, ASSAY_BUILT(cuda::device_norm_launchers()));
  cuda::add_softmax_kernels(registry, machine, ASSAY_BUILT(cuda::device_softmax_launchers()));
  cuda::add_elementwise_kernels(registry, machine, ASSAY_BUILT(cuda::device_elementwise_launchers()));
  cuda::add_embedding_kernels(registry, machine, ASSAY_BUILT(cuda::device_embedding_launchers()));
  cuda::add_quantize_kernels(registry, machine, ASSAY_BUILT(cuda::device_quantize_launchers()));
  cuda::add_gate_kernels(registry, machine, ASSAY_BUILT(cuda::device_gate_launchers()));
  cuda::add_linear_kernels(registry, machine, ASSAY_BUILT(cuda::device_gemm_launchers()));
  cuda::add_moe_kernels(registry, machine, ASSAY_BUILT(cuda::device_gemm_launchers()));
  cuda::add_attention_kernels(registry, machine, ASSAY_BUILT(cuda::device_attention_launchers()));
  cuda::add_mla_kernels(registry, machine, ASSAY_BUILT(cuda::device_mla_launchers()));
  cuda::add_expanded_kernels(registry, machine, ASSAY_BUILT(cuda::device_expanded_launchers()));
}

std::unique_ptr<ModelMemory> cuda_model_memory() {
  return cuda::device_machine().unavailable().empty() ? cuda::managed_memory() : nullptr;
}

ModelDevice cuda_model_device() {
  std::unique_ptr<ModelMemory> memory = cuda_model_memory();
  if (!memory) return {};
  return {std::move(memory),
          cuda::glue_of(cuda::device_machine(), ASSAY_BUILT(cuda::device_glue_launchers()))};
}

}  // namespace assay
