// A module tree held against a checkpoint's headers: is every parameter of the config there, once, in its
// shape; and does the number of stored elements follow, to the last one?
//
//   parameters of the config              671,026,419,200
//   + multi-token prediction, own          11,610,068,224
//   + stored again: tied or shared          1,853,358,080
//   + scales, zero points, tables              41,540,496
//   = stored                              684,531,386,000      difference 0
//
// No weight is read. What is wrong becomes findings with codes model.* (docs/findings.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"

namespace assay {

// Of names that are too many to tell, so many are told.
inline constexpr std::size_t kNamesKept = 20;

struct StoredTally {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;  // elements as the headers count them
};
inline void add(StoredTally& tally, const CheckpointTensor& tensor, std::uint64_t elements) {
  ++tally.tensors;
  tally.elements += elements;
  tally.bytes += tensor.bytes;
}

struct ReconcileLine {
  std::string what;
  std::uint64_t tensors = 0;
  std::int64_t elements = 0;  // added, or taken away, to get from the config's total to the stored elements
};

struct Reconciliation {
  StoredTally main, mtp, towers;  // parameters, in whatever form they are stored
  StoredTally duplicates;         // tied or shared weights stored again
  StoredTally scales;             // scales, zero points, and tables for decoding
  StoredTally buffers;            // rotary frequencies, causal masks: no parameters
  StoredTally elsewhere;          // parts of the model that the tree leaves out (ModuleTree::not_counted)
  StoredTally extra;              // nobody asked for these
  StoredTally stored;             // all of it
  std::map<ElementType, StoredTally> types;
  std::uint64_t unpacked =
      0;  // logical elements beyond the stored ones, where several share one stored element
  std::vector<ReconcileLine> lines;  // from the config's total to what should be stored; they sum to expected
  std::uint64_t expected = 0;
  std::int64_t difference = 0;  // stored - expected: 0, or it is made of the tensors named below

  std::uint64_t shards_here = 0, shards_told = 0;  // told: by the index, or by the numbering of names
  std::uint64_t tensors_not_here = 0;              // in shards that are absent
  std::uint64_t missing_tensors = 0, misshapen_tensors = 0;
  std::vector<std::string> missing, extra_names;                  // the first kNamesKept of them
  std::unordered_map<const TensorSpec*, std::uint64_t> bytes_of;  // stored bytes of a spec, scales included
  Findings findings;  // the checkpoint's own findings are not repeated
  bool complete() const { return shards_here == shards_told; }
};

// `tree` must be describe(config), or what in_layout_of() makes of it for this checkpoint (expert_layout.h),
// and outlive the result's bytes_of.
Reconciliation reconcile(const ModuleTree& tree, const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace assay
