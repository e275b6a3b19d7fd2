#include "core/model/derive_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/cut_names.h"
#include "core/model/derived_keys.h"
#include "core/model/derived_roles.h"
#include "core/model/nested_config.h"
#include "core/model/quantized_layers.h"
#include "core/model/stored_form.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

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

std::optional<std::uint64_t> count_in(const ModelConfig& config, std::initializer_list<const char*> keys) {
  const auto told = told_count(config, keys);
  return told ? std::optional(told->count) : std::nullopt;
}

class Deriver {
 public:
  Deriver(const StoredTensors& stored, const ModelConfig& config, bool gguf)
      : names_(cut_names(stored)),
        config_(config),
        gguf_(gguf),
        sizes_(config),
        told_experts_(told_experts(config)),
        told_vocabulary_(count_in(config, {"vocab_size", "n_vocab", "vocabulary_size"})) {}

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
  // Of what reads tokens; a tower may have others.
  void count_experts() {
    std::set<std::uint64_t> experts;
    for (const CutName& name : names_) {
      if (!(name.expert || is_stack(name)) || is_of_tower(name)) continue;
      if (name.expert)
        experts.insert(name.number(*name.expert));
      else
        tree_.experts = std::max(tree_.experts, name.tensor->shape[0]);
    }
    tree_.experts = std::max<std::uint64_t>(tree_.experts, experts.size());
    if (tree_.experts == 0) return;
    if (const auto active = told_experts_per_token(config_, tree_.experts))
      tree_.experts_per_token = active->count;
    else
      tree_.not_counted.push_back(
          {"how many experts a token meets: no key says it, and all are taken", std::nullopt});
  }
  // Of so many in a layer.
  std::uint64_t active_of(std::uint64_t experts) const {
    return tree_.experts_per_token == 0 ? experts : std::min(tree_.experts_per_token, experts);
  }

  // All experts of a layer in one tensor.
  bool is_stack(const CutName& name) const {
    return name.layer && !name.expert && name.tensor->shape.size() == 3 &&
           (is_of_experts(name) || is_counted_as_experts(name));
  }
  // Whatever it is called: as many matrices as the config has experts, where no attention and no state is.
  bool is_counted_as_experts(const CutName& name) const {
    constexpr std::string_view kOthers[] = {"attn", "attention", "mixer", "conv", "mamba", "ssm"};
    const auto& shape = name.tensor->shape;
    return told_experts_ && told_experts_->count > 1 && shape[0] == told_experts_->count && shape[1] > 1 &&
           shape[2] > 1 && std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view word) {
             return name.tensor->name.find(word) != std::string::npos;
           });
  }
  static bool is_of_experts(const CutName& name) {
    const auto holds = [&](const char* word) { return name.tensor->name.find(word) != std::string::npos; };
    return holds("expert") || holds("moe") || holds("_exps.") || holds("_chexps.");
  }
  // A vector of each: their biases.
  bool is_stack_of_vectors(const CutName& name) const {
    const auto& shape = name.tensor->shape;
    return name.layer && !name.expert && tree_.experts > 1 && shape.size() == 2 &&
           shape[0] == tree_.experts &&
           (name.tensor->name.find("_exps.") != std::string::npos ||
            (name.tensor->name.ends_with("bias") && is_of_experts(name)));
  }

  // A layer that predicts a token further, by what joins its two inputs, or as llama.cpp or a stack of its own names it.
  static bool predicts(std::string_view name) {
    constexpr std::string_view kWords[] = {".eh_proj.", ".nextn.", ".shared_head."};
    return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
           std::any_of(std::begin(kWords), std::end(kWords),
                       [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
  }

  // Rotary frequencies, causal masks (which are called "bias", and no vectors), and whole numbers: tables of positions
  // or hashes.
  static bool is_buffer(const CutName& name) {
    const ElementType type = name.tensor->form.codes;
    const bool may_be = !name.tensor->name.ends_with(".bias") || name.tensor->shape.size() > 2;
    return (may_be && is_known_buffer(name.tensor->name)) || name.tensor->name.starts_with("rope_f") ||
           (name.tensor->form.kind == FormKind::plain &&
            (type == ElementType::I64 || type == ElementType::I32 || type == ElementType::BOOL));
  }

  TensorSpec spec_of(const CutName& name) const {
    TensorSpec spec;
    spec.name = name.joined(0, name.parts.size());
    spec.shape = name.tensor->shape;
    spec.elements = 1;
    for (const std::uint64_t size : spec.shape) spec.elements = spec.elements * sizes_.of(size);
    const bool stack = is_stack(name) || is_stack_of_vectors(name);
    DerivedRole derived =
        derive_role(spec.name, spec.shape.size(), name.layer.has_value(), name.expert || stack, gguf_);
    if (is_table_of_tokens(name, derived)) {
      const bool head =
          spec.name.find("out") != std::string::npos || spec.name.find("head") != std::string::npos;
      derived.role = head ? Role::output_head : Role::token_embedding;
      derived.part = head ? Part::output : Part::embedding;
    }
    spec.role = derived.role, spec.part = derived.part, spec.bias = derived.bias;
    spec.quantizable = derived.linear || is_stack(name);
    const StoredForm& form = name.tensor->form;
    spec.input_major = form.kind == FormKind::fp4 && form.transposed;  // gpt-oss's blocks
    if (is_buffer(name)) spec.storage = Storage::buffer;
    if (stack) spec.stacked = spec.shape[0], spec.stacked_active = active_of(spec.shape[0]);
    return spec;
  }

  // Whatever it is called: outside all layers as many rows as the config has tokens.
  bool is_table_of_tokens(const CutName& name, const DerivedRole& derived) const {
    const auto& shape = name.tensor->shape;
    return !name.layer && derived.role == Role::other && !is_tower(derived.part) && shape.size() == 2 &&
           told_vocabulary_ && *told_vocabulary_ > 1 && shape[0] == *told_vocabulary_;
  }

  static bool is_tower(Part part) {
    return part == Part::vision || part == Part::audio || part == Part::projector;
  }
  bool is_of_tower(const CutName& name) const {
    const std::size_t dimensions = name.tensor->shape.size();
    return is_tower(
        derive_role(name.joined(0, name.parts.size()), dimensions, name.layer.has_value(), true, gguf_).part);
  }
  void place(Module module, Part part, bool predicts) {
    (predicts ? tree_.mtp : is_tower(part) ? tree_.towers : tree_.modules).push_back(std::move(module));
  }

  // Tables before the layers; norms, heads and whatever else behind them.
  void add_outside(bool behind) {
    for (const CutName& name : names_) {
      if (name.layer) continue;
      TensorSpec spec = spec_of(name);
      if ((spec.part != Part::embedding) != behind) continue;
      const bool ahead = predicts(spec.name);
      if (!ahead && spec.role == Role::token_embedding && spec.shape.size() == 2)
        tree_.vocabulary = spec.shape[0];
      if (!ahead && spec.role == Role::output_head && !spec.bias) has_head_ = true;
      const Part part = spec.part;
      Module module{"", std::string(title(part)), {}, {std::move(spec)}, {}};
      place(std::move(module), part, ahead);
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
    std::map<std::string, std::map<std::uint64_t, Layer>> stacks;  // by their path
    for (const CutName& name : names_) {
      if (!name.layer) continue;
      Layer& layer = stacks[name.joined(0, *name.layer + 1)][name.number(*name.layer)];
      layer.tensors.push_back(&name);
    }
    for (auto& [path, layers] : stacks) {
      for (auto& [index, layer] : layers) sign(layer);
    }
    for (const auto& [path, layers] : stacks) add_stack(path, layers);
  }

  void add_stack(const std::string& path, const std::map<std::uint64_t, Layer>& layers) {
    std::map<std::string, std::vector<std::uint64_t>> alike;
    std::vector<std::string> order;
    for (const auto& [index, layer] : layers) {
      auto& indices = alike[layer.signature];
      if (indices.empty()) order.push_back(layer.signature);
      indices.push_back(index);
    }
    for (const std::string& signature : order) {
      const std::vector<std::uint64_t>& indices = alike[signature];
      Module group{path, "layers", {}, {}, {}};
      group.repeat = {Repeat::Over::layers, indices, Quantity(indices.size()), indices.size()};
      const Layer& first = layers.at(indices.front());
      const bool ahead = std::any_of(first.tensors.begin(), first.tensors.end(),
                                     [](const CutName* name) { return predicts(name->tensor->name); });
      Part part = Part::vision;  // of all; of a layer of text that sees, too, the text's
      fill_layer(group, first, part);
      if (!is_tower(part) && !ahead) tree_.layers = std::max(tree_.layers, indices.back() + 1);
      place(std::move(group), part, ahead);
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
      if (is_tower(part)) part = spec.part;
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
                        active_of(indices.size())};
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

  // A count that may differ from layer to layer.
  std::optional<std::uint64_t> count_of_layer(const char* key, std::uint64_t layer) const {
    const auto at = config_.text().find(key);
    if (at == config_.text().end() || !at->is_array()) return count_in(config_, {key});
    return layer < at->size() && (*at)[layer].is_number_unsigned()
               ? std::optional((*at)[layer].get<std::uint64_t>())
               : std::nullopt;
  }

  // A module with a decay has a state, whatever it calls its matrices (Kimi's delta attention: q_proj, k_proj, v_proj).
  static bool has_state(const Module& group, const Module& child) {
    const std::string decay = "." + child.path + ".A_log";
    return std::any_of(group.tensors.begin(), group.tensors.end(),
                       [&](const TensorSpec& spec) { return spec.name.ends_with(decay); });
  }

  // The matrix of a role in a layer, beside states; nullptr: none.
  static const TensorSpec* matrix(const Module& group, Role role) {
    const auto among = [&](const std::vector<TensorSpec>& specs) -> const TensorSpec* {
      for (const TensorSpec& spec : specs)
        if (spec.role == role && !spec.bias && spec.shape.size() == 2) return &spec;
      return nullptr;
    };
    const TensorSpec* found = among(group.tensors);
    for (const Module& child : group.children)
      if (found == nullptr && !has_state(group, child)) found = among(child.tensors);
    return found;
  }

  // Queries and keys that go into a state and not into a cache: llama.cpp names the state's tensors ssm_*, and what a
  // mixer reads beside attention ssm_in.
  static bool is_recurrent(const Module& group) {
    const auto holds = [&](std::string_view word) {
      return std::any_of(group.tensors.begin(), group.tensors.end(),
                         [&](const TensorSpec& spec) { return spec.name.find(word) != std::string::npos; });
    };
    return holds(".ssm_") && !holds(".ssm_in.");
  }

  // What a layer keeps of a token, where keys of the config and rows of its matrices agree.
  std::optional<AttentionGeometry> geometry(const Module& group) const {
    const std::uint64_t layer = group.repeat.indices.front();
    auto heads = count_of_layer("num_attention_heads", layer);
    if (!heads) heads = count_in(config_, {"n_head"});
    if (!heads || *heads == 0 || is_recurrent(group)) return std::nullopt;
    const std::uint64_t kv_heads = count_of_layer("num_key_value_heads", layer).value_or(*heads);
    AttentionGeometry g;
    g.layers = group.repeat.indices;
    g.heads = *heads, g.kv_heads = kv_heads;
    const auto latent = count_in(config_, {"kv_lora_rank"}), rope = count_in(config_, {"qk_rope_head_dim"});
    const TensorSpec *down = matrix(group, Role::kv_a), *k = matrix(group, Role::k),
                     *v = matrix(group, Role::v), *all = matrix(group, Role::qkv);
    const auto width_of = [](const TensorSpec* spec, std::uint64_t count) {
      return spec != nullptr && count > 0 && spec->shape[0] % count == 0 ? spec->shape[0] / count : 0;
    };
    if (down != nullptr && latent && rope && down->shape[0] == *latent + *rope) {
      g.kind = AttentionGeometry::Kind::latent;
      g.kv_heads = *heads;
      g.kv_lora_rank = *latent, g.rope_head_dim = *rope;
      g.qk_head_dim = count_in(config_, {"qk_nope_head_dim"}).value_or(0) + *rope;
      g.v_head_dim = count_in(config_, {"v_head_dim"}).value_or(0);
      return g;
    }
    if (const std::uint64_t width = width_of(k, kv_heads); width > 0) {
      g.qk_head_dim = width;
      g.v_head_dim = v != nullptr ? width_of(v, kv_heads) : width;
    } else if (kv_heads > 0) {
      const std::uint64_t each = width_of(all, *heads + 2 * kv_heads);
      const bool fits = each == count_of_layer("head_dim", layer).value_or(each);
      g.qk_head_dim = g.v_head_dim = fits ? each : 0;
    }
    return g.qk_head_dim > 0 && g.v_head_dim > 0 ? std::optional(g) : std::nullopt;
  }

  void note_attention() {
    std::uint64_t told = 0;
    for (const Module& group : tree_.modules) {
      if (group.repeat.over != Repeat::Over::layers) continue;
      auto found = geometry(group);
      if (!found) continue;
      told += found->layers.size();
      tree_.attention.push_back(std::move(*found));
    }
    if (told > 0)
      tree_.not_counted.push_back(
          {"windows and caches that layers share: the KV cache is that of each layer which has "
           "keys and values, over the whole context",
           std::nullopt});
    if (told < tree_.layers)
      tree_.not_counted.push_back(
          {fmt::format("what {} of {} layers keep of a text: no key and no name says it", tree_.layers - told,
                       tree_.layers),
           std::nullopt});
  }

  std::vector<CutName> names_;
  const ModelConfig& config_;
  const bool gguf_;
  NamedSizes sizes_;
  const std::optional<ToldCount> told_experts_;
  const std::optional<std::uint64_t> told_vocabulary_;
  ModuleTree tree_;
  bool has_head_ = false;
};

}  // namespace

ModelConfig absent_config(const Checkpoint& checkpoint) {
  return ModelConfig::from_json(ParsedJson{{"model_type", "unknown"}}, checkpoint.root);
}

bool names_no_architecture(const Checkpoint& checkpoint) {
  if (checkpoint.config.empty()) return false;
  const ParsedJson document = read_config_json(checkpoint.config);
  const auto names_one = [](const ParsedJson& object) {
    return object.contains("architectures") || object.contains("model_type");
  };
  if (!document.is_object() || names_one(document)) return false;
  const auto nests = language_model_nests(document);
  return std::none_of(nests.begin(), nests.end(), [&](const ParsedJson* nest) { return names_one(*nest); });
}

ModelConfig nameless_config(const Checkpoint& checkpoint) {
  ParsedJson document = read_config_json(checkpoint.config);
  const auto of_diffusers = document.find("_class_name");
  const bool named = of_diffusers != document.end() && of_diffusers->is_string();
  document["model_type"] = named ? *of_diffusers : ParsedJson("unknown");
  return ModelConfig::from_json(std::move(document), checkpoint.config);
}

ModuleTree derive_tree(const Checkpoint& checkpoint, const ModelConfig& config) {
  const StoredTensors stored = find_stored(checkpoint, config.quantization());
  return Deriver(stored, config, checkpoint.gguf.has_value()).run();
}

}  // namespace assay
