// Two checkpoints' weights, pair by pair: what rounding into another format explains, and what it does not.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/value_error.h"

namespace assay {

struct ValuePair {
  const LogicalTensor* here = nullptr;
  const LogicalTensor* there = nullptr;
  ValueComparison values = {};
};
// Of one name and shape in both, and decodable in both.
std::vector<ValuePair> pairs_by_name(std::span<const LogicalTensor> here,
                                     std::span<const LogicalTensor> there);
void compare_pairs(const CheckpointReader& here, const CheckpointReader& there, std::span<ValuePair> pairs,
                   int jobs, ProgressMode progress);

// The yardstick is what the tensors of the same pair of formats have in common: the median of their errors.
class ValueJudge {
 public:
  explicit ValueJudge(std::span<const ValuePair> pairs);

  // The tensor as a whole: an error three times the median, a cosine that no rounding brings about (0.9), or
  // any difference where nothing was quantized anew.
  bool whole_is_off(const ValuePair& pair) const;
  // Tiles and rows, each by those beside it.
  std::vector<PartError> parts_off(const ValuePair& pair) const;

 private:
  std::optional<double> usual(const ValuePair& pair) const;
  std::map<std::string, double> usual_;  // by the formats of both sides
};

// "2 of its 896 tiles are off beyond what rounding explains: rows 0-127, columns 0-127: …"
std::string describe_parts(const ValuePair& pair, std::span<const PartError> faults);
// Whether the parts are so few that they say what is wrong better than the matrix as a whole does.
bool is_local(const ValuePair& pair, std::span<const PartError> faults);

}  // namespace assay
