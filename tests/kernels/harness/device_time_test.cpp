// How calls of a device's kernels are timed: with ordinary memory that takes notes in the device's place.
#include "kernels/harness/device_time.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/system/error.h"

namespace assay {
namespace {

class NotedMemory final : public ModelMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    ++allocations;
    return {operator new(bytes), [](void* p) { operator delete(p); }};
  }
  void synchronise() override {
    EXPECT_FALSE(inside) << "waited for while calls are still made";
    std::this_thread::sleep_for(std::chrono::microseconds(300) * pending);  // the device's work
    pending = 0;
    ++waits;
  }
  void enter() override { inside = true; }
  void leave() override { inside = false; }
  int allocations = 0, waits = 0, pending = 0;
  bool inside = false;
};

TEST(DeviceTime, IsThatOfTheWorkNotOfItsCalls) {
  NotedMemory memory;
  int calls = 0;
  const double seconds = seconds_on_device(
      memory,
      [&] {
        EXPECT_TRUE(memory.inside);
        ++memory.pending;
        if (calls++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));  // weights are copied
      },
      0.01);
  EXPECT_GE(seconds, 300e-6);  // a call returns at once; its work takes this long
  EXPECT_LT(seconds, 30e-3);   // the first is not of those that count
  EXPECT_EQ(memory.pending, 0);
  EXPECT_GT(memory.waits, 2);
  EXPECT_GT(calls, memory.waits);  // several calls are waited for together
}

TEST(DeviceTime, MatricesLieInTheDevicesMemory) {
  NotedMemory memory;
  DeviceOps ops(Arithmetic{Precision::f32}, 1, memory);
  const Matrix x = ops.upload(std::vector<double>{1, 2, 3, 4}, 2, 2);
  EXPECT_EQ(memory.allocations, 1);
  EXPECT_EQ(ops.download(x), (std::vector<double>{1, 2, 3, 4}));
}

TEST(DeviceTime, AFaultLeavesTheDeviceAsItWas) {
  NotedMemory memory;
  EXPECT_THROW(seconds_on_device(
                   memory, [] { throw Error::io("CUDA, running a kernel"); }, 0.01),
               Error);
  EXPECT_FALSE(memory.inside);
}

}  // namespace
}  // namespace assay
