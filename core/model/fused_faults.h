// Tensors that hold several of the config's in one, or parts of one: "qkv_proj" where q_proj, k_proj and v_proj are
// looked for (saved out of an engine), the experts of a layer in one stack. One cause, and not a fault for each tensor.
//
// What tells it, whatever the names: of one module the tensors that nobody knows have as many elements as those that are
// missing, and are another number of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/system/finding.h"

namespace assay {

class FusedFaults {
 public:
  // A stored tensor that the config has not.
  void take_unknown(std::string_view name, std::uint64_t elements);
  // One of the config that is not stored, after all of those; false where none of them may hold it.
  bool take_missing(std::string_view name, std::uint64_t elements);

  bool explain(std::string_view name) const;  // either kind
  std::optional<Finding> finding() const;     // model.tensors_fused

 private:
  struct Side {
    std::uint64_t tensors = 0, elements = 0;
    std::string first;
  };
  struct Holder {
    Side stored, missing;
    bool agrees() const { return stored.elements == missing.elements && stored.tensors != missing.tensors; }
  };
  std::map<std::string, Holder, std::less<>> holders_;  // by module, weights and biases apart
};

}  // namespace assay
