// Tensors of another shape than the config makes them: a finding for each kind (k_proj of all layers), for a wrong number in a
// config is met in every layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

class ShapeFaults {
 public:
  void take(const CheckpointTensor& tensor, const TensorSpec& spec, const std::string& file);
  std::uint64_t tensors() const { return tensors_; }
  Findings findings() const;  // model.tensor_shape, in the order in which kinds were met

 private:
  struct Kind {
    Finding first;
    std::uint64_t more = 0;
  };
  std::map<std::pair<const TensorSpec*, std::vector<std::uint64_t>>, std::size_t> places_;
  std::vector<Kind> kinds_;
  std::uint64_t tensors_ = 0;
};

}  // namespace assay
