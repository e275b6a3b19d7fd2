// An AttentionCall as the kernels' arguments: packed, staged, and kept until the kernels are done.
#pragma once

#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/packed_heads.h"

namespace assay::cuda {

// Of products of float32 numbers, taken as three of tf32 (attention_tile.cuh); those of bfloat16 ones are
// exact, their sums better than this.
inline constexpr double kTensorRoundoff = 0x1p-21;

// 2 where the arithmetic's numbers are bfloat16, else 4.
unsigned element_bytes(const Arithmetic& arithmetic);
AttentionShape shape_of(unsigned element_bytes, const AttentionCall& call);
// What no plan looks at: heads and widths that do not fit, counts and rows that 32 bits do not hold.
bool is_sound(const AttentionCall& call);
bool are_sound_sequences(const AttentionCall& call);  // without its queries

// How rows of the caches become keys and values.
struct PoolReaders {
  PoolReader keys, values;       // not set: packed as they are
  bool values_are_keys = false;  // the first columns of them
  static PoolReaders of_latents() { return {{}, {}, true}; }
};

class AttentionArguments {
 public:
  // `element_bytes`: those of the plan's shape.
  AttentionArguments(const Arithmetic& arithmetic, const AttentionCall& call, unsigned element_bytes,
                     const AttentionPlan& plan, Machine& machine, Staging& staging, PackLauncher pack,
                     PoolReaders readers = {});
  AttentionArguments(const AttentionArguments&) = delete;
  AttentionArguments& operator=(const AttentionArguments&) = delete;

  // Queries, and where results go, are still to be set: q_from(), or by hand.
  AttentionArgs args;
  void q_from(const Matrix& q);

 private:
  PoolReader packing(const HeadFormat& format) const;
  void stage_sequences(const AttentionCall& call);
  void stage_partials(const AttentionPlan& plan);
  void upload(const AttentionPlan& plan);

  const DeviceLimits& limits_;
  Staging& staging_;
  PackLauncher pack_;
  HeadFormat keys_format_, values_format_;
  PoolReaders readers_;
  PackedCaches keys_, values_;
  std::vector<SequenceArgs> sequences_;
  std::vector<float> sinks_;
  std::vector<std::byte> uploaded_;  // sequences, work, merges and sinks: one copy
};

}  // namespace assay::cuda
