#include "core/model/reconcile_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/model/gguf_names.h"
#include "core/model/gguf_rules.h"
#include "core/model/gguf_shapes.h"
#include "core/model/reconcile_layers.h"
#include "core/model/shape_faults.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/system/finding_collector.h"
#include "core/system/text.h"

namespace assay {
namespace {

// What one layer has of one role: phi's gate_up, or 256 experts' down_proj.
struct Wanted {
  const TensorSpec* spec;
  std::uint64_t layer, elements;
  bool in_layer, mtp, tower;
  std::vector<std::string> names;
  std::uint64_t found = 0;
  bool misshapen = false;
};

using Shape = std::vector<std::uint64_t>;

// "blk.7.ffn_up.weight": "ffn_up.weight" of layer 7.
struct BlockName {
  std::string prefix, rest;  // "blk.7.", "ffn_up.weight"; "" and the whole name outside of layers
  std::uint64_t layer = 0;
};
BlockName block_name(const std::string& name) {
  constexpr std::string_view kBlocks = "blk.";
  const std::size_t end = name.starts_with(kBlocks) ? name.find('.', kBlocks.size()) : std::string::npos;
  if (end == std::string::npos) return {{}, name};
  const auto layer = parse_u64(std::string_view(name).substr(kBlocks.size(), end - kBlocks.size()));
  if (!layer) return {{}, name};
  return {name.substr(0, end + 1), name.substr(end + 1), *layer};
}

class GgufReconciler {
 public:
  GgufReconciler(const ModuleTree& tree, const ModelConfig& config, const Checkpoint& checkpoint)
      : tree_(tree),
        checkpoint_(checkpoint),
        family_(tree.derived ? nullptr : gguf_family_of(tree)),
        layers_({tree.layers, "the metadata", block_count_key(checkpoint)},
                [this](const std::string& name) { return by_name_.contains(name); }) {
    if (family_ != nullptr) planned_ = planned_gguf_shapes(config, tree, *family_);
    for (const CheckpointTensor& tensor : checkpoint.tensors) {
      if (tensor.name.find(".nextn.") != std::string::npos)
        predicting_.insert(block_name(tensor.name).prefix);
    }
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) { want(spec, where); });
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      for (const std::string& name : wanted_[i].names) by_name_[name].push_back(i);
    }
  }

  Reconciliation run() {
    for (const CheckpointTensor& tensor : checkpoint_.tensors) take(tensor);
    find_absent_splits();
    find_missing();
    for (Finding& finding : shapes_.findings(checkpoint_)) findings_.add(std::move(finding));
    for (Finding& finding : layers_.findings()) findings_.add(std::move(finding));
    write_lines();
    result_.findings = findings_.take();
    return std::move(result_);
  }

 private:
  static std::string block_count_key(const Checkpoint& checkpoint) {
    const auto architecture = checkpoint.gguf ? checkpoint.gguf->text("general.architecture") : std::nullopt;
    return architecture.value_or("") + (architecture ? "." : "") + "block_count";
  }

  void want(const TensorSpec& spec, const Occurrence& where) {
    if (where.tower && !tree_.derived) return;  // it has a file of its own
    std::vector<std::uint64_t> layers = {0};
    bool in_layer = false;
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) layers = module->repeat.indices, in_layer = true;
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
      wanted_.push_back(
          {&spec, layer, in_a_layer, in_layer && where.main(), where.mtp, where.tower, std::move(names)});
    }
  }

  void take(const CheckpointTensor& tensor) {
    const std::uint64_t elements = element_count(tensor.shape).value_or(0);
    add(result_.stored, tensor, elements);
    add(result_.types[tensor.type], tensor, elements);
    const auto found = by_name_.find(tensor.name);
    if (found == by_name_.end()) return take_unknown(tensor, elements);
    Wanted& wanted = best_of(found->second, tensor, elements);
    if (wanted.in_layer) layers_here_.insert(wanted.layer);
    // Muse Glimmer's heads are normed by no weight; llama.cpp wants one, which goes with the queries.
    if (tensor.name.ends_with("_norm.weight") && wanted.spec->part != Part::norm &&
        tensor.shape.size() == 1 && wanted.spec->shape.size() > 1) {
      result_.bytes_of[wanted.spec] += tensor.bytes;
      return add(added_, tensor, elements);
    }
    const Shape asked = shape_of(wanted, tensor.name, elements);
    const bool misshapen = !asked.empty() && !is_same_gguf_shape(tensor.shape, asked);
    if (misshapen) {
      wanted.misshapen = true;
      ++result_.misshapen_tensors;
      const BlockName block = block_name(tensor.name);
      shapes_.take(tensor, asked, *wanted.spec, block.rest,
                   block.prefix.empty() ? std::nullopt : std::optional(block.layer));
    }
    StoredTally& own = wanted.mtp ? result_.mtp : wanted.tower ? result_.towers : result_.main;
    const bool again =
        wanted.spec->storage != Storage::own || (!misshapen && wanted.found + elements > wanted.elements);
    const bool buffer = wanted.spec->storage == Storage::buffer;
    add(buffer ? result_.buffers : again ? result_.duplicates : own, tensor, elements);
    wanted.found += elements;
    result_.bytes_of[wanted.spec] += tensor.bytes;
  }

  // Two weights may share a name (a norm before, and one after); shapes and elements tell which still wants some.
  Wanted& best_of(const std::vector<std::size_t>& candidates, const CheckpointTensor& tensor,
                  std::uint64_t elements) {
    const auto has_room = [&](std::size_t i) { return wanted_[i].found + elements <= wanted_[i].elements; };
    for (const std::size_t i : candidates) {
      const Shape asked = shape_of(wanted_[i], tensor.name, elements);
      if (has_room(i) && is_same_gguf_shape(tensor.shape, asked)) return wanted_[i];
    }
    const auto roomy = std::find_if(candidates.begin(), candidates.end(), has_room);
    return wanted_[roomy == candidates.end() ? candidates.front() : *roomy];
  }

  // Empty where the tensor is a part of another, of which the family's plans have none: its elements are counted.
  Shape shape_of(const Wanted& wanted, const std::string& name, std::uint64_t elements) const {
    if (const auto planned = planned_.find(name); planned != planned_.end()) return planned->second;
    if (wanted.names.size() > 1 && elements != wanted.elements) return {};
    const std::uint64_t each = wanted.spec->elements.value();
    return each == 0 ? Shape() : plain_gguf_shape(*wanted.spec, wanted.elements / each, family_);
  }

  void take_unknown(const CheckpointTensor& tensor, std::uint64_t elements) {
    const auto stored = parse_stored_name(tensor.name);  // NVFP4's tensor-wide scales, those of activations
    if (stored && by_name_.contains(stored->weight)) return add(result_.scales, tensor, elements);
    const bool buffer = is_known_buffer(tensor.name) || tensor.name.starts_with("rope_factors");
    if (buffer) return add(result_.buffers, tensor, elements);
    add(result_.extra, tensor, elements);
    if (result_.extra_names.size() < kNamesKept) result_.extra_names.push_back(tensor.name);
    // Layers for multi-token prediction stand behind the others, and the converter leaves them out at will.
    if (!predicting_.contains(block_name(tensor.name).prefix) && layers_.take_beyond(tensor.name)) return;
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
      if (wanted.found == 0) {
        report_missing(wanted);
      } else if (!wanted.misshapen && (wanted.elements == 0 || wanted.found % wanted.elements != 0)) {
        ++result_.misshapen_tensors;  // whole and in parts, it may be there twice
        findings_.add({Severity::error,
                       "model.tensor_shape",
                       fmt::format("has {} elements, the metadata asks for {} = {}", wanted.found,
                                   wanted.elements, wanted.spec->elements.symbols()),
                       {},
                       label(wanted),
                       {},
                       {}});
      }
    }
  }

  static const std::string& label(const Wanted& wanted) {
    return wanted.names.empty() ? wanted.spec->name : wanted.names.front();
  }

  void report_missing(const Wanted& wanted) {
    if (!result_.complete()) {
      ++result_.tensors_not_here;
      elements_not_here_ += wanted.elements;
      return;
    }
    ++result_.missing_tensors;
    if (result_.missing.size() < kNamesKept) result_.missing.push_back(label(wanted));
    if (wanted.in_layer && !layers_here_.empty() && !layers_here_.contains(wanted.layer))
      return layers_.take_absent(wanted.layer);
    findings_.add(
        {Severity::error,
         "model.tensor_missing",
         fmt::format("is missing: {} elements of the {}", wanted.elements, title(wanted.spec->part)),
         {},
         label(wanted),
         {},
         {}});
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
  GgufShapes planned_;
  ShapeFaults shapes_{"the metadata"};
  LayerFaults layers_;
  std::set<std::uint64_t> layers_here_;
  std::set<std::string> predicting_;  // "blk.46.": layers for multi-token prediction
  Reconciliation result_;
  FindingCollector findings_;
  StoredTally kept_otherwise_, added_;
  std::uint64_t elements_not_here_ = 0;
};

}  // namespace

Reconciliation reconcile_gguf(const ModuleTree& tree, const ModelConfig& config,
                              const Checkpoint& checkpoint) {
  return GgufReconciler(tree, config, checkpoint).run();
}

}  // namespace assay
