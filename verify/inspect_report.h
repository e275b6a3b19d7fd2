// What `assay inspect` shows: a selection of a checkpoint's tensors, summed by type, as text and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/system/json_stream.h"
#include "core/system/name_filter.h"
#include "core/system/report.h"

namespace assay {

struct TensorTotals {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
  void add(const CheckpointTensor& tensor);
};

struct Inspection {
  const Checkpoint& checkpoint;
  std::vector<const CheckpointTensor*> tensors;  // those the filter lets through, by file and offset
  std::map<ElementType, TensorTotals> by_type;
  std::vector<TensorTotals> by_file;
  TensorTotals all;
};
Inspection inspect(const Checkpoint& checkpoint, const NameFilter& filter);

// A line for each tensor, of which there may be a million: written as they are made.
void write_tensor_table(const Inspection& inspection, const WriteText& write);
std::string file_table(const Inspection& inspection);
std::string metadata_table(const Checkpoint& checkpoint);
std::string totals_table(const Inspection& inspection);
// The document's text goes to where --json says: schema assay.inspect/1.
void write_json(const Inspection& inspection, const std::string& target);

}  // namespace assay
