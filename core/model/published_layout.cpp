#include "core/model/published_layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/model/composed_tensor.h"
#include "core/model/expert_layout.h"

namespace assay {
namespace {

class Publisher {
 public:
  Publisher(StoredTensors stored, const ModuleTree& tree)
      : tree_(tree), lookup_(tree), stored_(std::make_shared<StoredTensors>(std::move(stored))) {
    for (std::uint32_t i = 0; i < stored_->tensors.size(); ++i) places_.emplace(stored_->tensors[i].name, i);
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) { specs_.push_back(&spec); });
  }

  StoredTensors run() {
    StoredTensors result;
    bool any = false;
    for (std::uint32_t i = 0; i < stored_->tensors.size(); ++i) {
      const LogicalTensor& tensor = stored_->tensors[i];
      const auto known = lookup_.find(tensor.name);
      const auto name = known ? std::nullopt : layer_name(tensor.name);
      const std::size_t before = made_.size();
      const bool taken = known ? turn_back(i, *known->spec) : name && take(i, *name);
      any |= taken;
      if (!taken) result.tensors.push_back(tensor);
      for (std::size_t made = before; made < made_.size(); ++made)
        result.tensors.push_back(std::move(made_[made]));
    }
    if (!any) return std::move(*stored_);
    result.findings = stored_->findings;
    result.any_quantized = stored_->any_quantized;
    return result;
  }

 private:
  const LogicalTensor& at(std::uint32_t place) const { return stored_->tensors[place]; }

  // Whether the tensor at `place` is replaced: by what made_ has more of then, or by what another one brings.
  bool take(std::uint32_t place, const LayerName& name) {
    const std::string_view rest = name.rest;
    if (rest.ends_with(".experts.gate_up_proj"))
      return split_experts(place, name, {Role::mlp_gate, Role::mlp_up});
    if (rest.ends_with(".experts.down_proj")) return split_experts(place, name, {Role::mlp_down});
    if (rest.ends_with(".switch_mlp.gate_proj.weight")) return split_experts(place, name, {Role::mlp_gate});
    if (rest.ends_with(".switch_mlp.up_proj.weight")) return split_experts(place, name, {Role::mlp_up});
    if (rest.ends_with(".switch_mlp.down_proj.weight")) return split_experts(place, name, {Role::mlp_down});
    if (rest == "mlp.gate.weight" || rest == "mlp.router.weight") return rename(place, name, Role::router);
    if (rest == "mlp.e_score_correction_bias") return rename(place, name, Role::router_correction);
    if (rest == "self_attn.embed_q.weight") {
      const auto values = places_.find(beside(at(place).name, "embed_q", "unembed_out"));
      return values != places_.end() && join_latent(place, values->second, name, true);
    }
    if (rest == "self_attn.unembed_out.weight") {
      const auto keys = places_.find(beside(at(place).name, "unembed_out", "embed_q"));
      return keys != places_.end() && join_latent(keys->second, place, name, false);
    }
    return false;
  }

  bool turn_back(std::uint32_t place, const TensorSpec& spec) {
    const std::vector<std::uint64_t>& is = at(place).shape;
    const bool turned = spec.either_way && is.size() == 3 && is != spec.shape && is[0] == spec.shape[0] &&
                        is[1] == spec.shape[2] && is[2] == spec.shape[1];
    if (!turned) return false;
    DerivedTensor made{.name = at(place).name, .shape = spec.shape};
    for (std::uint64_t expert = 0; expert < is[0]; ++expert)
      made.pieces.push_back({place, expert * is[1], is[1], true});
    add(std::move(made));
    return true;
  }

  // The matrix of that role in the layer: of one expert, or of the layer as a whole.
  const TensorSpec* find(const LayerName& name, Role role, bool routed, const TensorIndices& indices) const {
    for (const TensorSpec* spec : specs_) {
      const bool fits = spec->role == role && spec->bias == (role == Role::router_correction) &&
                        (spec->part == Part::routed_expert) == routed &&
                        spec->name.starts_with(name.before) && (!routed || is_one_experts(*spec));
      if (!fits) continue;
      const auto found = lookup_.find(expand(spec->name, indices));
      if (found && found->spec == spec) return spec;
    }
    return nullptr;
  }
  static bool is_one_experts(const TensorSpec& spec) {
    return spec.name.find("{expert}") != std::string::npos;
  }

  bool split_experts(std::uint32_t place, const LayerName& name, const std::vector<Role>& members) {
    const LogicalTensor& stack = at(place);
    if (stack.shape.size() != 3 || tree_.experts == 0 || stack.shape[0] != tree_.experts) return false;
    std::vector<const TensorSpec*> specs;
    std::uint64_t rows = 0;
    for (const Role role : members) {
      const TensorSpec* spec = find(name, role, true, {name.layer, 0});
      if (spec == nullptr || spec->shape.size() != 2 || spec->shape[1] != stack.shape[2]) return false;
      rows += spec->shape[0];
      specs.push_back(spec);
    }
    if (rows != stack.shape[1]) return false;
    for (std::uint64_t expert = 0; expert < tree_.experts; ++expert) {
      std::uint64_t first = expert * rows;
      for (const TensorSpec* spec : specs) {
        DerivedTensor made{.name = expand(spec->name, {name.layer, expert}), .shape = spec->shape};
        made.pieces = {{place, first, spec->shape[0]}};
        first += spec->shape[0];
        add(std::move(made));
      }
    }
    return true;
  }

  bool rename(std::uint32_t place, const LayerName& name, Role role) {
    const TensorSpec* spec = find(name, role, false, {name.layer, 0});
    if (spec == nullptr || spec->shape != at(place).shape) return false;
    add(whole(expand(spec->name, {name.layer, 0}), *stored_, place));
    return true;
  }

  static std::string beside(std::string name, std::string_view part, std::string_view other) {
    return name.replace(name.find(part), part.size(), other);
  }

  // kv_b_proj has for every head the rows that make its keys, then those that make its values; the former are
  // kept transposed, for queries are multiplied by them. `here`: whether it is to be made at this place.
  bool join_latent(std::uint32_t keys, std::uint32_t values, const LayerName& name, bool here) {
    const TensorSpec* spec = find(name, Role::kv_b, false, {name.layer, 0});
    if (spec == nullptr || tree_.attention.empty()) return false;
    const AttentionGeometry& g = tree_.attention.front();
    const std::uint64_t nope = g.qk_head_dim - g.rope_head_dim;
    const bool fits = at(keys).shape == std::vector<std::uint64_t>{g.heads, g.kv_lora_rank, nope} &&
                      at(values).shape == std::vector<std::uint64_t>{g.heads, g.v_head_dim, g.kv_lora_rank};
    if (!fits || !here) return fits;
    DerivedTensor made{.name = expand(spec->name, {name.layer, 0}), .shape = spec->shape};
    for (std::uint64_t head = 0; head < g.heads; ++head) {
      made.pieces.push_back({keys, head * g.kv_lora_rank, g.kv_lora_rank, true});
      made.pieces.push_back({values, head * g.v_head_dim, g.v_head_dim});
    }
    add(std::move(made));
    return true;
  }

  void add(DerivedTensor made) { made_.push_back(compose(std::move(made), stored_)); }

  const ModuleTree& tree_;
  TensorLookup lookup_;
  std::shared_ptr<StoredTensors> stored_;
  std::map<std::string, std::uint32_t> places_;
  std::vector<const TensorSpec*> specs_;
  std::vector<LogicalTensor> made_;
};

}  // namespace

StoredTensors under_published_names(StoredTensors stored, const ModuleTree& tree) {
  return Publisher(std::move(stored), tree).run();
}

}  // namespace assay
