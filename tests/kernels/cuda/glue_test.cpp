// What lies between kernels on a device: the reference's bits, and nobody waits. An emulated device, whose memory counts
// how often it is waited for.
#include "kernels/cuda/glue.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cuda/machine.h"
#include "kernels/selection/select.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

int waits = 0, looks = 0;

class CountedMemory final : public ModelMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    return {std::malloc(std::max<std::size_t>(bytes, 1)), std::free};
  }
  const void* host_copy(const void* from, std::size_t bytes) override {
    ++looks;
    const auto* bytes_of = static_cast<const unsigned char*>(from);
    seen_.assign(bytes_of, bytes_of + bytes);
    return seen_.data();
  }
  void synchronise() override { ++waits; }
  void enter() override {}
  void leave() override {}

 private:
  std::vector<unsigned char> seen_;
};

cuda::Machine& machine() {
  static const std::unique_ptr<cuda::Machine> emulated = cuda::emulated_machine(90);
  return *emulated;
}

ModelDevice emulated_device() {
  return {std::make_unique<CountedMemory>(),
          cuda::glue_of(machine(),
                        {.add = cuda::launch_add, .scale = cuda::launch_scale, .copy = cuda::launch_copy})};
}

// Numbers of any size and sign, as many as there are; sums and products of them are rounded.
std::vector<double> numbers(std::size_t count, unsigned seed) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(std::ldexp(static_cast<int>(seed >> 8) - (1 << 23), static_cast<int>(seed % 24) - 30));
  }
  return values;
}

struct Sides {
  explicit Sides(Precision precision)
      : device(select_kernels(registry(), "cuda", {precision}, 1, nullptr, emulated_device)),
        host({precision}, 1) {
    waits = 0;
  }
  static const Registry& registry() {
    static const Registry emulated = [] {
      Registry made;
      cuda::add_elementwise_kernels(made, machine(),
                                    {.rope = cuda::launch_rope,
                                     .activation = cuda::launch_activation,
                                     .dequantize = cuda::launch_dequantize});
      return made;
    }();
    return emulated;
  }
  // The same numbers on both sides, computed by both: the same bits, and the device is waited for only when they
  // are looked at.
  template <class Function>
  void agree(const char* what, Function function) {
    const int before = waits;
    const Matrix there = function(*device);
    EXPECT_EQ(waits, before) << what;
    const std::vector<double> found = device->download(there), wanted = host.download(function(host));
    EXPECT_EQ(waits, before + 1) << what;
    EXPECT_EQ(found, wanted) << what;
  }

  std::unique_ptr<Ops> device;
  ReferenceOps host;
};

class DeviceGlueOf : public testing::TestWithParam<Precision> {};

TEST_P(DeviceGlueOf, HasTheReferencesBits) {
  for (const std::size_t columns : {1u, 6u, 258u, 1030u}) {
    Sides sides(GetParam());
    const std::size_t rows = 5;
    struct Pair {
      Matrix x, y, factors;
    };
    const auto made = [&](Ops& ops) -> Pair {
      return {ops.upload(numbers(rows * columns, 1), rows, columns),
              ops.upload(numbers(rows * columns, 2), rows, columns), ops.upload(numbers(rows, 3), rows, 1)};
    };
    const Pair there = made(*sides.device), here = made(sides.host);
    const auto of = [&](Ops& ops) -> const Pair& { return &ops == sides.device.get() ? there : here; };
    sides.agree("add", [&](Ops& ops) { return ops.add(of(ops).x, of(ops).y); });
    sides.agree("scale", [&](Ops& ops) { return ops.scale(of(ops).x, of(ops).factors); });
    sides.agree("concatenate", [&](Ops& ops) { return ops.concatenate(of(ops).x, of(ops).factors); });
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{4, 0, 0, 2}, {1, 2, 3}, {2, 3, 3}, {3, 2}, {4}})
      sides.agree("gather", [&](Ops& ops) { return ops.gather(of(ops).x, order); });
    if (columns % 6 == 0) sides.agree("of_each", [&](Ops& ops) { return ops.of_each(of(ops).x, 6, 2, 3); });
    // Parts of wider matrices, whose rows lie farther apart than they are long.
    if (columns > 4)
      sides.agree("add of parts",
                  [&](Ops& ops) { return ops.add(of(ops).x.part(1, 3), of(ops).y.part(2, 3)); });
  }
}

TEST_P(DeviceGlueOf, StoresRowsWhereThePagesSay) {
  Sides sides(GetParam());
  const std::vector<std::int32_t> pages = {3, 0, 2};
  const auto stored = [&](Ops& ops) {
    const Matrix base = ops.upload(std::vector<double>(8 * 7, 0), 8, 7),
                 rows = ops.upload(numbers(28, 4), 4, 7);
    ops.store({base, pages.data(), 2}, 1, rows);
    return base;
  };
  const std::vector<double> there = sides.device->download(stored(*sides.device));
  EXPECT_EQ(there, sides.host.download(stored(sides.host)));
  EXPECT_EQ(std::count(there.begin(), there.end(), 0.0), 28);
}

// Rows of a cache without pages follow each other: at its beginning, within it, at its end.
TEST_P(DeviceGlueOf, StoresRowsThatFollowEachOther) {
  for (const std::size_t position : {0u, 3u, 5u}) {
    Sides sides(GetParam());
    const auto stored = [&](Ops& ops) {
      const Matrix base = ops.upload(std::vector<double>(8 * 7, 0), 8, 7),
                   rows = ops.upload(numbers(21, 4), 3, 7);
      ops.store({base, nullptr, 0}, position, rows);
      return base;
    };
    EXPECT_EQ(sides.device->download(stored(*sides.device)), sides.host.download(stored(sides.host)))
        << position;
  }
}

// What lies on end is copied as a whole before it is looked at; a part of wider rows is read where it lies.
TEST_P(DeviceGlueOf, ResultsAreLookedAtAsACopy) {
  Sides sides(GetParam());
  const std::vector<double> wide = numbers(15, 1);
  const Matrix x = sides.device->upload(wide, 3, 5);
  looks = 0;
  EXPECT_EQ(sides.device->download(x), sides.host.download(sides.host.upload(wide, 3, 5)));
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(sides.device->download(x.part(1, 2)),
            sides.host.download(sides.host.upload(wide, 3, 5).part(1, 2)));
  EXPECT_EQ(looks, 1);
}

TEST_P(DeviceGlueOf, NothingOfNothing) {
  Sides sides(GetParam());
  Ops& ops = *sides.device;
  const Matrix x = ops.upload({}, 0, 6);
  EXPECT_TRUE(ops.add(x, x).empty());
  EXPECT_TRUE(ops.gather(x, {}).empty());
  EXPECT_TRUE(ops.concatenate(x, x).empty());
  EXPECT_TRUE(ops.of_each(x, 3, 1, 2).empty());
}

INSTANTIATE_TEST_SUITE_P(Precisions, DeviceGlueOf, testing::Values(Precision::f32, Precision::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

// In float64 nothing of the device's is taken: glue there is float32.
TEST(DeviceGlue, LeavesFloat64ToTheHost) {
  Sides sides(Precision::f64);
  const std::vector<double> values = {1 + 0x1p-40, 3};
  const auto sum = [&](Ops& ops) {
    const Matrix x = ops.upload(values, 1, 2);
    return ops.download(ops.add(x, x));
  };
  EXPECT_EQ(sum(*sides.device), (std::vector<double>{2 + 0x1p-39, 6}));
}

}  // namespace
}  // namespace assay
