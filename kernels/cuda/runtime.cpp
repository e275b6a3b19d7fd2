// The runtime over cudart: one device, one stream for each thread of the host, errors as Error.
#include "kernels/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_weight_cache.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/stream_memory.h"

namespace assay::cuda {

void check(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return;
  Error error = Error::io(
      fmt::format("CUDA, {}: {} ({})", doing, cudaGetErrorString(status), cudaGetErrorName(status)));
  if (status == cudaErrorMemoryAllocation)
    error.remedy("free memory of the device, or compute with --kernels cpu");
  throw error;
}

namespace {

// What a version number of CUDA says: 13000 is 13.0.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_no_device(cudaError_t status) {
  int driver = 0, runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  if (status == cudaErrorInsufficientDriver)
    return fmt::format("the driver is of CUDA {}, and {} is needed", version_text(driver),
                       version_text(runtime));
  if (status == cudaErrorNoDevice) return "the driver sees none (or CUDA_VISIBLE_DEVICES hides it)";
  return cudaGetErrorString(status);
}

struct Found {
  std::string unavailable;
  DeviceLimits limits;
  std::string board;
};

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "asking for the device's limits");
  return value;
}

// An architecture's limits as documented, where the device does not tell otherwise.
Found find_device() {
  Found found;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();  // it is told, and shall not be found again
    found.unavailable =
        "no CUDA device: " + why_no_device(count == 0 && status == cudaSuccess ? cudaErrorNoDevice : status);
    return found;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "asking for the device's name");
  found.board = properties.name;
  DeviceLimits& l = found.limits;
  l.sm = 10 * properties.major + properties.minor;
  if (l.sm < 80) {
    found.unavailable = fmt::format("no CUDA device: {} is of compute capability {}.{}, and 8.0 is needed",
                                    found.board, properties.major, properties.minor);
    return found;
  }
  l.shared_per_block = properties.sharedMemPerBlockOptin;
  l.shared_per_sm = properties.sharedMemPerMultiprocessor;
  l.threads_per_sm = static_cast<unsigned>(properties.maxThreadsPerMultiProcessor);
  l.threads_per_block = static_cast<unsigned>(properties.maxThreadsPerBlock);
  l.blocks_per_sm = static_cast<unsigned>(attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
  l.registers_per_sm = static_cast<unsigned>(properties.regsPerMultiprocessor);
  l.sm_count = static_cast<unsigned>(properties.multiProcessorCount);
  return found;
}

constexpr std::size_t kGuard = 1024;     // bytes before and behind what a kernel is given
constexpr std::size_t kAlignment = 256;  // of cudaMalloc; distances to it are kept
constexpr unsigned char kGuardByte = 0xC5;

// A copy of host memory on the device, between guards.
class DeviceCopy {
 public:
  DeviceCopy(const void* host, std::size_t bytes, bool guarded, cudaStream_t stream)
      : host_(host), bytes_(bytes), lead_(kGuard + reinterpret_cast<std::uintptr_t>(host) % kAlignment) {
    check(cudaMallocAsync(reinterpret_cast<void**>(&memory_), lead_ + bytes + kGuard, stream),
          fmt::format("allocating {} bytes", bytes));
    if (guarded) {
      check(cudaMemsetAsync(memory_, kGuardByte, lead_, stream), "writing guards");
      check(cudaMemsetAsync(data() + bytes_, kGuardByte, kGuard, stream), "writing guards");
    }
    // Of ordinary memory, all is read before this returns (CUDA Runtime API, "API synchronization behavior").
    check(cudaMemcpyAsync(data(), host, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
  }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  unsigned char* data() const { return memory_ + lead_; }
  std::size_t bytes() const { return bytes_; }
  void free(cudaStream_t stream) {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream);
    memory_ = nullptr;
  }

  void bring_back(cudaStream_t stream) const {
    check(cudaMemcpyAsync(const_cast<void*>(host_), data(), bytes_, cudaMemcpyDeviceToHost, stream),
          "copying from the device");
  }
  void check_guards(cudaStream_t stream) const {
    std::vector<unsigned char> guards(lead_ + kGuard);
    check(cudaMemcpyAsync(guards.data(), memory_, lead_, cudaMemcpyDeviceToHost, stream), "reading guards");
    check(cudaMemcpyAsync(guards.data() + lead_, data() + bytes_, kGuard, cudaMemcpyDeviceToHost, stream),
          "reading guards");
    check(cudaStreamSynchronize(stream), "reading guards");
    const auto damaged =
        std::find_if(guards.begin(), guards.end(), [](unsigned char c) { return c != kGuardByte; });
    if (damaged == guards.end()) return;
    const auto at = static_cast<std::size_t>(damaged - guards.begin());
    throw Error::internal(
        at < lead_
            ? fmt::format("memory of the device was written {} bytes before an argument", lead_ - at)
            : fmt::format("memory of the device was written {} bytes behind an argument", at - lead_ + 1));
  }

 private:
  const void* host_;
  std::size_t bytes_, lead_;
  unsigned char* memory_ = nullptr;
};

cudaStream_t stream_of_this_thread() {
  struct Owned {
    cudaStream_t stream = nullptr;
    Owned() {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
      // Scratch memory is asked for at every call: what was freed stays with the process.
      cudaMemPool_t pool = nullptr;
      std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
      check(cudaDeviceGetDefaultMemPool(&pool, 0), "asking for the device's memory pool");
      check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "keeping freed memory");
    }
  };
  static thread_local Owned owned;  // the driver frees it with the process
  return owned.stream;
}

StreamMemory& memory_of_this_thread() {
  static thread_local StreamMemory memory(stream_of_this_thread());
  return memory;
}

// Words that kernels of this thread's stream leave 0, one after another.
std::uint32_t* counters_of_this_thread(std::size_t count, cudaStream_t stream) {
  struct Owned {
    std::uint32_t* words = nullptr;
    std::size_t count = 0;
  };
  static thread_local Owned owned;  // the driver frees it with the process
  if (count <= owned.count) return owned.words;
  if (owned.words != nullptr) cudaFreeAsync(owned.words, stream);
  owned = {nullptr, 0};
  check(cudaMallocAsync(reinterpret_cast<void**>(&owned.words), count * sizeof *owned.words, stream),
        fmt::format("allocating {} counters", count));
  check(cudaMemsetAsync(owned.words, 0, count * sizeof *owned.words, stream), "setting counters to 0");
  owned.count = count;
  return owned.words;
}

// The size of the block for so many bytes: one of four between powers of two, so that blocks fit each other and at
// most a quarter of one is idle.
std::size_t block_size(std::size_t bytes) {
  const std::size_t least = std::max<std::size_t>(bytes, kAlignment);
  const std::size_t step = std::max(kAlignment, std::bit_floor(least) / 4);
  return (least + step - 1) / step * step;
}

// Pages stay on the device when the host has looked at them, and it reads them there where it can (CUDA C++
// Programming Guide, "Data Usage Hints"). A hint: where the device has none of it, nothing is lost.
void prefer_device(void* memory, std::size_t bytes) {
#if CUDART_VERSION >= 13000
  const cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0};
  cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, device);
#else
  cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, 0);
#endif
  cudaGetLastError();
}

// Managed memory in blocks that are used again. Matrices hold on to it, and may outlive the Ops that made them.
class ManagedPool : public std::enable_shared_from_this<ManagedPool> {
 public:
  ManagedPool() = default;
  ManagedPool(const ManagedPool&) = delete;
  ManagedPool& operator=(const ManagedPool&) = delete;
  ~ManagedPool() {
    for (const auto& [begin, bytes] : blocks_) cudaFree(reinterpret_cast<void*>(begin));
  }

  std::shared_ptr<void> allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    void* memory = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::vector<void*>& spare = spare_[size];
      if (spare.empty()) {
        check(cudaMallocManaged(&memory, size, cudaMemAttachGlobal),
              fmt::format("allocating {} bytes", size));
        prefer_device(memory, size);
        blocks_[reinterpret_cast<std::uintptr_t>(memory)] = size;
      } else {
        memory = spare.back();
        spare.pop_back();
      }
    }
    return {memory, [pool = shared_from_this(), size](void* block) {
              const std::lock_guard lock(pool->mutex_);
              pool->spare_[size].push_back(block);
            }};
  }

  bool holds(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto next = blocks_.upper_bound(at);
    return next != blocks_.begin() && at - std::prev(next)->first < std::prev(next)->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> blocks_;
  std::map<std::size_t, std::vector<void*>> spare_;
};

class WeightBlocks final : public DeviceBlocks {
 public:
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    check(cudaMalloc(&block, std::max<std::size_t>(1, bytes)),
          fmt::format("allocating {} bytes for a weight", bytes));
    return block;
  }
  void upload(void* to, const void* host, std::size_t bytes) override {
    check(cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice), "copying a weight to the device");
    // Of ordinary memory it may still be under way, and streams of ours do not wait for the default one.
    check(cudaStreamSynchronize(nullptr), "copying a weight to the device");
  }
  void free(void* block) override { cudaFree(block); }  // waits for all kernels under way
};

class ManagedMemory final : public ModelMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override { return pool_->allocate(bytes); }
  ~ManagedMemory() override {
    if (not_finite_ != nullptr) cudaFree(not_finite_);
    if (seen_ != nullptr) cudaFreeHost(seen_);
  }
  const void* host_copy(const void* from, std::size_t bytes) override {
    if (bytes > seen_bytes_) {
      if (seen_ != nullptr) cudaFreeHost(std::exchange(seen_, nullptr));
      seen_bytes_ = 0;
      check(cudaMallocHost(&seen_, bytes), fmt::format("allocating {} bytes of pinned memory", bytes));
      seen_bytes_ = bytes;
    }
    check(cudaMemcpy(seen_, from, bytes, cudaMemcpyDefault), "copying results to the host");
    return seen_;
  }
  void synchronise() override {
    check(cudaDeviceSynchronize(), "running a kernel");
    if (not_finite_ == nullptr || std::exchange(*not_finite_, 0) == 0) return;
    throw not_finite_activations();
  }
  void enter() override { current = this; }
  void leave() override { current = nullptr; }

  bool holds(const void* address) const { return pool_->holds(address); }
  // Weights on the device: a model's are mapped once, and stay.
  DeviceWeightCache& kept() { return kept_; }
  // Of Staging::not_finite(): one word for all products until the host looks.
  std::int32_t* not_finite() {
    if (not_finite_ == nullptr) {
      check(
          cudaMallocManaged(reinterpret_cast<void**>(&not_finite_), sizeof *not_finite_, cudaMemAttachGlobal),
          "allocating a word for what kernels found");
      *not_finite_ = 0;
    }
    return not_finite_;
  }

  static thread_local ManagedMemory* current;  // whose kernels this thread runs

 private:
  std::shared_ptr<ManagedPool> pool_ = std::make_shared<ManagedPool>();
  WeightBlocks blocks_;
  DeviceWeightCache kept_{blocks_};
  std::int32_t* not_finite_ = nullptr;
  void* seen_ = nullptr;  // pinned: what the host looks at
  std::size_t seen_bytes_ = 0;
};

thread_local ManagedMemory* ManagedMemory::current = nullptr;

class DeviceStaging final : public Staging {
 public:
  DeviceStaging()
      : memory_(ManagedMemory::current),
        stream_(stream_of_this_thread()),
        of_stream_(memory_of_this_thread()),
        operation_(of_stream_.begin()) {}
  ~DeviceStaging() override { release(); }

  const void* read(const void* host, std::size_t bytes) override { return copy_of(host, bytes, false); }
  void* write(void* host, std::size_t bytes) override { return copy_of(host, bytes, true); }
  const void* keep(const void* host, std::size_t bytes) override {
    return memory_ == nullptr ? read(host, bytes) : memory_->kept().of_bytes(host, bytes);
  }
  const void* made_of(const WeightView& weight, const std::string& what,
                      const std::function<std::vector<std::byte>()>& make) override {
    const void* kept = memory_ == nullptr ? nullptr : memory_->kept().of_made(weight, what, make);
    return kept == nullptr ? Staging::made_of(weight, what, make) : kept;
  }
  const void* filled_of(const WeightView& weight, const std::string& what, std::size_t bytes,
                        const std::function<void(void*)>& fill) override {
    const auto fill_and_wait = [&](void* to) {
      fill(to);
      check(cudaStreamSynchronize(stream_),
            "making a weight's other form");  // other threads' streams read it, too
    };
    const void* kept =
        memory_ == nullptr ? nullptr : memory_->kept().of_filled(weight, what, bytes, fill_and_wait);
    return kept == nullptr ? Staging::filled_of(weight, what, bytes, fill) : kept;
  }
  // Examined, each is an allocation of its own: compute-sanitizer knows where it ends.
  void* scratch(std::size_t bytes) override {
    if (memory_ != nullptr) return of_stream_.allocate(bytes);
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, std::max<std::size_t>(1, bytes), stream_),
          fmt::format("allocating {} bytes for intermediate results", bytes));
    scratch_.push_back(memory);
    return memory;
  }
  std::uint32_t* counters(std::size_t count) override { return counters_of_this_thread(count, stream_); }
  std::int32_t* not_finite() override {
    return memory_ == nullptr ? Staging::not_finite() : memory_->not_finite();
  }
  TensorMap tensor_map(const TileSource& source) const override { return driver_tensor_map(source); }
  Stream stream() const override { return stream_; }
  void finish() override {
    bool waited_for = memory_ == nullptr;
    for (const Staged& staged : staged_) {
      if (!staged.written) continue;
      staged.copy->bring_back(stream_);
      waited_for = true;
    }
    // Where results lie in managed memory, nobody waits but who looks at them on the host.
    if (waited_for) check(cudaStreamSynchronize(stream_), "running a kernel");
    if (memory_ == nullptr) {
      for (const Staged& staged : staged_) staged.copy->check_guards(stream_);
      throw_if_not_finite();
    }
    release();
  }

 private:
  struct Staged {
    const void* host;
    bool written;
    std::unique_ptr<DeviceCopy> copy;
  };
  struct Uploaded {  // within a model, where nobody asks for guards
    const void* host;
    std::size_t bytes;
    const void* there;
  };

  unsigned char* copy_of(const void* host, std::size_t bytes, bool written) {
    if (bytes == 0) return nullptr;
    if (memory_ != nullptr && memory_->holds(host))
      return static_cast<unsigned char*>(const_cast<void*>(host));
    for (Staged& staged : staged_) {
      if (staged.host != host || staged.copy->bytes() != bytes) continue;
      staged.written |= written;
      return staged.copy->data();
    }
    if (memory_ != nullptr && !written) return uploaded(host, bytes);
    staged_.push_back(
        {host, written, std::make_unique<DeviceCopy>(host, bytes, memory_ == nullptr, stream_)});
    return staged_.back().copy->data();
  }
  unsigned char* uploaded(const void* host, std::size_t bytes) {
    auto at = std::find_if(uploaded_.begin(), uploaded_.end(), [&](const Uploaded& before) {
      return before.host == host && before.bytes == bytes;
    });
    if (at == uploaded_.end()) at = uploaded_.insert(at, {host, bytes, of_stream_.upload(host, bytes)});
    return static_cast<unsigned char*>(const_cast<void*>(at->there));
  }
  void release() {
    if (std::exchange(released_, true)) return;
    for (const Staged& staged : staged_) staged.copy->free(stream_);
    for (void* memory : scratch_) cudaFreeAsync(memory, stream_);
    staged_.clear();
    of_stream_.end(operation_);
  }

  ManagedMemory* memory_;
  cudaStream_t stream_;
  StreamMemory& of_stream_;
  std::size_t operation_;
  bool released_ = false;
  std::vector<Staged> staged_;
  std::vector<Uploaded> uploaded_;
  std::vector<void*> scratch_;
};

class DeviceMachine final : public Machine {
 public:
  std::string unavailable() const override { return found().unavailable; }
  static const std::string& board() { return found().board; }
  const DeviceLimits& limits() const override {
    if (!found().unavailable.empty()) throw Error::io(found().unavailable);
    return found().limits;
  }
  std::unique_ptr<Staging> stage() override {
    limits();
    return std::make_unique<DeviceStaging>();
  }

 private:
  static const Found& found() {
    static const Found device = find_device();
    return device;
  }
};

}  // namespace

Machine& device_machine() {
  static DeviceMachine machine;
  return machine;
}

std::string device_board() {
  return DeviceMachine::board();
}

std::unique_ptr<ModelMemory> managed_memory() {
  return std::make_unique<ManagedMemory>();
}

void allow_shared(const void* kernel, const LaunchPlan& plan) {
  require_fits(plan);
  constexpr std::size_t kWithoutAsking = 48 << 10;
  if (plan.shared_bytes <= kWithoutAsking) return;
  // What is allowed is the kernel's, whichever thread launches it: it only ever grows.
  static std::mutex mutex;
  static std::map<const void*, std::size_t> allowed;
  const std::lock_guard lock(mutex);
  std::size_t& bytes = allowed[kernel];
  if (plan.shared_bytes <= bytes) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(plan.shared_bytes)),
        fmt::format("{}: asking for {} bytes of shared memory", plan.kernel, plan.shared_bytes));
  bytes = plan.shared_bytes;
}

void check_launch(const LaunchPlan& plan, int status) {
  if (status == cudaSuccess) return;  // of so many launches no words are made
  cudaGetLastError();                 // it is told, and shall not be found again
  check(static_cast<cudaError_t>(status), fmt::format("launching {} ({})", plan.kernel, describe(plan)));
}

}  // namespace assay::cuda
