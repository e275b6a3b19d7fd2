// Under which name an engine holds a stored tensor, and as which of its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/held_tensors.h"
#include "core/model/module_tree.h"

namespace assay {

struct HeldName {
  std::string name;
  std::uint64_t expert = 0;  // the parts of a tensor are in order of experts, …
  std::uint64_t part = 0;    // … and of these
  bool stacked = false;      // one of the experts that the tensor holds along dimension 0
};
// `stored`: "model.layers.0.self_attn.q_proj.weight_scale_inv"; `spec`: of the weight it belongs to, in `tree`.
HeldName held_name(std::string_view stored, const TensorSpec& spec, std::uint64_t expert,
                   const ModuleTree& tree, HeldNames names);

// The families whose tensors both engines hold under the names above.
bool are_names_known(std::string_view family);

}  // namespace assay
