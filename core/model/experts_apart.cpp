// The values of stacked experts under the names and in the shapes of with_experts_apart(tree).
#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/model/composed_tensor.h"
#include "core/model/expert_layout.h"
#include "core/model/published_layout.h"

namespace assay {
namespace {

// Of one stack the matrix, or the bias, of one expert.
struct Member {
  std::string_view own;                         // "gate_proj"
  std::uint64_t first = 0, step = 1, size = 0;  // of the stack's last dimension
};

class Unstacker {
 public:
  Unstacker(StoredTensors stored, const ModuleTree& tree, const NameWanted& wanted)
      : lookup_(tree), stored_(std::make_shared<StoredTensors>(std::move(stored))) {
    for (std::uint32_t i = 0; i < stored_->tensors.size(); ++i) find_stack(i);
    for (const auto& [place, stack] : stacks_) {
      if (wants_one(stack, wanted)) chosen_[stack.mixture] = true;
    }
  }

  StoredTensors run() {
    if (chosen_.empty()) return std::move(*stored_);
    StoredTensors result;
    for (std::uint32_t i = 0; i < stored_->tensors.size(); ++i) {
      const auto stack = stacks_.find(i);
      if (stack == stacks_.end() || !chosen_.contains(stack->second.mixture))
        result.tensors.push_back(stored_->tensors[i]);
      else
        take_apart(i, stack->second, result.tensors);
    }
    result.findings = stored_->findings;
    result.any_quantized = stored_->any_quantized;
    return result;
  }

 private:
  struct Stack {
    const TensorSpec* spec;
    std::string mixture;  // "model.layers.7.mlp"
    std::vector<Member> members;
  };

  void find_stack(std::uint32_t place) {
    const LogicalTensor& tensor = stored_->tensors[place];
    const auto found = lookup_.find(tensor.name);
    if (!found || found->spec->stacked == 0 || found->spec->shape != tensor.shape) return;
    const TensorSpec& spec = *found->spec;
    const auto at = tensor.name.find(".experts.");
    const bool known = (spec.role == Role::mlp_gate_up || spec.role == Role::mlp_down) &&
                       at != std::string::npos &&
                       (spec.bias ? tensor.shape.size() == 2 : spec.input_major && tensor.shape.size() == 3);
    if (!known) return;
    stacks_[place] = {&spec, tensor.name.substr(0, at), members_of(spec)};
  }

  static std::vector<Member> members_of(const TensorSpec& spec) {
    const std::uint64_t last = spec.shape.back(), half = last / 2;
    if (spec.role == Role::mlp_down) return {{"down_proj", 0, 1, last}};
    if (spec.parallel.interleaved) return {{"gate_proj", 0, 2, half}, {"up_proj", 1, 2, half}};
    return {{"gate_proj", 0, 1, half}, {"up_proj", half, 1, half}};
  }

  static std::string name_of(const Stack& stack, std::uint64_t expert, const Member& member) {
    return fmt::format("{}.experts.{}.{}.{}", stack.mixture, expert, member.own,
                       stack.spec->bias ? "bias" : "weight");
  }

  static bool wants_one(const Stack& stack, const NameWanted& wanted) {
    for (std::uint64_t expert = 0; expert < stack.spec->stacked && !stack.spec->bias; ++expert) {
      for (const Member& member : stack.members) {
        if (wanted(name_of(stack, expert, member))) return true;
      }
    }
    return false;
  }

  void take_apart(std::uint32_t place, const Stack& stack, std::vector<LogicalTensor>& made) const {
    const std::uint64_t inputs = stack.spec->bias ? 1 : stack.spec->shape[1];
    for (std::uint64_t expert = 0; expert < stack.spec->stacked; ++expert) {
      for (const Member& member : stack.members) {
        DerivedTensor one{.name = name_of(stack, expert, member), .shape = {member.size}};
        if (!stack.spec->bias) one.shape.push_back(inputs);
        one.pieces = {
            {place, expert * inputs, inputs, !stack.spec->bias, member.size, member.first, member.step}};
        made.push_back(compose(std::move(one), stored_));
      }
    }
  }

  TensorLookup lookup_;
  std::shared_ptr<StoredTensors> stored_;
  std::map<std::uint32_t, Stack> stacks_;  // by place
  std::map<std::string, bool> chosen_;     // mixtures
};

}  // namespace

StoredTensors with_experts_apart(StoredTensors stored, const ModuleTree& tree, const NameWanted& wanted) {
  return Unstacker(std::move(stored), tree, wanted).run();
}

}  // namespace assay
