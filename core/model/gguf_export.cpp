#include "core/model/gguf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "core/formats/gguf_write.h"
#include "core/model/composed_tensor.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/layer_geometry.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"

namespace assay {
namespace {

bool is_routed_expert(const TensorSpec& spec) {
  return spec.name.find("{expert}") != std::string::npos;
}

// What llama.cpp's converter keeps in float32 whatever the output's type.
bool stays_f32(const DerivedTensor& tensor) {
  const std::string_view name = tensor.name;
  return tensor.shape.size() <= 1 || name.ends_with("_norm.weight") || !name.ends_with(".weight") ||
         name.find(".ffn_gate_inp") != std::string_view::npos || name.ends_with(".indexer.proj.weight") ||
         name.ends_with("ssm_conv1d.weight") || name.ends_with(".shortconv.conv.weight") ||
         name.ends_with("position_embd.weight") || name.find(".ssm_conv1d_") != std::string_view::npos;
}

class Exporter {
 public:
  Exporter(const ModelConfig& config, const ModuleTree& tree, const GgufFamily& family,
           const Checkpoint& checkpoint, const StoredTensors& stored)
      : config_(config),
        tree_(tree),
        family_(family),
        rules_(gguf_rules(family)),
        checkpoint_(checkpoint),
        stored_(stored),
        lookup_(tree),
        values_(values_of(config)) {
    std::set<std::string> of_experts;
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
      if (where.main() && is_routed_expert(spec))
        of_experts.insert(spec.name.substr(spec.name.find("{expert}")));
    });
    matrices_of_an_expert_ = of_experts.size();
  }

  std::vector<GgufTensor> run() {
    if (auto factors = rope_frequency_factors(config_, family_); !factors.empty()) {
      DerivedTensor generated;
      generated.name = "rope_freqs.weight";
      generated.shape = {factors.size()};
      generated.computed = std::move(factors);
      add(std::move(generated));
    }
    for (DerivedTensor& tensor : gguf_more_tensors(config_, family_)) add(std::move(tensor));
    for (const std::uint32_t place : by_file_and_name()) take(place);
    check_complete();
    return std::move(made_);
  }

 private:
  struct Layer {  // its experts, until all have been seen
    std::map<std::string, std::vector<std::optional<std::uint32_t>>> matrices;  // by template, by expert
    std::map<std::string, const TensorSpec*> specs;
    std::size_t seen = 0;
  };

  std::vector<std::uint32_t> by_file_and_name() const {
    std::vector<std::uint32_t> places(stored_.tensors.size());
    std::iota(places.begin(), places.end(), 0);
    // What the converter decodes from codes of another name (qweight, weight_packed) it puts at the end.
    const auto key = [&](std::uint32_t place) {
      const LogicalTensor& tensor = stored_.tensors[place];
      const CheckpointTensor& codes = checkpoint_.tensors[tensor.codes];
      const bool decoded = codes.name != tensor.name && !is_put_together(tensor);
      return std::tuple(decoded, codes.file, std::string_view(codes.name), place);
    };
    std::sort(places.begin(), places.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return places;
  }

  bool is_kept_f32(std::string_view name) const {
    if (name == "output.weight" && !rules_.f32_head.empty() && values_.value(rules_.f32_head, false))
      return true;
    for (std::string_view rest = rules_.f32_parts; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find('|'));
      if (name.find(part) != std::string_view::npos) return true;
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    }
    return false;
  }

  void add(DerivedTensor tensor, bool whole_numbers = false) {
    if (!names_.insert(tensor.name).second)
      throw Error::refused("two tensors of the source would have this name").tensor(tensor.name);
    const bool router = tensor.name.find(".ffn_gate_inp.") != std::string::npos;
    const bool f32 = (is_kept_f32(tensor.name) || stays_f32(tensor)) && !(router && rules_.router_as_others);
    made_.push_back({std::move(tensor), f32, whole_numbers});
  }

  void take(std::uint32_t place) {
    const LogicalTensor& source = stored_.tensors[place];
    const auto found = lookup_.find(source.name);
    if (!found) {
      if (is_known_buffer(source.name)) return;
      throw Error::refused(fmt::format("the module tree of {} has no such tensor", tree_.family))
          .tensor(source.name)
          .remedy("take it out of the folder, if it is no part of the model");
    }
    if (found->mtp || found->tower || is_left_out(*found->spec)) return;
    if (found->spec->storage == Storage::tied && family_.omits_tied_head) return;
    if (source.shape != found->spec->shape)
      throw Error::refused("its shape is not what config.json says").tensor(source.name);
    seen_.insert(expand(found->spec->name, found->indices));
    if (is_routed_expert(*found->spec))
      take_expert(place, *found);
    else
      take_plain(place, *found);
  }

  // Of buffers only those are kept that have a name of their own: a table of which experts a token goes to.
  bool is_left_out(const TensorSpec& spec) const {
    return spec.storage == Storage::buffer && own_gguf_name(spec, rules_) == nullptr;
  }

  void take_plain(std::uint32_t place, const TensorLookup::Found& found) {
    if (const GgufOwnName* own = own_gguf_name(*found.spec, rules_)) return take_own(place, found, *own);
    const std::vector<std::string> names = gguf_names(*found.spec, found.indices.layer, &family_);
    if (names.empty() || found.spec->stacked != 0)
      throw Error::refused("has no place in a GGUF").tensor(stored_.tensors[place].name);
    if (found.spec->role == Role::kv_b && !found.spec->bias && !tree_.attention.front().kv_b_whole)
      return split_latent(place, found.indices.layer);
    DerivedTensor tensor = found.spec->input_major && found.spec->shape.size() == 2 && !found.spec->bias
                               ? transposed(names.front(), stored_, place)
                               : whole(names.front(), stored_, place);
    const Role role = found.spec->role;
    if (family_.paired_heads && (role == Role::q || role == Role::k)) {
      tensor.order = HeadRows::pairs_from_halves;
      tensor.head_rows = tree_.attention.front().qk_head_dim;
    }
    if (rules_.is_less_one(stored_.tensors[place].name)) tensor.offset = 1;
    add(std::move(tensor));
  }

  void take_own(std::uint32_t place, const TensorLookup::Found& found, const GgufOwnName& own) {
    if (own.name.empty()) return;
    const std::string layer = found.spec->name.find("{layer}") == std::string::npos
                                  ? ""
                                  : fmt::format("blk.{}.", found.indices.layer);
    if (own.make != nullptr) {
      for (DerivedTensor& tensor : own.make({tree_, *found.spec, stored_, place, layer, own.name, values_}))
        add(std::move(tensor));
      return;
    }
    DerivedTensor tensor = whole(gguf_name_of(own.name, layer, found.spec->bias), stored_, place);
    if (rules_.is_less_one(stored_.tensors[place].name)) tensor.offset = 1;
    const ElementType stored = stored_.tensors[place].form.codes;
    add(std::move(tensor), stored == ElementType::I64 || stored == ElementType::I32);
  }

  // kv_b_proj has for every head the rows that make its keys, then those that make its values. Absorbed
  // attention multiplies queries by the former, transposed.
  void split_latent(std::uint32_t place, std::uint64_t index) {
    const AttentionGeometry* own = geometry_of(tree_, index);
    const AttentionGeometry& g = own == nullptr ? tree_.attention.front() : *own;
    const std::string layer = fmt::format("blk.{}.", index);
    const std::uint64_t nope = g.qk_head_dim - g.rope_head_dim, v = g.v_head_dim;
    DerivedTensor keys{.name = layer + "attn_k_b.weight", .shape = {g.heads, g.kv_lora_rank, nope}};
    DerivedTensor values{.name = layer + "attn_v_b.weight", .shape = {g.heads, v, g.kv_lora_rank}};
    for (std::uint64_t head = 0; head < g.heads; ++head) {
      keys.pieces.push_back({place, head * (nope + v), nope, true});
      values.pieces.push_back({place, head * (nope + v) + nope, v});
    }
    add(std::move(keys));
    add(std::move(values));
  }

  void take_expert(std::uint32_t place, const TensorLookup::Found& found) {
    const auto [layer, expert] = found.indices;
    Layer& experts = layers_[layer];
    auto& matrix = experts.matrices[found.spec->name];
    experts.specs[found.spec->name] = found.spec;
    matrix.resize(tree_.experts);
    if (matrix.at(expert)) throw Error::refused("is there twice").tensor(stored_.tensors[place].name);
    matrix[expert] = place;
    if (++experts.seen < matrices_of_an_expert_ * tree_.experts) return;
    // By name, which is down, gate, up and w1, w2, w3; or with the first behind the others.
    const auto first = experts.matrices.begin();
    for (const auto& [name, places] : experts.matrices) {
      if (!rules_.gate_last || name != first->first) stack(*experts.specs.at(name), layer, places);
    }
    if (rules_.gate_last) stack(*experts.specs.at(first->first), layer, first->second);
    layers_.erase(layer);
  }

  void stack(const TensorSpec& spec, std::uint64_t layer,
             const std::vector<std::optional<std::uint32_t>>& places) {
    DerivedTensor tensor{.name = gguf_names(spec, layer, &family_).front(), .shape = {places.size()}};
    tensor.shape.insert(tensor.shape.end(), spec.shape.begin(), spec.shape.end());
    for (const auto& place : places)
      tensor.pieces.push_back({place.value(), 0, stored_.tensors[*place].all_rows()});
    add(std::move(tensor));
  }

  void check_complete() const {
    for_each_tensor(tree_, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
      const bool kept =
          spec.storage == Storage::own || (spec.storage == Storage::buffer && !is_left_out(spec));
      if (!kept || spec.part == Part::mtp || seen_.contains(name)) return;
      const auto found = lookup_.find(name);
      if (found && (found->mtp || found->tower)) return;
      throw Error::refused("is missing: a GGUF of part of a model loads nowhere").tensor(name);
    });
  }

  const ModelConfig& config_;
  const ModuleTree& tree_;
  const GgufFamily& family_;
  const GgufRules& rules_;
  const Checkpoint& checkpoint_;
  const StoredTensors& stored_;
  TensorLookup lookup_;
  const ParsedJson values_;
  std::size_t matrices_of_an_expert_ = 0;
  std::map<std::uint64_t, Layer> layers_;
  std::vector<GgufTensor> made_;
  std::set<std::string> names_, seen_;
};

}  // namespace

std::vector<GgufTensor> gguf_tensors(const ModelConfig& config, const ModuleTree& tree,
                                     const GgufFamily& family, const Checkpoint& checkpoint,
                                     const StoredTensors& stored) {
  return Exporter(config, tree, family, checkpoint, stored).run();
}

std::vector<gguf::KeyValue> gguf_tensor_keys(const ModuleTree& tree, const GgufFamily& family,
                                             const Checkpoint& checkpoint, const StoredTensors& stored) {
  const CheckpointReader source(checkpoint);
  const TensorLookup lookup(tree);
  std::vector<gguf::KeyValue> keys;
  for (const GgufTensorKey& key : gguf_rules(family).tensor_keys) {
    std::vector<float> values(tree.layers);
    for (const LogicalTensor& tensor : stored.tensors) {
      const auto found = lookup.find(tensor.name);
      if (!found || found->mtp || found->tower || !found->spec->name.ends_with(key.of)) continue;
      StoredReader(source, tensor).decode_rows(0, 1, std::span(&values[found->indices.layer], 1));
    }
    keys.push_back(gguf::f32s_value(std::string(key.key), values));
  }
  return keys;
}

}  // namespace assay
