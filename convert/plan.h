// What will be done to every tensor and where it will lie, decided from headers alone.
//
// Output shards are the source's, under the same names. A quantized weight's scale lies beside it; where only
// scales change (reblock) each stays in the shard it was in. Within a shard tensors are sorted as the
// reference writer sorts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/spec.h"
#include "core/formats/checkpoint.h"
#include "core/model/stored_form.h"
#include "core/system/finding.h"

namespace assay {

enum class Mtp : std::uint8_t { keep, drop, only };  // multi-token prediction layers

struct ConvertOptions {
  std::string to;
  std::string include, exclude;  // of weight names: what the conversion acts on; the rest is copied
  std::string scales_from;       // a checkpoint whose scales are to be used again
  Int8Range int8_range = Int8Range::symmetric_127;
  std::uint64_t max_shard_size = 0;  // bytes of tensors in a file; 0: the source's files
  Mtp mtp = Mtp::keep;
  std::uint64_t memory = 2ull << 30;
  bool allow_incomplete = false;  // shards that the index names may be missing
  bool allow_large = false;       // decoded weights may be as large as raw codes are
  bool dry_run = false, resume = false, prove = true;
  int jobs = 1;
};

enum class WorkAction : std::uint8_t { copy, reblock, cast, quantize };
std::string_view name(WorkAction action);

struct Work {                // on one logical tensor
  std::uint32_t tensor = 0;  // of StoredTensors::tensors
  WorkAction action = WorkAction::copy;
  std::string to;  // "BF16", "F8_E4M3 64x64"; empty for a copy
};

struct OutputTensor {
  enum class Source : std::uint8_t { stored, values, codes, scales };
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  Source source;           // stored: the bytes of a tensor of the checkpoint; else what the work makes
  std::uint32_t from;      // place in Checkpoint::tensors (stored) or in ConversionPlan::works
  std::uint32_t work = 0;  // that it belongs to: what belongs together stays in one file
  std::uint64_t offset = 0, bytes = 0;  // in the output file; set by the layout
};

// --tp: a tensor seen as rows of bytes, of which every rank takes the same ranges.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};
struct RankPart {
  std::uint32_t file = 0;    // of OutputShard::ranks
  std::uint64_t offset = 0;  // in that file
  std::vector<ByteRange> ranges;
  std::uint64_t row_bytes = 0;  // of all ranges
};
struct TensorCut {
  std::uint64_t row_bytes = 1;
  std::vector<RankPart> parts;
};
struct RankFile {
  std::string name;  // "rank-03/model-00001-of-00002.safetensors"
  std::uint64_t rank = 0;
  std::string header;
  std::uint64_t bytes = 0;
};

struct OutputShard {
  std::string name;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string header;                 // whole: length, JSON, padding
  std::vector<OutputTensor> tensors;  // by offset
  std::uint64_t bytes = 0;
  // With --tp these files are written in its place; a cut for every tensor.
  std::vector<RankFile> ranks;
  std::vector<TensorCut> cuts;
};

struct ConversionPlan {
  Checkpoint checkpoint;
  std::optional<QuantizationConfig> quantization;
  StoredTensors stored;
  std::vector<bool> left_out;  // of Checkpoint::tensors, by --drop-mtp or --only-mtp; empty: none
  Spec spec;
  std::vector<Work> works;  // one for every logical tensor, in their order
  std::vector<OutputShard> shards;
  Findings findings;
  std::string roles_from;  // "the module tree of deepseek_v3" or "names and shapes"; empty: not needed
  std::uint64_t tensor_bytes = 0;  // total_size of the index
  std::uint64_t file_bytes = 0;
  std::uint64_t read_bytes = 0;

  bool feasible() const { return !has_errors(findings); }
  std::vector<std::string> unquantized_matrices() const;  // modules of 2-D weights the target leaves plain
};

ConversionPlan make_plan(const fs::path& in, const ConvertOptions& options);

}  // namespace assay
