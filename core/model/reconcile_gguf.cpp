#include "core/model/reconcile_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/gguf_names.h"
#include "core/model/gguf_rules.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/system/finding_collector.h"

namespace assay {
namespace {

// What one layer has of one role: phi's gate_up, or 256 experts' down_proj.
struct Wanted {
  const TensorSpec* spec;
  std::uint64_t layer, elements;
  bool mtp, tower;
  std::vector<std::string> names;
  std::uint64_t found = 0;
};

class GgufReconciler {
 public:
  GgufReconciler(const ModuleTree& tree, const Checkpoint& checkpoint)
      : tree_(tree), checkpoint_(checkpoint), family_(gguf_family_of(tree)) {
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) { want(spec, where); });
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      for (const std::string& name : wanted_[i].names) by_name_[name].push_back(i);
    }
  }

  Reconciliation run() {
    for (const CheckpointTensor& tensor : checkpoint_.tensors) take(tensor);
    find_absent_splits();
    find_missing();
    write_lines();
    result_.findings = findings_.take();
    return std::move(result_);
  }

 private:
  void want(const TensorSpec& spec, const Occurrence& where) {
    if (where.tower && !tree_.derived) return;  // it has a file of its own
    std::vector<std::uint64_t> layers = {0};
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) layers = module->repeat.indices;
    }
    const std::uint64_t in_a_layer = spec.elements.value() * (where.copies / layers.size());
    // In a key, or in the tensor of another.
    const GgufOwnName* own = family_ == nullptr ? nullptr : own_gguf_name(spec, gguf_rules(*family_));
    if (own != nullptr && own->name.empty() && !where.mtp && spec.storage == Storage::own) {
      ++kept_otherwise_.tensors;
      kept_otherwise_.elements += in_a_layer * layers.size();
      return;
    }
    for (const std::uint64_t layer : layers) {
      auto names =
          tree_.derived ? std::vector{expand(spec.name, {layer, 0})} : gguf_names(spec, layer, family_);
      wanted_.push_back({&spec, layer, in_a_layer, where.mtp, where.tower, std::move(names)});
    }
  }

  void take(const CheckpointTensor& tensor) {
    const std::uint64_t elements = element_count(tensor.shape).value_or(0);
    add(result_.stored, tensor, elements);
    add(result_.types[tensor.type], tensor, elements);
    const auto found = by_name_.find(tensor.name);
    if (found == by_name_.end()) return take_unknown(tensor, elements);
    Wanted& wanted = first_with_room(found->second, elements);
    // Muse Glimmer's heads are normed by no weight; llama.cpp wants one, which goes with the queries.
    if (tensor.name.ends_with("_norm.weight") && wanted.spec->part != Part::norm &&
        tensor.shape.size() == 1 && wanted.spec->shape.size() > 1) {
      result_.bytes_of[wanted.spec] += tensor.bytes;
      return add(added_, tensor, elements);
    }
    StoredTally& own = wanted.mtp ? result_.mtp : wanted.tower ? result_.towers : result_.main;
    const bool again = wanted.spec->storage != Storage::own || wanted.found + elements > wanted.elements;
    const bool buffer = wanted.spec->storage == Storage::buffer;
    add(buffer ? result_.buffers : again ? result_.duplicates : own, tensor, elements);
    wanted.found += elements;
    result_.bytes_of[wanted.spec] += tensor.bytes;
  }

  // Two weights may share a name (a norm before, and one after); the elements tell which still wants some.
  Wanted& first_with_room(const std::vector<std::size_t>& candidates, std::uint64_t elements) {
    for (const std::size_t i : candidates) {
      if (wanted_[i].found + elements <= wanted_[i].elements) return wanted_[i];
    }
    return wanted_[candidates.front()];
  }

  void take_unknown(const CheckpointTensor& tensor, std::uint64_t elements) {
    const auto stored = parse_stored_name(tensor.name);  // NVFP4's tensor-wide scales, those of activations
    if (stored && by_name_.contains(stored->weight)) return add(result_.scales, tensor, elements);
    const bool buffer = is_known_buffer(tensor.name) || tensor.name.starts_with("rope_factors");
    if (buffer) return add(result_.buffers, tensor, elements);
    add(result_.extra, tensor, elements);
    if (result_.extra_names.size() < kNamesKept) result_.extra_names.push_back(tensor.name);
    findings_.add(
        {Severity::warning,
         "model.tensor_extra",
         fmt::format("{} {} belongs to nothing in the metadata", name(tensor.type), shape_text(tensor.shape)),
         checkpoint_.files[tensor.file].name,
         tensor.name,
         {},
         {}});
  }

  void find_absent_splits() {
    result_.shards_here = result_.shards_told = checkpoint_.files.size();
    const auto split = checkpoint_.gguf ? checkpoint_.gguf->split() : std::nullopt;
    if (split && split->count > result_.shards_here) result_.shards_told = split->count;
    if (result_.complete()) return;
    findings_.add({Severity::warning,
                   "model.shards_absent",
                   fmt::format("{} of {} splits are here: what the others hold is not counted",
                               result_.shards_here, result_.shards_told),
                   {},
                   {},
                   {},
                   "bring the other splits"});
  }

  bool mtp_absent() const { return result_.mtp.tensors == 0; }

  void find_missing() {
    for (const Wanted& wanted : wanted_) {
      if (wanted.found == wanted.elements || wanted.spec->storage != Storage::own) continue;
      if (wanted.mtp && mtp_absent()) continue;
      if (wanted.found == 0 && !result_.complete()) {
        ++result_.tensors_not_here;
        elements_not_here_ += wanted.elements;
        continue;
      }
      const std::string label = wanted.names.empty() ? wanted.spec->name : wanted.names.front();
      if (wanted.found == 0) {
        ++result_.missing_tensors;
        if (result_.missing.size() < kNamesKept) result_.missing.push_back(label);
        findings_.add(
            {Severity::error,
             "model.tensor_missing",
             fmt::format("is missing: {} elements of the {}", wanted.elements, title(wanted.spec->part)),
             {},
             label,
             {},
             {}});
      } else if (wanted.found < wanted.elements) {
        ++result_.misshapen_tensors;
        findings_.add({Severity::error,
                       "model.tensor_shape",
                       fmt::format("has {} elements, the metadata asks for {} = {}", wanted.found,
                                   wanted.elements, wanted.spec->elements.symbols()),
                       {},
                       label,
                       {},
                       {}});
      }
    }
  }

  void write_lines() {
    const Totals totals = count(tree_);
    const auto line = [&](std::string what, const StoredTally& tally) {
      if (tally.tensors == 0) return;
      result_.lines.push_back({std::move(what), tally.tensors, static_cast<std::int64_t>(tally.elements)});
    };
    result_.lines.push_back({"parameters of the metadata", 0, static_cast<std::int64_t>(totals.total)});
    if (!mtp_absent())
      result_.lines.push_back({"multi-token prediction, own", 0, static_cast<std::int64_t>(totals.mtp_own)});
    if (result_.towers.tensors > 0)
      result_.lines.push_back({"towers and projectors", 0, static_cast<std::int64_t>(totals.towers)});
    line("stored again: tied, shared or split", result_.duplicates);
    line("buffers, no parameters", result_.buffers);
    line("norms that the converter adds", added_);
    line("scales of whole tensors", result_.scales);
    if (kept_otherwise_.tensors > 0)
      result_.lines.push_back({"kept in keys, or within another tensor", kept_otherwise_.tensors,
                               -static_cast<std::int64_t>(kept_otherwise_.elements)});
    if (result_.tensors_not_here > 0)
      result_.lines.push_back({"in splits that are not here", result_.tensors_not_here,
                               -static_cast<std::int64_t>(elements_not_here_)});
    std::int64_t expected = 0;
    for (const ReconcileLine& l : result_.lines) expected += l.elements;
    result_.expected = static_cast<std::uint64_t>(expected);
    result_.difference = static_cast<std::int64_t>(result_.stored.elements) - expected;
  }

  const ModuleTree& tree_;
  const Checkpoint& checkpoint_;
  const GgufFamily* family_;  // nullptr: it has none
  std::vector<Wanted> wanted_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_name_;
  Reconciliation result_;
  FindingCollector findings_;
  StoredTally kept_otherwise_, added_;
  std::uint64_t elements_not_here_ = 0;
};

}  // namespace

Reconciliation reconcile_gguf(const ModuleTree& tree, const Checkpoint& checkpoint) {
  return GgufReconciler(tree, checkpoint).run();
}

}  // namespace assay
