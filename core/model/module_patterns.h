// The modules that a quantization_config exempts, in the words of those who wrote it: names, wildcards (ModelOpt,
// "*lm_head*"), regular expressions behind "re:" (compressed-tensors, Python's re.match: from the start of the name).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/numbered_names.h"
#include "core/system/string_hash.h"

namespace assay {

class ModulePatterns {
 public:
  // Throws Error::input for an expression that cannot be compiled, or is longer than anybody writes.
  explicit ModulePatterns(const std::vector<std::string>& entries) : ModulePatterns(entries, {}) {}
  // `names`: more entries, none with wildcards.
  ModulePatterns(const std::vector<std::string>& entries, NumberedNames names);

  // `tensor`: "model.layers.0.mlp.gate.weight". A plain entry names a module and all below it, or a part of names
  // between dots. Throws Error::input when an expression takes beyond all measure.
  bool name(std::string_view tensor) const;
  std::uint64_t size() const { return names_.size() + wildcards_.size() + expressions_.size(); }

 private:
  struct Expression;
  // Who looks for a plan asks again and again for the same tensors: what was found is kept, once more have been asked for
  // than a model is weighed by.
  struct Answers {
    std::mutex mutex;
    std::uint64_t asked = 0;
    std::unordered_map<std::string, bool, StringHash, std::equal_to<>> of;
  };
  bool find(std::string_view tensor) const;

  NumberedNames names_;  // of some checkpoints thousands
  std::vector<std::string> wildcards_;
  std::vector<std::shared_ptr<const Expression>> expressions_;
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

}  // namespace assay
