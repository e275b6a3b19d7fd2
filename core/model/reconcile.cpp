#include "core/model/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <unordered_set>

#include "core/model/adapter_faults.h"
#include "core/model/derived_faults.h"
#include "core/model/fused_faults.h"
#include "core/model/plain_ones.h"
#include "core/model/reconcile_gguf.h"
#include "core/model/reconcile_layers.h"
#include "core/model/renamed_tensors.h"
#include "core/model/said_form.h"
#include "core/model/shape_faults.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_form.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/text.h"

namespace assay {
namespace {

// Parts of multimodal models that hold no language model.
constexpr std::array<std::string_view, 11> kOtherTowers = {
    "vision",    "visual",      "image",   "audio",      "speech",   "video",
    "projector", "patch_embed", "talker.", "token2wav.", "code2wav."};

// Which copy of a spec a tensor is: indices are below 2^32 (module_tree.cpp bounds their number).
std::uint64_t key(const TensorIndices& indices) {
  return indices.layer << 32 | indices.expert;
}

struct SpecState {
  std::uint64_t copies = 0;
  bool mtp = false, tower = false, in_layer = false;
  std::vector<std::uint64_t> seen, scaled;  // copies that are here; those that have a scale
  std::vector<std::pair<std::uint64_t, const CheckpointTensor*>> wants_scale;
  std::vector<const CheckpointTensor*> plain;  // copies of a matrix that could be quantized and are not

  // The quantized tensor of a copy; wants_scale is sorted.
  const CheckpointTensor* codes_of(std::uint64_t copy) const {
    const auto at = std::lower_bound(wants_scale.begin(), wants_scale.end(), copy,
                                     [](const auto& entry, std::uint64_t c) { return entry.first < c; });
    return at != wants_scale.end() && at->first == copy ? at->second : nullptr;
  }
};

// A scale whose shape is judged once all codes are known.
struct ScaleSeen {
  const CheckpointTensor* tensor;
  const TensorSpec* spec;
  std::uint64_t copy;
  std::string_view suffix;
};

class Reconciler {
 public:
  Reconciler(const ModuleTree& tree, const ModelConfig& config, const Checkpoint& checkpoint)
      : tree_(tree), config_(config), checkpoint_(checkpoint), lookup_(tree) {
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
      const bool in_layer = std::any_of(where.path.begin(), where.path.end(), [](const Module* module) {
        return module->repeat.over == Repeat::Over::layers;
      });
      specs_[&spec] = {where.copies, where.mtp, where.tower, where.main() && in_layer, {}, {}, {}, {}};
    });
  }

  Reconciliation run() {
    for (const CheckpointTensor& tensor : checkpoint_.tensors) take(tensor);
    for (auto& [spec, state] : specs_) {
      std::sort(state.scaled.begin(), state.scaled.end());
      std::sort(state.wants_scale.begin(), state.wants_scale.end());
    }
    for (const ScaleSeen& scale : scales_) check_grid(scale);
    check_scales_present();
    find_absent_shards();
    find_layers_for_prediction();
    find_missing();
    tell_names_apart();
    take_stored_faults();
    check_plain_ones();
    check_quantization_config();
    check_mtp();
    check_turned_stacks();
    for (Finding& finding : layers_.findings()) findings_.add(std::move(finding));
    for (const auto& [spec, state] : specs_)
      if (!state.seen.empty() && !misshapen_.contains(spec)) shapes_.take_right(*spec);
    for (Finding& finding : shapes_.findings(checkpoint_)) findings_.add(std::move(finding));
    write_lines();
    result_.findings = findings_.take();
    return std::move(result_);
  }

 private:
  void take(const CheckpointTensor& tensor) {
    const std::uint64_t elements = element_count(tensor.shape).value_or(0);
    add(result_.stored, tensor, elements);
    add(result_.types[tensor.type], tensor, elements);
    if (const auto found = lookup_.find(tensor.name)) return take_weight(tensor, elements, *found, false);
    if (const auto stored = parse_stored_name(tensor.name)) {
      if (stored->weight.empty()) return add(result_.scales, tensor, elements);
      if (const auto found = lookup_.find(stored->weight)) {
        if (stored->part == StoredPart::codes) return take_weight(tensor, elements, *found, true);
        return take_scale(tensor, elements, *stored, *found);
      }
    }
    if (is_known_buffer(tensor.name)) return add(result_.buffers, tensor, elements);
    take_unknown(tensor, elements);
  }

  void take_weight(const CheckpointTensor& tensor, std::uint64_t elements, const TensorLookup::Found& found,
                   bool is_codes) {
    const TensorSpec& spec = *found.spec;
    specs_[&spec].seen.push_back(key(found.indices));
    result_.bytes_of[&spec] += tensor.bytes;
    StoredTally& tally = spec.storage == Storage::buffer ? result_.buffers
                         : spec.storage != Storage::own  ? result_.duplicates
                         : found.mtp                     ? result_.mtp
                         : found.tower                   ? result_.towers
                                                         : result_.main;
    add(tally, tensor, elements);
    if (spec.storage == Storage::buffer) return;
    check_type(tensor, spec, key(found.indices));
    if (!is_codes && tensor.shape == spec.shape) return;
    const bool packed = needs_scale(tensor.type) && codes_fit(spec, tensor);
    if (packed)
      result_.unpacked += spec.elements.value() - elements;
    else
      take_shape(tensor, *found.spec, found.indices.layer);
  }

  void check_type(const CheckpointTensor& tensor, const TensorSpec& spec, std::uint64_t copy) {
    if (is_plain_float(tensor.type)) {
      if (spec.quantizable && config_.quantization()) specs_[&spec].plain.push_back(&tensor);
      return;
    }
    if (!needs_scale(tensor.type)) {
      findings_.add({Severity::error,
                     "model.tensor_type",
                     fmt::format("is {}, which no weight can be", name(tensor.type)),
                     file_of(tensor),
                     tensor.name,
                     tensor.offset,
                     {}});
      return;
    }
    quantized_ = true;
    if (!spec.quantizable && !tree_.derived) {
      findings_.add({Severity::warning,
                     "model.tensor_type",
                     fmt::format("is {}, though releases of this family keep {} in full precision",
                                 name(tensor.type), name(spec.role)),
                     file_of(tensor),
                     tensor.name,
                     {},
                     {}});
    }
    specs_[&spec].wants_scale.emplace_back(copy, &tensor);
  }

  void take_shape(const CheckpointTensor& tensor, const TensorSpec& spec, std::uint64_t layer) {
    ++result_.misshapen_tensors;
    misshapen_.insert(&spec);
    const bool in_layers = spec.name.find("{layer}") != std::string::npos;
    shapes_.take(tensor, spec.shape, spec, spec.name, in_layers ? std::optional(layer) : std::nullopt);
  }

  // The name of the weight, whatever its stored form adds.
  static std::string weight_name(const std::string& name) {
    const auto stored = parse_stored_name(name);
    return stored && stored->part == StoredPart::codes ? stored->weight : name;
  }

  void take_scale(const CheckpointTensor& tensor, std::uint64_t elements, const StoredName& stored,
                  const TensorLookup::Found& found) {
    add(result_.scales, tensor, elements);
    result_.bytes_of[found.spec] += tensor.bytes;
    has_scales_ = true;
    if (stored.part != StoredPart::scale) return;
    specs_[found.spec].scaled.push_back(key(found.indices));
    scales_.push_back({&tensor, found.spec, key(found.indices), stored.suffix});
  }

  void check_grid(const ScaleSeen& scale) {
    const CheckpointTensor* codes = specs_[scale.spec].codes_of(scale.copy);
    const CheckpointTensor& tensor = *scale.tensor;
    if (const auto fault =
            scale_grid_fault(*scale.spec, codes, tensor, scale.suffix, config_.quantization())) {
      judged_.insert(tensor.name);
      findings_.add({Severity::error,
                     "model.scale_shape",
                     *fault,
                     file_of(tensor),
                     tensor.name,
                     {},
                     "make quantization_config in config.json and the scales agree"});
    } else if (const auto silent = undeclared_blocks(*scale.spec, codes, tensor, config_.quantization())) {
      findings_.add({Severity::warning,
                     "model.block_undeclared",
                     *silent,
                     file_of(tensor),
                     tensor.name,
                     {},
                     "name weight_block_size in config.json"});
    }
  }

  void take_unknown(const CheckpointTensor& tensor, std::uint64_t elements) {
    const bool other_tower =
        !tree_.not_counted.empty() &&
        std::any_of(kOtherTowers.begin(), kOtherTowers.end(),
                    [&](std::string_view word) { return tensor.name.find(word) != std::string::npos; });
    if (other_tower) return add(result_.elsewhere, tensor, elements);
    add(result_.extra, tensor, elements);
    if (result_.extra_names.size() < kNamesKept) result_.extra_names.push_back(tensor.name);
    if (!layers_.take_beyond(tensor.name)) unknown_.push_back(&tensor);
  }

  // The layers that a config counts too few lie where it promises those for prediction.
  void find_layers_for_prediction() {
    std::map<std::uint64_t, std::uint64_t> tensors;  // of each layer
    std::set<std::uint64_t> predicting;
    bool tells = false;
    for (const auto& [spec, state] : specs_) {
      if (!state.mtp) continue;
      constexpr std::string_view kLayer = "{layer}";
      const auto at = spec->name.find(kLayer);
      const bool only_there = at != std::string::npos && spec->storage == Storage::own &&
                              is_of_prediction(std::string_view(spec->name).substr(at + kLayer.size()));
      tells = tells || only_there;
      for (const std::uint64_t copy : state.seen) {
        ++tensors[copy >> 32];
        if (only_there) predicting.insert(copy >> 32);
      }
    }
    if (!tells || !predicting.empty()) return;
    for (const auto& [layer, count] : tensors)
      if (layer >= tree_.layers) layers_.take_promised(layer, count);
    promised_is_main_ = !tensors.empty();
  }

  // What neither a layer too many nor several tensors in one explain is told one by one.
  void tell_names_apart() {
    if (auto fused = fused_.finding()) findings_.add(std::move(*fused));
    for (const CheckpointTensor* tensor : unknown_) {
      if (fused_.explain(tensor->name)) continue;
      findings_.add({Severity::warning,
                     "model.tensor_extra",
                     fmt::format("{} {} belongs to nothing in the config", name(tensor->type),
                                 shape_text(tensor->shape)),
                     file_of(*tensor),
                     tensor->name,
                     {},
                     {}});
    }
    for (const auto& [name, spec] : perhaps_fused_)
      if (!fused_.explain(name)) tell_missing(name, *spec);
  }

  void check_scales_present() {
    std::vector<const CheckpointTensor*> unscaled;
    for (auto& [spec, state] : specs_) {
      for (const auto& [copy, tensor] : state.wants_scale) {
        if (!std::binary_search(state.scaled.begin(), state.scaled.end(), copy)) unscaled.push_back(tensor);
      }
    }
    std::sort(unscaled.begin(), unscaled.end());  // in the order of the files
    for (const CheckpointTensor* tensor : unscaled) {
      // A scale may lie in a shard that is not here.
      if (checkpoint_.index && index_knows_scale(weight_name(tensor->name))) continue;
      judged_.insert(tensor->name);
      findings_.add({Severity::error,
                     "model.scale_missing",
                     fmt::format("is {} without a scale: its values cannot be known", name(tensor->type)),
                     file_of(*tensor),
                     tensor->name,
                     {},
                     {}});
    }
  }

  bool index_knows_scale(const std::string& weight) const {
    const auto& map = checkpoint_.index->weight_map;
    for (auto at = map.lower_bound(weight.substr(0, weight.rfind("weight"))); at != map.end(); ++at) {
      const auto stored = parse_stored_name(at->first);
      if (stored && stored->part == StoredPart::scale && stored->weight == weight) return true;
      if (!at->first.starts_with(weight.substr(0, weight.rfind("weight")))) return false;
    }
    return false;
  }

  void find_absent_shards() {
    std::set<std::string> here;
    for (const CheckpointFile& file : checkpoint_.files) here.insert(file.name);
    result_.shards_here = result_.shards_told = here.size();
    if (checkpoint_.index) {
      for (const std::string& shard : checkpoint_.index->shards()) {
        if (!here.contains(shard)) absent_shards_.insert(shard);
      }
      result_.shards_told = here.size() + absent_shards_.size();
    } else if (!checkpoint_.files.empty()) {
      const auto shard = parse_shard_name(checkpoint_.files.front().name);
      if (shard && shard->count > here.size()) result_.shards_told = shard->count;
    }
    if (result_.complete()) return;
    findings_.add({Severity::warning,
                   "model.shards_absent",
                   fmt::format("{} of {} shards are here: what the others hold is not counted",
                               result_.shards_here, result_.shards_told),
                   {},
                   {},
                   {},
                   "bring the other shards"});
  }

  void find_missing() {
    std::erase_if(unknown_,
                  [&](const CheckpointTensor* tensor) { return layers_.take_beside(tensor->name); });
    for (const CheckpointTensor* tensor : unknown_)
      fused_.take_unknown(tensor->name, element_count(tensor->shape).value_or(0));
    std::unordered_set<const TensorSpec*> incomplete;
    std::unordered_set<std::uint64_t> layers_here;
    for (auto& [spec, state] : specs_) {
      const bool required =
          spec->storage == Storage::own && !(state.mtp && mtp_absent()) && !(state.tower && towers_absent());
      // Two files may hold the same tensor; it does not make up for another.
      std::sort(state.seen.begin(), state.seen.end());
      state.seen.erase(std::unique(state.seen.begin(), state.seen.end()), state.seen.end());
      if (required && state.seen.size() < state.copies) incomplete.insert(spec);
      for (const std::uint64_t copy : state.seen)
        if (state.in_layer) layers_here.insert(copy >> 32);
    }
    if (incomplete.empty()) return;
    for_each_tensor(
        tree_, [&](const std::string& name, const TensorSpec& spec, const TensorIndices& indices) {
          if (!incomplete.contains(&spec)) return;
          const SpecState& state = specs_[&spec];
          if (std::binary_search(state.seen.begin(), state.seen.end(), key(indices))) return;
          const bool whole_layer = state.in_layer && !layers_here.contains(indices.layer);
          report_missing(name, spec, whole_layer && !layers_here.empty() ? &indices.layer : nullptr);
        });
  }

  // `layer`: of which nothing is here.
  void report_missing(const std::string& name, const TensorSpec& spec, const std::uint64_t* layer) {
    if (!result_.complete() && (!checkpoint_.index || in_absent_shard(name))) {
      ++result_.tensors_not_here;
      elements_not_here_ += spec.elements.value();
      return;
    }
    ++result_.missing_tensors;
    if (result_.missing.size() < kNamesKept) result_.missing.push_back(name);
    if (layer != nullptr) return layers_.take_absent(*layer);
    if (fused_.take_missing(name, spec.elements.value()))
      perhaps_fused_.emplace_back(name, &spec);
    else
      tell_missing(name, spec);
  }

  void tell_missing(const std::string& name, const TensorSpec& spec) {
    findings_.add({Severity::error,
                   "model.tensor_missing",
                   fmt::format("is missing: {} of the {}", shape_text(spec.shape), title(spec.part)),
                   {},
                   name,
                   {},
                   {}});
  }

  bool in_absent_shard(const std::string& name) const {
    const auto& map = checkpoint_.index->weight_map;
    const std::string stem = name.ends_with(".weight") ? name.substr(0, name.size() - 6) : name;
    for (auto at = map.lower_bound(stem); at != map.end() && at->first.starts_with(stem); ++at) {
      const auto stored = parse_stored_name(at->first);
      const bool holds_it = at->first == name || (stored && stored->weight == name);
      if (holds_it && absent_shards_.contains(at->second)) return true;
    }
    return false;
  }

  // What no reader of the values could make sense of is said here too, so that no command takes what another
  // refuses. A form that is merely not known here may be another's.
  void take_stored_faults() {
    const bool in_few_bits = quantized_ || has_scales_ || config_.quantization();
    if (!in_few_bits || !result_.complete()) return;
    Findings faults;
    try {
      StoredTensors stored = find_stored(checkpoint_, config_.quantization());
      faults = std::move(stored.findings);
      if (config_.quantization() && checkpoint_.container == Checkpoint::Container::safetensors) {
        Findings differing = hold_against_config(checkpoint_, stored, *config_.quantization());
        std::move(differing.begin(), differing.end(), std::back_inserter(faults));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;  // a file that cannot be read is another's finding
    }
    for (Finding& finding : told_once(std::move(faults))) {
      if (judged_.contains(finding.tensor)) continue;
      const bool unknown = finding.code == "stored.method_unknown" || finding.code == "stored.form_unknown" ||
                           finding.code == "stored.auxiliary_unknown";
      if (unknown) finding.severity = Severity::warning;
      findings_.add(std::move(finding));
    }
  }

  // A matrix that stays plain though the config names it, where the same one of other layers is quantized.
  void check_plain_ones() {
    const auto& config = config_.quantization();
    if (!config || tree_.derived || !quantizes_every_linear(*config)) return;
    std::vector<const CheckpointTensor*> plain;
    for (const auto& [spec, state] : specs_) {
      if (!state.in_layer || spec->bias || spec->shape.size() < 2 || state.wants_scale.empty()) continue;
      plain.insert(plain.end(), state.plain.begin(), state.plain.end());
    }
    std::sort(plain.begin(), plain.end());  // in the order of the files
    for (Finding& finding : plain_though_named(plain, *config)) findings_.add(std::move(finding));
  }

  void check_quantization_config() {
    if (checkpoint_.container != Checkpoint::Container::safetensors || result_.stored.tensors == 0) return;
    const auto& quantization = config_.quantization();
    if (quantization && !quantized_ && !has_scales_ && result_.complete()) {
      findings_.add(
          {Severity::error,
           "model.quantization_stale",
           fmt::format("config.json says quantization_config \"{}\", but no tensor is quantized and "
                       "there are no scales: engines will size shards by blocks that are not there",
                       quantization->method),
           "config.json",
           {},
           {},
           "delete quantization_config from config.json"});
    }
    const bool told_elsewhere = fs::exists(checkpoint_.root / "hf_quant_config.json");
    const bool could_tell = !checkpoint_.config.empty();
    if (!quantization && quantized_ && could_tell && !told_elsewhere) {
      findings_.add({Severity::error,
                     "model.quantization_undeclared",
                     "tensors are quantized, but config.json has no quantization_config: loaders will read "
                     "codes as values",
                     "config.json",
                     {},
                     {},
                     "add the quantization_config that the release was made with"});
    }
  }

  // A language model saved alone keeps the whole config often enough.
  bool towers_absent() const { return !tree_.towers.empty() && result_.towers.tensors == 0; }
  bool mtp_absent() const { return !tree_.mtp.empty() && (result_.mtp.tensors == 0 || promised_is_main_); }

  PredictionClaim prediction_claim() const {
    PredictionClaim claim = {.key = prediction_key(config_)};
    for (const Module& module : tree_.mtp)
      if (module.repeat.over == Repeat::Over::layers) claim.layers += module.repeat.indices.size();
    return claim;
  }

  void check_mtp() {
    if (!mtp_absent() || !result_.complete() || layers_.is_prediction_behind()) return;
    findings_.add(prediction_absent(config_));
  }

  // Which transformers 5 takes either way, and no engine does.
  void check_turned_stacks() {
    bool turned = false;
    for_each_spec(tree_, [&](const TensorSpec& spec, const Occurrence&) {
      turned = turned || (spec.either_way && !spec.input_major);
    });
    if (!turned) return;
    findings_.add(
        {Severity::warning,
         "model.experts_turned",
         fmt::format("stacks of experts lie [experts, outputs, inputs], as transformers 5 saves them, where "
                     "releases have [experts, inputs, outputs]: vLLM and transformers 4 cannot load them"),
         {},
         {},
         {},
         "assay convert --to bf16 turns them back"});
  }

  void write_lines() {
    const Totals totals = count(tree_);
    const auto line = [&](std::string what, std::uint64_t tensors, std::uint64_t elements,
                          bool minus = false) {
      if (elements == 0 && tensors == 0) return;
      const auto signed_elements = static_cast<std::int64_t>(elements);
      result_.lines.push_back({std::move(what), tensors, minus ? -signed_elements : signed_elements});
    };
    result_.lines.push_back({"parameters of the config", 0, static_cast<std::int64_t>(totals.total)});
    if (!mtp_absent()) line("multi-token prediction, own", 0, totals.mtp_own);
    if (!towers_absent()) line("vision, audio, projectors", 0, totals.towers);
    line("stored again: tied or shared", result_.duplicates.tensors, result_.duplicates.elements);
    line("scales, zero points, tables", result_.scales.tensors, result_.scales.elements);
    line("buffers, no parameters", result_.buffers.tensors, result_.buffers.elements);
    line("parts the config describes elsewhere", result_.elsewhere.tensors, result_.elsewhere.elements);
    line("several values in one stored element", 0, result_.unpacked, true);
    line("in shards that are not here", result_.tensors_not_here, elements_not_here_, true);
    std::int64_t expected = 0;
    for (const ReconcileLine& l : result_.lines) expected += l.elements;
    result_.expected = static_cast<std::uint64_t>(expected);
    result_.difference = static_cast<std::int64_t>(result_.stored.elements) - expected;
  }

  std::string file_of(const CheckpointTensor& tensor) const { return checkpoint_.files[tensor.file].name; }

  const ModuleTree& tree_;
  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  TensorLookup lookup_;
  LayerFaults layers_{{.layers = tree_.layers, .prediction = prediction_claim()},
                      [this](const std::string& name) { return lookup_.find(name).has_value(); }};
  FusedFaults fused_;
  ShapeFaults shapes_{"the config"};
  std::set<const TensorSpec*> misshapen_;
  std::vector<const CheckpointTensor*> unknown_;  // whose names the config's model has not
  std::vector<std::pair<std::string, const TensorSpec*>> perhaps_fused_;
  bool promised_is_main_ = false;  // what lies where layers for prediction are promised are others
  Reconciliation result_;
  FindingCollector findings_;
  std::unordered_map<const TensorSpec*, SpecState> specs_;
  std::vector<ScaleSeen> scales_;
  std::set<std::string_view> judged_;  // tensors whose storage was found wrong
  std::set<std::string> absent_shards_;
  bool quantized_ = false, has_scales_ = false;
  std::uint64_t elements_not_here_ = 0;
};

Reconciliation reconcile_headers(const ModuleTree& tree, const ModelConfig& config,
                                 const Checkpoint& checkpoint) {
  if (checkpoint.container == Checkpoint::Container::gguf) return reconcile_gguf(tree, config, checkpoint);
  const auto renamed = find_prefix_fault(tree, checkpoint);
  if (!renamed) return Reconciler(tree, config, checkpoint).run();
  const Checkpoint named = with_names(checkpoint, *renamed, TensorLookup(tree));
  Reconciliation result = Reconciler(tree, config, named).run();
  result.findings.insert(result.findings.begin(), renamed->finding());
  return result;
}

}  // namespace

Reconciliation reconcile(const ModuleTree& tree, const ModelConfig& config, const Checkpoint& checkpoint) {
  Reconciliation result = reconcile_headers(tree, config, checkpoint);
  if (!tree.derived || !result.complete()) return result;
  for (Finding& finding : adapter_faults(checkpoint)) result.findings.push_back(std::move(finding));
  for (Finding& finding : derived_faults(tree, config)) result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace assay
