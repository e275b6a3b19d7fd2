// Whole layers that the config has and the files have not, or the other way round: one finding, not one a tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/formats/checkpoint.h"
#include "core/model/reconcile_prediction.h"
#include "core/system/finding.h"

namespace assay {

class LayerFaults {
 public:
  // Who says how many layers there are, and under which key.
  struct Claim {
    std::uint64_t layers = 0;
    std::string who = "the config", key = "num_hidden_layers";
    PredictionClaim prediction = {};
  };
  LayerFaults(Claim claim, std::function<bool(const std::string& name)> is_known)
      : claim_(std::move(claim)), is_known_(std::move(is_known)) {}

  // Notes a tensor that would be known were it of a layer the config has: of layer 7 where it says 4; or that only a
  // layer for prediction has.
  bool take_beyond(std::string_view name);
  // Likewise of a tensor of a kind that no layer of the config has, once another of its layer was noted: the only layer
  // with attention of a hybrid.
  bool take_beside(std::string_view name);
  // Notes a layer that lies where the config promises one for prediction, and has nothing that only such a layer has: the
  // config counts too few, and those for prediction come behind.
  void take_promised(std::uint64_t layer, std::uint64_t tensors);
  bool is_prediction_behind() const { return !promised_.empty() && !predicting_.empty(); }
  // Notes a tensor of a layer of which no file holds anything.
  void take_absent(std::uint64_t layer) { absent_.insert(layer), ++absent_tensors_; }

  Findings findings() const;  // model.layers_more, model.mtp_undeclared, model.layers_missing

 private:
  const Claim claim_;
  const std::function<bool(const std::string&)> is_known_;
  std::map<std::uint64_t, std::uint64_t> beyond_;  // tensors of each layer
  std::set<std::string, std::less<>> stacks_;      // what stands before the number of those
  std::set<std::uint64_t> predicting_, promised_, absent_;
  std::uint64_t absent_tensors_ = 0;
};

// "4", "4 to 7", "4, 6 to 9".
std::string ranges(const std::set<std::uint64_t>& numbers);

// Of a config that nothing can be described by: which says that there are no layers, where weights are (model.layers_more), or
// tells of each layer what it is, of fewer than it has (model.layers_unlisted).
std::optional<Finding> find_contradicted_layers(const Checkpoint& checkpoint);

}  // namespace assay
