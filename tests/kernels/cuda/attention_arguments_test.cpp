// Which calls attention on the device takes, and how heads are laid out for it.
#include "kernels/cuda/attention_arguments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cuda/attention_launch.cuh"
#include "refimpl/ops/reference.h"

namespace assay::cuda {
namespace {

PagedKvView rows_of(std::size_t rows, std::size_t columns, Real real = Real::f32) {
  return {.base = Matrix({}, real, rows, columns)};
}

// 4 heads of 8 over 2 of keys and of values: two sequences of 3 and 1 queries. No numbers: none are looked at.
AttentionCall sound_call() {
  AttentionCall call = {.q = Matrix({}, Real::f32, 4, 32),
                        .sequences = {},
                        .heads = 4,
                        .kv_heads = 2,
                        .qk_dim = 8,
                        .v_dim = 5,
                        .sinks = {}};
  call.sequences = {{0, 3, 7, rows_of(7, 16), rows_of(7, 10)}, {3, 1, 1, rows_of(1, 16), rows_of(1, 10)}};
  return call;
}

TEST(CudaAttentionArguments, OfWhatCannotBeAreNotTaken) {
  static const std::int32_t kPages[] = {0};
  EXPECT_TRUE(is_sound(sound_call()));
  const std::vector<std::function<void(AttentionCall&)>> faults = {
      [](AttentionCall& c) { c.kv_heads = 0; },
      [](AttentionCall& c) { c.kv_heads = 3; },
      [](AttentionCall& c) { c.qk_dim = 0, c.q = Matrix({}, Real::f32, 4, 0); },
      [](AttentionCall& c) { c.v_dim = 0; },
      [](AttentionCall& c) { c.q = Matrix({}, Real::f32, 4, 31); },
      [](AttentionCall& c) {
        c.q = Matrix({}, Real::f32, (1u << 29), 32);
      },                                                     // × 4 heads: rows beyond 32 bits
      [](AttentionCall& c) { c.sequences[1].queries = 2; },  // more than keys
      [](AttentionCall& c) { c.sequences[0].keys = (1u << 30); },
      [](AttentionCall& c) { c.sequences[0].key_rows = rows_of(std::size_t{1} << 31, 16); },
      [](AttentionCall& c) { c.sequences[0].key_rows = rows_of(7, 15); },
      [](AttentionCall& c) { c.sequences[1].value_rows = rows_of(1, 9); },
      [](AttentionCall& c) { c.sequences[1].value_rows = rows_of(1, 10, Real::f64); },
      [](AttentionCall& c) { c.sequences[1].key_rows.pages = kPages; },  // of no rows each
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    AttentionCall call = sound_call();
    faults[i](call);
    EXPECT_FALSE(is_sound(call)) << i;
  }
  AttentionCall paged = sound_call();
  paged.sequences[1].key_rows.pages = kPages;
  paged.sequences[1].key_rows.page_rows = 16;
  EXPECT_TRUE(is_sound(paged));
  AttentionCall empty = sound_call();  // a sequence without keys needs no rows
  empty.sequences[1] = {3, 0, 0, rows_of(0, 0, Real::f64), {}};
  EXPECT_TRUE(is_sound(empty));
}

template <class T>
void expect_packed(unsigned padded) {
  constexpr std::size_t kRows = 3, kHeads = 2, kDim = 5, kStride = 13;
  std::vector<float> from(kRows * kStride, NAN);  // what lies between the rows is not read
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kHeads * kDim; ++c)
      from[r * kStride + c] = static_cast<float>(1 + 16 * r + c);
  }
  std::vector<T> to(kRows * kHeads * padded);
  const PackArgs args = {from.data(), to.data(), kStride, kRows, kHeads, kDim, padded};
  LaunchPlan plan;
  plan.grid = {1, 1, 1};
  plan.block = {kPackThreads, 1, 1};
  launch_pack_heads(plan, args, sizeof(T), {});
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t column = i % padded, head = i / padded % kHeads, row = i / padded / kHeads;
    const float due = column < kDim ? static_cast<float>(1 + 16 * row + head * kDim + column) : 0.0F;
    EXPECT_EQ(to_float(to[i]), due) << row << " " << head << " " << column;
  }
}

TEST(CudaAttentionArguments, HeadsArePackedWithZerosBehindThem) {
  expect_packed<float>(8);
  expect_packed<bf16>(16);
}

}  // namespace
}  // namespace assay::cuda
