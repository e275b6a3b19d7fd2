// How a checkpoint holds the experts of a mixture: one by one, or those of a layer in one stack. The module
// tree has them as the model's publisher has; others keep the same weights the other way about:
//
//   published one by one    …mlp.experts.3.gate_proj.weight [width, hidden], .up_proj, .down_proj
//     transformers 5, saved as it computes          …mlp.experts.gate_up_proj [experts, 2 width, hidden]
//                                                   …mlp.experts.down_proj    [experts, hidden, width]
//   published in stacks     …mlp.experts.gate_up_proj [experts, hidden, 2 width], _bias    (gpt-oss, Llama 4)
//     llm-compressor, which quantizes linear layers …mlp.experts.3.gate_proj.weight [width, hidden], .bias
//     transformers 5, of Qwen3-VL's mixtures        …mlp.experts.gate_up_proj [experts, 2 width, hidden]
//
// A layout is a tree over again: other names and shapes, the same parameters.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

// "model.layers.7.mlp.experts.gate_up_proj": what stands before, in and behind the layer's number.
struct LayerName {
  std::string_view before, rest;  // "model.layers.", "mlp.experts.gate_up_proj"
  std::uint64_t layer = 0;
};
std::optional<LayerName> layer_name(std::string_view name);

// Told from the names of stored tensors, in whatever form they are stored; which way a stack lies, from its shape.
class ExpertLayout {
 public:
  void see(std::string_view stored_name, const std::vector<std::uint64_t>& shape);
  // The tree of those names: `tree` itself where experts lie as published.
  ModuleTree applied_to(ModuleTree tree) const;

 private:
  struct Seen {
    std::set<std::uint64_t> layers;
    std::string path;                  // of the mixture in its layer: "mlp"
    std::vector<std::uint64_t> shape;  // of the first stack of gates and ups
  };
  friend class LayoutChange;
  std::map<std::string, Seen, std::less<>> stacked_, apart_;  // by LayerName::before
  std::set<std::string, std::less<>> routers_;                // "mlp.router" of any layer
};

ModuleTree in_layout_of(ModuleTree tree, const Checkpoint& checkpoint);

// model.experts_stacked: `here`, in a checkpoint's layout, has experts in stacks that `published` has one by one.
std::optional<Finding> stacked_unlike_releases(const ModuleTree& published, const ModuleTree& here);

// Every stack of `tree` taken apart, as if the names had said so.
ModuleTree with_experts_apart(ModuleTree tree);

}  // namespace assay
