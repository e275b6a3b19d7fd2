#include "core/model/expert_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/blocks.h"
#include "core/model/stored_names.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kLayerIndex = "{layer}.", kOneExpert = ".experts.{expert}.";
constexpr std::string_view kExperts = ".experts.", kStack = ".experts.gate_up_proj";
constexpr std::string_view kRouter = ".router.weight";

// What stands before "{layer}." of a template; empty where it names no layer.
std::string_view before_layer(std::string_view name_template) {
  const auto at = name_template.find(kLayerIndex);
  return at == std::string_view::npos ? std::string_view{} : name_template.substr(0, at);
}

TensorSpec stack_of(const Module& experts, const TensorSpec& one, std::string name, const Quantity& members) {
  const Quantity& count = experts.repeat.count;
  TensorSpec stack = one;
  stack.name = std::move(name);
  stack.shape = {count.value(), members.value() * one.shape[0], one.shape[1]};
  stack.elements = count * (members * one.elements);
  stack.stacked = count.value();
  stack.stacked_active = experts.repeat.active;
  if (stack.parallel.partition != Partition::replicated) ++stack.parallel.dimension;
  return stack;
}

const TensorSpec* find_matrix(const Module& module, Role role, bool bias = false) {
  for (const TensorSpec& spec : module.tensors) {
    if (spec.part == Part::routed_expert && spec.role == role && spec.bias == bias) return &spec;
  }
  return nullptr;
}

// Gate and up without biases, of one shape: what transformers 5 stacks.
bool can_be_stacked(const Module& module) {
  const TensorSpec *gate = find_matrix(module, Role::mlp_gate), *up = find_matrix(module, Role::mlp_up),
                   *down = find_matrix(module, Role::mlp_down);
  return module.repeat.over == Repeat::Over::experts && module.tensors.size() == 3 && gate != nullptr &&
         up != nullptr && down != nullptr && gate->shape == up->shape && gate->shape.size() == 2 &&
         gate->name.find(kOneExpert) != std::string::npos;
}

bool is_stack(const Module& module) {
  const TensorSpec *both = find_matrix(module, Role::mlp_gate_up),
                   *down = find_matrix(module, Role::mlp_down);
  return both != nullptr && down != nullptr && both->stacked != 0 && both->name.ends_with(kStack);
}

// [experts, in, out] becomes [experts, out, in], or the other way about.
void turn(TensorSpec& stack) {
  std::swap(stack.shape[1], stack.shape[2]);
  stack.input_major = !stack.input_major;
  if (stack.parallel.partition != Partition::replicated)
    stack.parallel.dimension = 3 - stack.parallel.dimension;
}

void stack(Module& module, const std::string& mixture) {
  const TensorSpec& gate = *find_matrix(module, Role::mlp_gate);
  const TensorSpec& up = *find_matrix(module, Role::mlp_up);
  TensorSpec both = stack_of(module, gate, mixture + std::string(kStack), 2);
  both.role = Role::mlp_gate_up;
  both.parallel.members.insert(both.parallel.members.end(), up.parallel.members.begin(),
                               up.parallel.members.end());
  TensorSpec down = stack_of(module, *find_matrix(module, Role::mlp_down), mixture + ".experts.down_proj", 1);
  module.path = "experts";
  module.repeat = {};
  module.tensors = {std::move(both), std::move(down)};
}

// The factors of a stack's size where it remembers them: experts × width × hidden, or where outputs come first
// experts × hidden × width.
struct StackSizes {
  Quantity experts, width, hidden;
};
StackSizes sizes_of(const TensorSpec& down) {
  const auto& parts = down.elements.parts();
  StackSizes sizes = {down.shape[0], down.shape[1], down.shape[2]};
  if (down.elements.kind() == Quantity::Kind::product && parts.size() == 3)
    sizes = {parts[0], parts[1], parts[2]};
  if (!down.input_major) std::swap(sizes.width, sizes.hidden);
  return sizes;
}

void take_apart(Module& module) {
  const TensorSpec& both = *find_matrix(module, Role::mlp_gate_up);
  const StackSizes sizes = sizes_of(*find_matrix(module, Role::mlp_down));
  blocks::GatedMlp one{sizes.hidden, sizes.width};
  one.bias = find_matrix(module, Role::mlp_gate_up, true) != nullptr;
  Module apart = blocks::routed_experts(one, sizes.experts, both.stacked_active, "experts.{expert}");
  const std::string mixture = both.name.substr(0, both.name.size() - kStack.size());
  for (TensorSpec& spec : apart.tensors) spec.name = mixture + std::string(kOneExpert) + spec.name;
  module = std::move(apart);
}

void take_all_apart(Module& module) {
  if (is_stack(module)) take_apart(module);
  for (Module& child : module.children) take_all_apart(child);
}

// "….experts.3.…", not "….experts.gate_up_proj".
bool names_one_expert(std::string_view rest) {
  const auto at = rest.find(kExperts);
  if (at == std::string_view::npos || at + kExperts.size() >= rest.size()) return false;
  const char next = rest[at + kExperts.size()];
  return next >= '0' && next <= '9';
}

}  // namespace

std::optional<LayerName> layer_name(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const auto at = name.find(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = name.substr(at + kLayers.size());
  const auto dot = behind.find('.');
  const auto layer = dot == std::string_view::npos ? std::nullopt : parse_u64(behind.substr(0, dot));
  if (!layer) return std::nullopt;
  return LayerName{name.substr(0, at + kLayers.size()), behind.substr(dot + 1), *layer};
}

void ExpertLayout::see(std::string_view stored_name, const std::vector<std::uint64_t>& shape) {
  const bool of_use = stored_name.find(kExperts) != std::string_view::npos ||
                      stored_name.ends_with(kRouter);  // most names are not
  const auto name = of_use ? layer_name(stored_name) : std::nullopt;
  if (!name) return;
  if (name->rest.ends_with(kRouter)) {
    routers_.emplace(name->rest.substr(0, name->rest.size() - std::string_view(".weight").size()));
    return;
  }
  const bool one = names_one_expert(name->rest);
  const auto at = name->rest.find(one ? kExperts : kStack);
  if (at == std::string_view::npos) return;
  auto& kind = one ? apart_ : stacked_;
  auto seen = kind.find(name->before);
  if (seen == kind.end()) seen = kind.emplace(std::string(name->before), Seen{}).first;
  seen->second.layers.insert(name->layer);
  if (seen->second.path.empty()) seen->second.path = name->rest.substr(0, at), seen->second.shape = shape;
}

// Module by module: a layer's mixture changes where the names of its layers say so.
class LayoutChange {
 public:
  LayoutChange(const ExpertLayout& layout, const ModuleTree& tree)
      : layout_(layout), aliases_(tree.aliases) {}

  void visit(Module& module, std::span<const std::uint64_t> layers) {
    if (module.repeat.over == Repeat::Over::layers) layers = module.repeat.indices;
    for (Module& child : module.children) {
      if (can_be_stacked(child)) {
        const std::string first = child.tensors.front().name;
        if (const auto* seen = find(layout_.stacked_, first, layers)) {
          const std::string before = std::string(before_layer(first)) + std::string(kLayerIndex);
          rename(module, first.substr(0, first.find(kOneExpert)), before + seen->path);
          stack(child, before + seen->path);
          continue;
        }
      } else if (is_stack(child) && find(layout_.apart_, child.tensors.front().name, layers) != nullptr) {
        take_apart(child);
        continue;
      } else if (lies_turned(child, layers)) {
        for (TensorSpec& spec : child.tensors) turn(spec);
        continue;
      }
      visit(child, layers);
    }
  }

 private:
  using Kind = std::map<std::string, ExpertLayout::Seen, std::less<>>;

  const ExpertLayout::Seen* find(const Kind& kind, std::string_view name_template,
                                 std::span<const std::uint64_t> layers) const {
    const std::string before(before_layer(name_template));
    const auto seen_under = [&](const std::string& prefix) -> const ExpertLayout::Seen* {
      const auto at = kind.find(prefix);
      const bool here = at != kind.end() &&
                        std::any_of(layers.begin(), layers.end(),
                                    [&](std::uint64_t layer) { return at->second.layers.contains(layer); });
      return here ? &at->second : nullptr;
    };
    if (const auto* seen = seen_under(before)) return seen;
    for (const PrefixAlias& alias : aliases_) {
      if (!before.starts_with(alias.canonical)) continue;
      if (const auto* seen = seen_under(alias.alternative + before.substr(alias.canonical.size())))
        return seen;
    }
    return nullptr;
  }

  bool lies_turned(const Module& stacks, std::span<const std::uint64_t> layers) const {
    if (!is_stack(stacks) || !stacks.tensors.front().either_way) return false;
    TensorSpec both = stacks.tensors.front();
    const auto* seen = find(layout_.stacked_, both.name, layers);
    if (seen == nullptr || seen->shape == both.shape) return false;
    turn(both);
    return seen->shape == both.shape;
  }

  // transformers 5 has one name for mixtures: Mixtral's block_sparse_moe is its mlp, Phi-3.5-MoE's gate its
  // router.
  void rename(Module& mixture, const std::string& from, const std::string& to) const {
    for (TensorSpec& spec : mixture.tensors) rename(spec, from, to);
    for (Module& child : mixture.children) rename(child, from, to);
  }
  void rename(TensorSpec& spec, const std::string& from, const std::string& to) const {
    if (spec.name.starts_with(from + '.')) spec.name.replace(0, from.size(), to);
    const std::string path = to.substr(to.find(kLayerIndex) + kLayerIndex.size());
    if (spec.role == Role::router && spec.name == to + ".gate.weight" &&
        layout_.routers_.contains(path + ".router"))
      spec.name = to + std::string(kRouter);
  }

  const ExpertLayout& layout_;
  const std::vector<PrefixAlias>& aliases_;
};

ModuleTree ExpertLayout::applied_to(ModuleTree tree) const {
  if (stacked_.empty() && apart_.empty()) return tree;
  LayoutChange change(*this, tree);
  for (auto* part : {&tree.modules, &tree.mtp}) {
    for (Module& module : *part) change.visit(module, {});
  }
  return tree;
}

ModuleTree in_layout_of(ModuleTree tree, const Checkpoint& checkpoint) {
  if (tree.experts == 0 || checkpoint.container == Checkpoint::Container::gguf) return tree;
  ExpertLayout layout;
  for (const CheckpointTensor& tensor : checkpoint.tensors) layout.see(tensor.name, tensor.shape);
  return layout.applied_to(std::move(tree));
}

std::optional<Finding> stacked_unlike_releases(const ModuleTree& published, const ModuleTree& here) {
  const auto stacks_of = [](const ModuleTree& tree) {
    std::uint64_t stacks = 0;
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
      if (spec.part == Part::routed_expert && spec.stacked != 0) stacks += where.copies;
    });
    return stacks;
  };
  const std::uint64_t more = stacks_of(here), released = stacks_of(published);
  if (more <= released) return std::nullopt;
  return Finding{
      Severity::warning,
      "model.experts_stacked",
      fmt::format("the experts of each layer are fused into stacks (gate_up_proj, down_proj; {} of them), as "
                  "transformers 5 computes with them, where releases of this family hold them one by one: "
                  "loaders that look for single experts, as transformers 4 does, find none of them",
                  more - released),
      {},
      {},
      {},
      "assay convert --to bf16 takes them apart"};
}

ModuleTree with_experts_apart(ModuleTree tree) {
  for (auto* part : {&tree.modules, &tree.mtp}) {
    for (Module& module : *part) take_all_apart(module);
  }
  return tree;
}

}  // namespace assay
