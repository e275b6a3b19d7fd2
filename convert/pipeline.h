// Writes output shards: a few at a time, every tensor in pieces of bounded size, several pieces at a time,
// and hashes them as they grow. The bytes depend on the plan alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "convert/early_reading.h"
#include "convert/plan.h"
#include "convert/sink.h"
#include "core/model/error_sums.h"
#include "core/model/given_scales.h"
#include "core/model/stored_reader.h"
#include "core/system/progress.h"

namespace assay {

struct PipelineContext {
  const ConversionPlan& plan;
  const ConvertOptions& options;
  const CheckpointReader& source;
  const GivenScales* given;  // nullptr: new scales
  Progress& progress;
  // Asks for digests of the files that sections are of, by name; of those that were written whole they are put here.
  std::map<std::string, Digest>* file_digests = nullptr;
  EarlyReading* early = nullptr;  // hears of the shards that the disk has
};

// By how much each tensor of a lossy conversion moved; places in ConversionPlan::works, or derived.
struct WorkError {
  std::uint32_t work;
  ErrorSums sums;
};

struct Interrupted {};
struct WrittenShard {
  const OutputShard& shard;  // or a section of one
  ShardSink& sink;           // written and flushed, its digests known, not committed yet
  std::vector<WorkError> errors;
};
// Called from several threads.
using CloseShard = std::function<void(WrittenShard)>;

// Throws Error::refused for NaN, Inf, values that do not fit, and implausible ones; Interrupted when asked to
// stop. Shards that were not closed by then are gone.
void write_shards(const PipelineContext& context, std::span<const OutputShard* const> shards,
                  const fs::path& folder, const CloseShard& close);

// Bytes of a tensor that lies in parts; their files are the reader's.
void read_gathered(const CheckpointReader& source, const TensorCut& cut, std::uint64_t at,
                   std::span<std::byte> bytes);

// Merging blocks needs scales that agree: throws Error::refused with the count of those that do not.
void check_merges(const ConversionPlan& plan, const CheckpointReader& source);

// The most memory that one piece of work takes, and so how many may be under way.
std::uint64_t largest_piece(const ConversionPlan& plan);
int jobs_within_memory(const ConversionPlan& plan, const ConvertOptions& options);

}  // namespace assay
