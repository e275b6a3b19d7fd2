/* A libcuda.so.1 without a device: memory of the "device" is ordinary memory, copies are counted, a stream is
 * a place where a kernel may leave an error. So what assay does for kernels of CUDA is tested where there is
 * no GPU. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
typedef uintptr_t pointer;

static int stream_error;

result cuInit(unsigned flags) {
  return flags == 0 ? 0 : 1;
}
result cuDeviceGetCount(int* count) {
  const char* text = getenv("FAKE_CUDA_DEVICES");
  *count = text == NULL ? 1 : atoi(text);
  return 0;
}
result cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
result cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &stream_error;
  return device;
}
result cuCtxSetCurrent(void* context) {
  return context == &stream_error ? 0 : 201;
}
result cuStreamCreate(void** stream, unsigned flags) {
  *stream = &stream_error;
  return flags == 1 ? 0 : 1;
}
result cuStreamSynchronize(void* stream) {
  return *(int*)stream;
}
result cuMemAlloc_v2(pointer* memory, size_t bytes) {
  *memory = (pointer)malloc(bytes);
  return *memory == 0 ? 2 : stream_error;
}
result cuMemFree_v2(pointer memory) {
  free((void*)memory);
  return stream_error;
}
result cuMemcpyHtoDAsync_v2(pointer to, const void* from, size_t bytes, void* stream) {
  memcpy((void*)to, from, bytes);
  return *(int*)stream;
}
result cuMemcpyDtoHAsync_v2(void* to, pointer from, size_t bytes, void* stream) {
  memcpy(to, (const void*)from, bytes);
  return *(int*)stream;
}
result cuGetErrorString(result error, const char** text) {
  *text = error == 700 ? "an illegal memory access was encountered" : "some other error";
  return 0;
}
