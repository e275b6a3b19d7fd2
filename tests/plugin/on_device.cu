// A plugin with CUDA kernels, one right and one wrong: y = x W^T, a thread an output.
//
//   nvcc -shared -Xcompiler -fPIC on_device.cu -o on_device.so
//   assay compare kernels --plugin ./on_device.so
#include <assay/kernels/plugin.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int kThreads = 128;

__device__ float element(const float* row, size_t i) {
  return row[i];
}
__device__ float element(const __nv_bfloat16* row, size_t i) {
  return __bfloat162float(row[i]);
}
__device__ void store(float* to, float value) {
  *to = value;
}
__device__ void store(__nv_bfloat16* to, float value) {
  *to = __float2bfloat16(value);
}

template <class Activation, class Weight>
__global__ void multiply(assay_matrix x, const Weight* w, assay_matrix y, size_t inputs) {
  const size_t output = size_t(blockIdx.x) * blockDim.x + threadIdx.x, token = blockIdx.y;
  if (output >= y.columns) return;
  const Activation* row = static_cast<const Activation*>(x.data) + token * x.stride;
  float sum = 0;
  for (size_t i = 0; i < inputs; ++i) sum += element(row, i) * element(w + output * inputs, i);
  store(static_cast<Activation*>(y.data) + token * y.stride + output, sum);
}

// `user`: how many of the last inputs are forgotten.
int run(void* user, const assay_context* context, const assay_call* call, char* message,
        size_t message_size) {
  const assay_linear& a = *call->as.linear;
  if (a.x.rows == 0 || a.y.columns == 0) return 0;
  const dim3 blocks(unsigned((a.y.columns + kThreads - 1) / kThreads), unsigned(a.x.rows));
  const auto stream = static_cast<cudaStream_t>(context->stream);
  const size_t inputs = a.weight->columns - reinterpret_cast<uintptr_t>(user);
  if (a.x.type == ASSAY_BF16)
    multiply<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(
        a.x, static_cast<const __nv_bfloat16*>(a.weight->codes), a.y, inputs);
  else
    multiply<float>
        <<<blocks, kThreads, 0, stream>>>(a.x, static_cast<const float*>(a.weight->codes), a.y, inputs);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) strncpy(message, cudaGetErrorString(error), message_size - 1);
  return error == cudaSuccess ? 0 : 1;
}

int takes(void*, const assay_context*, const assay_call* call) {
  const assay_linear& a = *call->as.linear;
  return a.weight->form == ASSAY_PLAIN && a.weight->type == a.x.type && a.y.type == a.x.type &&
         a.weight->columns > 1 && !a.weight->input_major && a.bias == nullptr;
}

const assay_kernel kRight = {sizeof(assay_kernel),
                             ASSAY_LINEAR,
                             ASSAY_CUDA,
                             ASSAY_F32,
                             "float32",
                             "a thread an output",
                             ASSAY_ALL_INVARIANT,
                             0,
                             1.0 / (1 << 24),
                             nullptr,
                             takes,
                             run};
const assay_kernel kRightBf16 = {sizeof(assay_kernel),
                                 ASSAY_LINEAR,
                                 ASSAY_CUDA,
                                 ASSAY_BF16,
                                 "bfloat16",
                                 "a thread an output",
                                 ASSAY_ALL_INVARIANT,
                                 0,
                                 1.0 / (1 << 24),
                                 nullptr,
                                 takes,
                                 run};
const assay_kernel kWrong = {sizeof(assay_kernel),
                             ASSAY_LINEAR,
                             ASSAY_CUDA,
                             ASSAY_F32,
                             "tail",
                             "forgets the last input",
                             ASSAY_ALL_INVARIANT,
                             0,
                             1.0 / (1 << 24),
                             reinterpret_cast<void*>(1),
                             takes,
                             run};
const assay_kernel* const kKernels[] = {&kRight, &kRightBf16, &kWrong};
const assay_plugin_info kInfo = {sizeof(assay_plugin_info), ASSAY_PLUGIN_ABI, "on_device", "1", kKernels, 3};

}  // namespace

const assay_plugin_info* assay_plugin(uint32_t abi) {
  return abi == ASSAY_PLUGIN_ABI ? &kInfo : nullptr;
}
