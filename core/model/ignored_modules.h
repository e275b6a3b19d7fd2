// The modules that a conversion leaves unquantized, in the words of those who load the result: a checkpoint's
// names are not always those of the modules that engines make of it (a vision tower moves below `model.`,
// `block_sparse_moe.gate` becomes `mlp.router`), and a module that is listed under a name of the checkpoint
// alone is loaded as quantized, without its codes.
#pragma once

#include <string>
#include <vector>

#include "core/model/stored_form.h"

namespace assay {

struct IgnoredModules {
  std::vector<std::string> names;  // as the checkpoint has them, sorted
  std::vector<std::string>
      towers;             // parts of names that stand above whole encoders left alone: "vision_tower"
  bool has_head = false;  // lm_head has a tensor of its own

  std::vector<std::string> for_compressed_tensors() const;  // with patterns, "re:.*vision_tower\\..*"
  std::vector<std::string> for_modelopt() const;            // with wildcards, "*vision_tower*"
  std::vector<std::string> for_fp8() const;  // with the towers where transformers has them, "model.visual"

  std::vector<std::string> quantized;  // modules that no pattern may speak of, sorted

  // One after the other, then finish(): listed are 2-D weights that stay plain, but for tables that are looked
  // up, and stacked experts.
  void add(const LogicalTensor& tensor, bool becomes_plain);
  void finish();
};

}  // namespace assay
