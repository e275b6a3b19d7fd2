// What a tensor does, by its name alone: for architectures nobody has described.
#pragma once

#include <string_view>

#include "core/model/module_tree.h"

namespace assay {

struct DerivedRole {
  Role role = Role::other;
  Part part = Part::dense_mlp;
  bool bias = false;
  bool linear = false;  // a matrix that quantized releases would quantize
};
// `name` as the tree has it, with its placeholders; `dimensions`: of its shape; `gguf`: llama.cpp named it.
DerivedRole derive_role(std::string_view name, std::size_t dimensions, bool in_layer, bool of_expert,
                        bool gguf = false);

}  // namespace assay
