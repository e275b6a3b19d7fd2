// Conversions in which tensors are put together anew: from and to GGUF. What a plan lists is written in
// batches of tensors, each batch on disk before the journal says so; killed at any moment, --resume goes on
// inside the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/convert.h"
#include "convert/plan.h"
#include "core/formats/digest.h"
#include "core/model/derived_tensor.h"
#include "core/model/error_sums.h"
#include "core/system/progress.h"

namespace assay {

struct RegroupTensor {
  DerivedTensor made;
  ElementType type;
  std::uint64_t offset = 0, bytes = 0;  // in its file
  std::vector<float> importance;        // of its columns; of stacked matrices one after the other; or empty
  bool repacked = false;                // codes and scales of FP4 as they are (repack.h)
};

struct RegroupFile {
  std::string name;
  std::string header;
  std::vector<RegroupTensor> tensors;  // by offset
  std::uint64_t bytes = 0;             // of the whole file
};

struct RegroupPlan {
  Checkpoint checkpoint;
  StoredTensors stored;
  std::string to;     // "GGUF Q4_K_M", "safetensors BF16"
  std::string roles;  // "the module tree of llama"; empty: names were kept
  std::vector<RegroupFile> files;
  std::vector<std::pair<std::string, std::string>> texts;  // other files of the folder, by name
  std::vector<std::string> notes;
  bool folder = false;  // OUT is a folder of them; otherwise they lie beside each other, under OUT's name
  std::uint64_t file_bytes = 0, read_bytes = 0;

  std::size_t tensor_count() const;
};

struct RegroupResult {
  struct TensorResult {
    Digest sha256;
    ErrorSums error;
  };
  std::map<std::string, TensorResult> tensors;  // by name
  std::map<std::string, Digest> files;
  std::uint64_t reused = 0;  // tensors that an earlier run had finished
  std::string note;
  bool interrupted = false;
};

// Where OUT's files are once they are whole.
fs::path regrouped_path(const RegroupPlan& plan, const RegroupFile& file, const fs::path& out);

// Throws Error::refused where one piece of work takes more than --memory.
void check_regroup_memory(const RegroupPlan& plan, const ConvertOptions& options);
RegroupResult regroup(const RegroupPlan& plan, const fs::path& out, const ConvertOptions& options,
                      ProgressMode progress);

// What the file system must still have room for.
Space regroup_space(const RegroupPlan& plan, const fs::path& out);

// The most memory one piece of work takes.
std::uint64_t largest_regroup_piece(const RegroupPlan& plan);

}  // namespace assay
