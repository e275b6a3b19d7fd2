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
#include "core/model/quantity.h"
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
  // A tensor that is as its model has it: whatever number it is made of is right.
  void take_right(const TensorSpec& spec);
  // model.tensor_shape: one where another value of one number would make all kinds what they are, else one for each.
  Findings findings(const Checkpoint& checkpoint) const;

 private:
  struct Fault {
    const CheckpointTensor* first;
    Quantity elements;
    Shape asked;
    std::string symbols;  // what `asked` is made of; empty where it is laid out otherwise
    std::set<std::uint64_t> layers;
  };
  // "num_key_value_heads", and the value that it would have to have.
  struct Cause {
    Quantity number;
    std::uint64_t wanted;
  };
  std::optional<Cause> cause() const;
  std::optional<std::uint64_t> value_for_all(const std::string& number) const;
  Finding told(const Fault& fault, const Checkpoint& checkpoint, const std::string& why) const;

  const std::string who_;
  std::set<std::string> right_;  // numbers that some tensor bears out
  std::uint64_t tensors_ = 0;
  std::vector<Fault> faults_;  // in the order of the file
  std::map<std::tuple<std::string, ElementType, Shape, Shape>, std::size_t> kinds_;
};

}  // namespace assay
