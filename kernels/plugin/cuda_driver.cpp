// Memory of a CUDA device by way of the driver, found when the program runs: so that any build of assay can
// examine a plugin's CUDA kernels where there is a device, and needs nothing of CUDA to be built.
//
// The device's primary context is used, which is the one that the CUDA runtime of a plugin uses too. Names
// and signatures: CUDA Driver API (cuda.h); those with _v2 are what its macros expand to.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/system/error.h"
#include "kernels/harness/case_run.h"
#include "kernels/plugin/device_memory.h"

namespace assay {
namespace {

using Result = int;              // CUresult
using Pointer = std::uintptr_t;  // CUdeviceptr
constexpr Result kSuccess = 0;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

class CudaDriver final : public DeviceMemory {
 public:
  CudaDriver() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw Error::usage("there is no CUDA driver here (libcuda.so.1)");
    find("cuGetErrorString", error_string_);
    find("cuMemAlloc_v2", allocate_);
    find("cuMemFree_v2", free_);
    find("cuMemcpyHtoDAsync_v2", upload_);
    find("cuMemcpyDtoHAsync_v2", download_);
    find("cuStreamSynchronize", synchronize_);
    open();
  }
  void* allocate(std::size_t bytes) override {
    Pointer memory = 0;
    check(allocate_(&memory, bytes == 0 ? 1 : bytes), "cannot allocate device memory");
    return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): the driver's type
  }
  void release(void* memory) override { free_(reinterpret_cast<Pointer>(memory)); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    check(upload_(reinterpret_cast<Pointer>(to), from, bytes, stream_), "cannot copy to the device");
    finish();
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    check(download_(to, reinterpret_cast<Pointer>(from), bytes, stream_), "cannot copy from the device");
    finish();
  }
  void finish() override { check(synchronize_(stream_), "the device reports"); }
  void* stream() override { return stream_; }
  int device() const override { return 0; }
  bool broken() const override { return broken_; }

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) throw Error::usage(fmt::format("the CUDA driver has no {}", name));
    function = reinterpret_cast<Function>(symbol);
  }
  void check(Result result, const char* doing) {
    if (result == kSuccess) return;
    const char* text = nullptr;
    error_string_(result, &text);
    broken_ = true;
    throw RunFault("device", fmt::format("{}: {}", doing, text == nullptr ? "an unknown error" : text));
  }
  void open() {
    Result (*initialize)(unsigned) = nullptr;
    Result (*count_devices)(int*) = nullptr;
    Result (*get_device)(int*, int) = nullptr;
    Result (*retain)(void**, int) = nullptr;
    Result (*set_current)(void*) = nullptr;
    Result (*create_stream)(void**, unsigned) = nullptr;
    find("cuInit", initialize);
    find("cuDeviceGetCount", count_devices);
    find("cuDeviceGet", get_device);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuCtxSetCurrent", set_current);
    find("cuStreamCreate", create_stream);
    int devices = 0, device = 0;
    if (initialize(0) != kSuccess || count_devices(&devices) != kSuccess || devices == 0)
      throw Error::usage("there is no CUDA device here");
    void* context = nullptr;
    check(get_device(&device, 0), "cannot use the CUDA device");
    check(retain(&context, device), "cannot use the CUDA device");
    check(set_current(context), "cannot use the CUDA device");
    check(create_stream(&stream_, kNonBlocking), "cannot make a CUDA stream");
  }

  void* library_ = nullptr;
  void* stream_ = nullptr;
  bool broken_ = false;
  Result (*error_string_)(Result, const char**) = nullptr;
  Result (*allocate_)(Pointer*, std::size_t) = nullptr;
  Result (*free_)(Pointer) = nullptr;
  Result (*upload_)(Pointer, const void*, std::size_t, void*) = nullptr;
  Result (*download_)(void*, Pointer, std::size_t, void*) = nullptr;
  Result (*synchronize_)(void*) = nullptr;
};

const DeviceMemory* used = nullptr;

}  // namespace

DeviceMemory& cuda_memory() {
  static CudaDriver driver;
  used = &driver;
  return driver;
}

bool cuda_broken() {
  return used != nullptr && used->broken();
}

}  // namespace assay
