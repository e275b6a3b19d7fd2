// Writes one output shard: every tensor in pieces of bounded size, several pieces at a time, in whatever
// order; the bytes depend on the plan alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "convert/errors.h"
#include "convert/given_scales.h"
#include "convert/plan.h"
#include "convert/sink.h"
#include "core/model/stored_reader.h"
#include "core/system/progress.h"

namespace assay {

struct PipelineContext {
  const ConversionPlan& plan;
  const ConvertOptions& options;
  const CheckpointReader& source;
  const GivenScales* given;  // nullptr: new scales
  Progress& progress;
};

// By how much each tensor of a lossy conversion moved; places in ConversionPlan::works.
struct WorkError {
  std::uint32_t work;
  ErrorSums sums;
};

// Throws Error::refused for NaN, Inf, values that do not fit, and implausible ones; Interrupted when asked to
// stop. The files are left uncommitted.
struct Interrupted {};
std::vector<WorkError> write_shard(const PipelineContext& context, const OutputShard& shard, ShardSink& sink);

// Bytes of a tensor that lies in parts; their files are the reader's.
void read_gathered(const CheckpointReader& source, const TensorCut& cut, std::uint64_t at,
                   std::span<std::byte> bytes);

// Merging blocks needs scales that agree: throws Error::refused with the count of those that do not.
void check_merges(const PipelineContext& context);

// The most memory that one piece of work takes, and so how many may be under way.
std::uint64_t largest_piece(const ConversionPlan& plan);
int jobs_within_memory(const ConversionPlan& plan, const ConvertOptions& options);

}  // namespace assay
