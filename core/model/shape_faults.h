// Tensors of another shape than their model gives them: a finding for each kind (k_proj), in however many layers, for a wrong
// number in a config is met in all of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

class ShapeFaults {
 public:
  using Shape = std::vector<std::uint64_t>;
  // `who` asks for other shapes: "the config".
  explicit ShapeFaults(std::string who) : who_(std::move(who)) {}

  // `kind`: the name without the layer's number.
  void take(const CheckpointTensor& tensor, const Shape& asked, const TensorSpec& spec,
            const std::string& kind, std::optional<std::uint64_t> layer);
  Findings findings(const Checkpoint& checkpoint) const;  // model.tensor_shape

 private:
  struct Fault {
    const CheckpointTensor* first;
    Shape asked;
    std::string symbols;  // what `asked` is made of; empty where it is laid out otherwise
    std::set<std::uint64_t> layers;
  };
  const std::string who_;
  std::vector<Fault> faults_;  // in the order of the file
  std::map<std::tuple<std::string, ElementType, Shape, Shape>, std::size_t> kinds_;
};

}  // namespace assay
