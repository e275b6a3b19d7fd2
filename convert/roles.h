// Which matrices of an unquantized checkpoint quantized releases do quantize.
#pragma once

#include <memory>
#include <string>

#include "core/model/module_tree.h"
#include "core/model/stored_form.h"

namespace assay {

// Of config.json; nullptr: there is none, or it describes no architecture known here.
std::unique_ptr<ModuleTree> tree_of(const Checkpoint& checkpoint);

class Roles {
 public:
  // From the module tree where config.json describes a known architecture. Otherwise, and for what the tree
  // does not name, by names: 2-D weights of numbered layers that are linear beyond doubt. Matrices that are
  // no model's (no config, no layers) are what they are called.
  explicit Roles(const Checkpoint& checkpoint);
  bool quantizable(const LogicalTensor& tensor) const;
  std::string source() const;  // "the module tree of deepseek_v3", "names and shapes"

 private:
  std::unique_ptr<ModuleTree> tree_;
  std::unique_ptr<TensorLookup> lookup_;
  bool no_model_ = false;  // no config, no layers
};

}  // namespace assay
