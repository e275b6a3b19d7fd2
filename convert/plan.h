// What will be done to every tensor and where it will lie, decided from headers alone.
//
// Output shards are the source's, under the same names. A quantized weight's scale lies beside it; where only
// scales change (reblock) each stays in the shard it was in. Within a shard tensors are sorted as the
// reference writer sorts them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/spec.h"
#include "core/formats/checkpoint.h"
#include "core/model/derived_tensor.h"
#include "core/model/parallel_cut.h"
#include "core/model/stored_form.h"
#include "core/model/tensor_cut.h"
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
  ParallelConfig grid;  // --tp, --ep; one rank: files are not cut
  bool merge = false;   // IN holds the folders of such ranks
  std::uint64_t memory = 2ull << 30;
  bool allow_incomplete = false;  // shards that the index names may be missing
  bool allow_large = false;       // decoded weights may be as large as raw codes are
  bool dry_run = false, resume = false, prove = true;
  bool overwrite = false;  // what earlier runs wrote or left unfinished is replaced
  int jobs = 1;
};

enum class WorkAction : std::uint8_t {
  copy,
  reblock,  // the same codes, their scales for other blocks
  recode,   // FP8 fn to fnuz: the same codes but for -0, twice the scales
  cast,
  quantize
};
std::string_view name(WorkAction action);

struct Work {                // on one logical tensor
  std::uint32_t tensor = 0;  // of StoredTensors::tensors
  WorkAction action = WorkAction::copy;
  std::string to;  // "BF16", "F8_E4M3 64x64"; empty for a copy
  std::optional<std::uint32_t>
      fused;  // of ConversionPlan::fused: its scale for the whole tensor is the set's
};

// From and to GGUF, whose names and shapes differ: a tensor put together from rows of others.
struct DerivedOutput {
  DerivedTensor made;
  ElementType type = ElementType::F32;
  std::vector<float> importance = {};  // of its columns; of stacked matrices one after the other; or empty
  bool repacked = false;               // codes and scales of FP4 as they are (repack.h)
};

struct OutputTensor {
  enum class Source : std::uint8_t { stored, values, codes, scales, gathered, derived };
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  Source source;  // stored: the bytes of a tensor of the checkpoint; gathered: of the parts that ranks hold
                  // of it; derived: put together from rows of others; else what the work makes
  std::uint32_t from;      // place in Checkpoint::tensors, or in ConversionPlan::gathered, derived or works
  std::uint32_t part = 0;  // of WeightEncoder::parts()
  std::uint32_t work = 0;  // that it belongs to: what belongs together stays in one file
  std::uint64_t offset = 0, bytes = 0;  // in the output file; set by the layout
};

struct OutputShard {
  std::string name;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string header;                 // whole: length, JSON, padding
  std::vector<OutputTensor> tensors;  // by offset
  std::uint64_t bytes = 0;
  std::string part_of;  // the file that it is a section of (sections.h); empty: it is one
};

class RankPlan;

struct ConversionPlan {
  Checkpoint checkpoint;
  std::optional<QuantizationConfig> quantization;
  StoredTensors stored;
  std::vector<bool> left_out;  // of Checkpoint::tensors, by --drop-mtp or --only-mtp; empty: none
  Spec spec;
  std::vector<Work> works;                        // one for every logical tensor, in their order
  std::vector<std::vector<std::uint32_t>> fused;  // works whose matrices engines fuse: one scale for all
  std::vector<OutputShard> shards;
  Findings findings;
  std::string roles_from;  // "the module tree of deepseek_v3" or "names and shapes"; empty: not needed
  std::uint64_t tensor_bytes = 0;  // total_size of the index
  std::uint64_t file_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::vector<TensorCut> gathered;  // --merge: what is put together from the files of ranks

  // Where a GGUF is read or written every output is derived, and there are no works.
  bool gguf = false;
  std::vector<DerivedOutput> derived;
  std::vector<std::pair<std::string, std::string>> texts;  // other files of the folder, by name
  std::vector<std::string> notes;
  bool from_folder = false;               // IN is one, whose other files come along
  bool is_folder = true;                  // or the files lie beside each other, under OUT's name
  std::shared_ptr<const RankPlan> ranks;  // --tp: the shards above are cut over folders of ranks

  bool feasible() const { return !has_errors(findings); }
  bool lossless() const;  // every value decodes as it did: what can be proved
  // What WorkError::work tells of: a work, or a derived output.
  const std::string& name_of(std::uint32_t work) const {
    return gguf ? derived[work].made.name : stored.tensors[works[work].tensor].name;
  }
  // Where the files are once they are whole.
  fs::path folder_of(const fs::path& out) const;
};

ConversionPlan make_plan(const fs::path& in, const ConvertOptions& options);

}  // namespace assay
