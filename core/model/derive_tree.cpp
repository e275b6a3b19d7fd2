#include "core/model/derive_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/derived_roles.h"
#include "core/model/stored_form.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

// A name cut at its dots; which of the parts are numbers.
struct CutName {
  std::vector<std::string> parts;
  const LogicalTensor* tensor;
  std::optional<std::size_t> layer, expert;  // places in parts

  std::string joined(std::size_t begin, std::size_t end) const {
    std::string text;
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin) text += '.';
      text += i == layer ? "{layer}" : i == expert ? "{expert}" : parts[i];
    }
    return text;
  }
  std::uint64_t number(std::size_t at) const { return parse_u64(parts[at]).value(); }
};

bool is_number(const std::string& part) {
  return parse_u64(part).has_value() && (part == "0" || part[0] != '0');
}

CutName cut(const LogicalTensor& tensor) {
  CutName name{{}, &tensor, {}, {}};
  for (std::size_t begin = 0; begin <= tensor.name.size();) {
    const std::size_t end = std::min(tensor.name.find('.', begin), tensor.name.size());
    name.parts.push_back(tensor.name.substr(begin, end - begin));
    begin = end + 1;
  }
  return name;
}

// Numbers behind one prefix: layers where they repeat the same tensors, places in a list where each has its own.
struct Axis {
  std::set<std::uint64_t> values;
  std::map<std::string, std::uint64_t> tails;  // what follows, and how often
  bool repeats() const {
    const auto often = [](const auto& tail) { return tail.second > 1; };
    const auto repeated = std::count_if(tails.begin(), tails.end(), often);
    return values.size() > 1 && 2 * static_cast<std::size_t>(repeated) >= tails.size() && tails.size() > 2;
  }
};

bool is_layer_word(const std::string& word) {
  constexpr std::string_view kWords[] = {"layers", "layer", "blocks", "block", "blk", "h"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::vector<CutName> cut_names(const StoredTensors& stored) {
  std::vector<CutName> names;
  std::map<std::string, Axis> axes;  // by the prefix of a first number
  for (const LogicalTensor& tensor : stored.tensors) {
    CutName& name = names.emplace_back(cut(tensor));
    const auto first = std::find_if(name.parts.begin() + 1, name.parts.end(), is_number);
    if (first == name.parts.end()) continue;
    name.layer = static_cast<std::size_t>(first - name.parts.begin());
    Axis& axis = axes[name.joined(0, *name.layer)];
    axis.values.insert(name.number(*name.layer));
    ++axis.tails[name.joined(*name.layer + 1, name.parts.size())];
  }
  for (CutName& name : names) {
    if (!name.layer) continue;
    if (!axes[name.joined(0, *name.layer)].repeats() && !is_layer_word(name.parts[*name.layer - 1])) {
      name.layer.reset();
      continue;
    }
    for (std::size_t i = *name.layer + 1; i < name.parts.size() && !name.expert; ++i) {
      if (is_number(name.parts[i]) && name.parts[i - 1].find("expert") != std::string::npos) name.expert = i;
    }
  }
  return names;
}

// Whole numbers of the config, by value, with the key that names them: keys of shapes before any others.
class NamedSizes {
 public:
  explicit NamedSizes(const ModelConfig& config) {
    for (const char* key :
         {"hidden_size", "d_model", "n_embd", "vocab_size", "intermediate_size", "moe_intermediate_size",
          "num_attention_heads", "num_key_value_heads", "head_dim"})
      take(config.text(), key);
    for (const auto& [key, value] : config.text().items())
      if (value.is_number_unsigned() && value.get<std::uint64_t>() > 32) take(config.text(), key);
    multiply("num_attention_heads", "head_dim", config.text());
    multiply("num_key_value_heads", "head_dim", config.text());
  }
  Quantity of(std::uint64_t size) const {
    const auto at = names_.find(size);
    return at == names_.end() ? Quantity(size) : at->second;
  }

 private:
  static std::optional<std::uint64_t> number(const ParsedJson& object, const std::string& key) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number_unsigned() || at->get<std::uint64_t>() > UINT32_MAX)
      return std::nullopt;
    return at->get<std::uint64_t>();
  }
  void take(const ParsedJson& object, const std::string& key) {
    if (const auto value = number(object, key); value && *value > 1)
      names_.emplace(*value, Quantity(key, *value));
  }
  void multiply(const char* a, const char* b, const ParsedJson& object) {
    const auto x = number(object, a), y = number(object, b);
    if (x && y && *x > 0 && *y > 0) names_.emplace(*x * *y, Quantity(a, *x) * Quantity(b, *y));
  }
  std::map<std::uint64_t, Quantity> names_;
};

// The first of `keys` that is a count.
std::optional<std::uint64_t> count_in(const ModelConfig& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto at = config.text().find(key);
    if (at != config.text().end() && at->is_number_unsigned()) return at->get<std::uint64_t>();
  }
  return std::nullopt;
}

class Deriver {
 public:
  Deriver(const StoredTensors& stored, const ModelConfig& config)
      : names_(cut_names(stored)), config_(config), sizes_(config) {}

  ModuleTree run() {
    tree_.family = "derived";
    tree_.title = "derived from names and shapes";
    tree_.architecture = config_.architecture().empty() ? config_.model_type() : config_.architecture();
    tree_.derived = true;
    tree_.read_hyperparameters =
        Error::input("what a forward pass of this architecture computes is not described")
            .in(config_.source());
    count_experts();
    add_outside(false);
    add_layers();
    add_outside(true);
    note_sizes();
    note_attention();
    return std::move(tree_);
  }

 private:
  void count_experts() {
    std::set<std::uint64_t> experts;
    for (const CutName& name : names_) {
      if (name.expert)
        experts.insert(name.number(*name.expert));
      else if (is_stack(name))
        tree_.experts = std::max(tree_.experts, name.tensor->shape[0]);
    }
    tree_.experts = std::max<std::uint64_t>(tree_.experts, experts.size());
    if (tree_.experts == 0) return;
    const auto active =
        count_in(config_, {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k",
                           "num_selected_experts", "experts_per_token", "top_k"});
    tree_.experts_per_token = active ? std::min(*active, tree_.experts) : tree_.experts;
    if (!active)
      tree_.not_counted.push_back(
          {"how many experts a token meets: no key says it, and all are taken", std::nullopt});
  }

  // All experts of a layer in one tensor.
  bool is_stack(const CutName& name) const {
    return name.layer && !name.expert && name.tensor->shape.size() == 3 &&
           (name.tensor->name.find("expert") != std::string::npos ||
            name.tensor->name.find("moe") != std::string::npos);
  }

  TensorSpec spec_of(const CutName& name) const {
    TensorSpec spec;
    spec.name = name.joined(0, name.parts.size());
    spec.shape = name.tensor->shape;
    spec.elements = 1;
    for (const std::uint64_t size : spec.shape) spec.elements = spec.elements * sizes_.of(size);
    const bool stack = is_stack(name);
    const DerivedRole derived =
        derive_role(spec.name, spec.shape.size(), name.layer.has_value(), name.expert || stack);
    spec.role = derived.role, spec.part = derived.part, spec.bias = derived.bias;
    spec.quantizable = derived.linear || stack;
    if (stack)
      spec.stacked = spec.shape[0], spec.stacked_active = std::min(tree_.experts_per_token, spec.shape[0]);
    return spec;
  }

  static bool is_tower(Part part) {
    return part == Part::vision || part == Part::audio || part == Part::projector;
  }
  void place(Module module, Part part) {
    (is_tower(part) ? tree_.towers : tree_.modules).push_back(std::move(module));
  }

  // Tables before the layers; norms, heads and whatever else behind them.
  void add_outside(bool behind) {
    for (const CutName& name : names_) {
      if (name.layer) continue;
      TensorSpec spec = spec_of(name);
      if ((spec.part != Part::embedding) != behind) continue;
      if (spec.role == Role::token_embedding && spec.shape.size() == 2) tree_.vocabulary = spec.shape[0];
      if (spec.role == Role::output_head && !spec.bias) has_head_ = true;
      const Part part = spec.part;
      Module module{"", std::string(title(part)), {}, {std::move(spec)}, {}};
      place(std::move(module), part);
    }
  }

  // What one layer holds: its tensors' names and shapes.
  struct Layer {
    std::string signature;
    std::vector<const CutName*> tensors;
  };

  // Files hold a layer's tensors in any order.
  static void sign(Layer& layer) {
    std::sort(layer.tensors.begin(), layer.tensors.end(),
              [](const CutName* a, const CutName* b) { return a->parts < b->parts; });
    for (const CutName* name : layer.tensors) {
      layer.signature += name->joined(*name->layer + 1, name->parts.size());
      if (name->expert) layer.signature += " " + name->parts[*name->expert];
      for (const std::uint64_t size : name->tensor->shape) layer.signature += fmt::format(" {}", size);
      layer.signature += '\n';
    }
  }

  void add_layers() {
    std::map<std::string, std::map<std::uint64_t, Layer>> stacks;  // by what stands before the number
    for (const CutName& name : names_) {
      if (!name.layer) continue;
      Layer& layer = stacks[name.joined(0, *name.layer)][name.number(*name.layer)];
      layer.tensors.push_back(&name);
    }
    for (auto& [prefix, layers] : stacks) {
      for (auto& [index, layer] : layers) sign(layer);
    }
    for (const auto& [prefix, layers] : stacks) add_stack(prefix, layers);
  }

  void add_stack(const std::string& prefix, const std::map<std::uint64_t, Layer>& layers) {
    std::map<std::string, std::vector<std::uint64_t>> alike;
    std::vector<std::string> order;
    for (const auto& [index, layer] : layers) {
      auto& indices = alike[layer.signature];
      if (indices.empty()) order.push_back(layer.signature);
      indices.push_back(index);
    }
    for (const std::string& signature : order) {
      const std::vector<std::uint64_t>& indices = alike[signature];
      Module group{prefix + ".{layer}", "layers", {}, {}, {}};
      group.repeat = {Repeat::Over::layers, indices, Quantity(indices.size()), indices.size()};
      Part part = Part::dense_mlp;
      fill_layer(group, layers.at(indices.front()), part);
      if (!is_tower(part)) tree_.layers = std::max<std::uint64_t>(tree_.layers, layers.rbegin()->first + 1);
      place(std::move(group), part);
    }
  }

  // Experts of a layer that hold the same tensors, by what all of these are; ERNIE 4.5 VL has two kinds.
  struct ExpertKinds {
    std::map<std::string, std::string> of;  // of an expert, by the names before it and its number
    std::map<std::string, std::set<std::uint64_t>> members;
    static std::string one(const CutName& name) {
      return fmt::format("{}.{}", name.joined(0, *name.expert), name.parts[*name.expert]);
    }
    const std::string& kind(const CutName& name) const { return of.at(one(name)); }
  };
  static ExpertKinds kinds_of_experts(const Layer& layer) {
    ExpertKinds kinds;
    for (const CutName* name : layer.tensors)
      if (name->expert)
        kinds.of[ExpertKinds::one(*name)] +=
            fmt::format("{} {}\n", name->joined(0, name->parts.size()), fmt::join(name->tensor->shape, "x"));
    for (const CutName* name : layer.tensors)
      if (name->expert) kinds.members[kinds.kind(*name)].insert(name->number(*name->expert));
    return kinds;
  }

  // A module for each part of the layer's names, and for each kind of experts.
  void fill_layer(Module& group, const Layer& layer, Part& part) {
    const ExpertKinds kinds = kinds_of_experts(layer);
    std::set<std::string> taken;                  // templates: experts repeat them
    std::map<std::string, std::size_t> children;  // by path and kind
    for (const CutName* name : layer.tensors) {
      TensorSpec spec = spec_of(*name);
      const std::string kind = name->expert ? kinds.kind(*name) : "";
      if (!taken.insert(spec.name + kind).second) continue;
      part = spec.part;
      const std::size_t first = *name->layer + 1;
      if (first + 2 >= name->parts.size() && !name->expert) {
        group.tensors.push_back(std::move(spec));
        continue;
      }
      const std::string path = name->expert ? name->joined(first, *name->expert + 1) : name->parts[first];
      const auto [at, is_new] = children.emplace(path + '\n' + kind, group.children.size());
      if (is_new) group.children.push_back({path, path, {}, {}, {}});
      Module& child = group.children[at->second];
      if (name->expert) {
        const auto& indices = kinds.members.at(kind);
        child.repeat = {Repeat::Over::experts,
                        {indices.begin(), indices.end()},
                        Quantity(indices.size()),
                        std::min<std::uint64_t>(tree_.experts_per_token, indices.size())};
        child.title = title(spec.part);
      }
      child.tensors.push_back(std::move(spec));
    }
  }

  void note_sizes() {
    const auto hidden = count_in(config_, {"hidden_size", "d_model", "n_embd"});
    tree_.hidden_size = hidden.value_or(0);
    tree_.tied_embeddings = !has_head_;
  }

  // Where keys of the config and rows of k_proj agree.
  void note_attention() {
    const auto heads = count_in(config_, {"num_attention_heads", "n_head"});
    const auto kv_heads = count_in(config_, {"num_key_value_heads", "num_attention_heads", "n_head"});
    if (!heads || !kv_heads || *heads == 0 || *kv_heads == 0) return;
    for (const Module& group : tree_.modules) {
      if (group.repeat.over != Repeat::Over::layers) continue;
      for (const Module& child : group.children) {
        for (const TensorSpec& spec : child.tensors) {
          if (spec.role != Role::k || spec.bias || spec.shape.size() != 2 || spec.shape[0] % *kv_heads != 0)
            continue;
          AttentionGeometry g;
          g.layers = group.repeat.indices;
          g.heads = *heads, g.kv_heads = *kv_heads;
          g.qk_head_dim = g.v_head_dim = spec.shape[0] / *kv_heads;
          tree_.attention.push_back(std::move(g));
        }
      }
    }
  }

  std::vector<CutName> names_;
  const ModelConfig& config_;
  NamedSizes sizes_;
  ModuleTree tree_;
  bool has_head_ = false;
};

}  // namespace

ModelConfig absent_config(const Checkpoint& checkpoint) {
  return ModelConfig::from_json(ParsedJson{{"model_type", "unknown"}}, checkpoint.root);
}

ModuleTree derive_tree(const Checkpoint& checkpoint, const ModelConfig& config) {
  const StoredTensors stored = find_stored(checkpoint, config.quantization());
  return Deriver(stored, config).run();
}

}  // namespace assay
