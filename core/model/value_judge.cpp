#include "core/model/value_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/threads.h"

namespace assay {
namespace {

constexpr double kLeastCosine = 0.9;
constexpr std::size_t kPartsNamed = 3;

std::string forms(const ValuePair& pair) {
  return form_name(*pair.there) + " to " + form_name(*pair.here);
}

std::size_t count_rows(std::span<const PartError> faults) {
  return static_cast<std::size_t>(
      std::count_if(faults.begin(), faults.end(), [](const PartError& part) { return part.is_row; }));
}

}  // namespace

std::vector<ValuePair> pairs_by_name(std::span<const LogicalTensor> here,
                                     std::span<const LogicalTensor> there) {
  std::map<std::string_view, const LogicalTensor*> by_name;
  for (const LogicalTensor& tensor : there) by_name.emplace(tensor.name, &tensor);
  std::vector<ValuePair> pairs;
  for (const LogicalTensor& tensor : here) {
    const auto other = by_name.find(tensor.name);
    if (other == by_name.end() || tensor.shape != other->second->shape) continue;
    if (is_decodable(tensor) && is_decodable(*other->second)) pairs.push_back({&tensor, other->second});
  }
  return pairs;
}

void compare_pairs(const CheckpointReader& here, const CheckpointReader& there, std::span<ValuePair> pairs,
                   int jobs, ProgressMode progress_mode) {
  std::uint64_t elements = 0;
  for (const ValuePair& pair : pairs) elements += pair.here->elements();
  Progress progress(progress_mode, "comparing values", elements);
  parallel_for(jobs, pairs.size(), [&](std::size_t i) {
    if (!interrupted())
      pairs[i].values = compare_by_parts(here, *pairs[i].here, there, *pairs[i].there, progress);
  });
}

// Over the tensors that have any error; none where most have none: then nothing was rounded.
ValueJudge::ValueJudge(std::span<const ValuePair> pairs) {
  std::map<std::string, std::vector<double>> all;
  std::map<std::string, std::size_t> count;
  for (const ValuePair& pair : pairs) {
    ++count[forms(pair)];
    if (pair.values.whole.error > 0) all[forms(pair)].push_back(pair.values.whole.relative());
  }
  for (auto& [form, errors] : all) {
    if (errors.size() < kEnoughForAMedian || 2 * errors.size() < count[form]) continue;
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    usual_[form] = *middle;
  }
}

std::optional<double> ValueJudge::usual(const ValuePair& pair) const {
  const auto found = usual_.find(forms(pair));
  return found == usual_.end() ? std::nullopt : std::optional(found->second);
}

bool ValueJudge::whole_is_off(const ValuePair& pair) const {
  const ValueError& error = pair.values.whole;
  if (error.error == 0) return false;
  if (!(error.cosine() >= kLeastCosine)) return true;
  if (const auto median = usual(pair)) return error.relative() > kTimesTheMedian * *median;
  // Of one form on both sides, and nothing was quantized anew: then codes and scales are the same.
  return form_name(*pair.here) == form_name(*pair.there);
}

std::vector<PartError> ValueJudge::parts_off(const ValuePair& pair) const {
  return pair.values.faults(usual(pair));
}

bool is_local(const ValuePair& pair, std::span<const PartError> faults) {
  const std::size_t rows = count_rows(faults), tiles = faults.size() - rows;
  return (tiles > 0 && 4 * tiles < pair.values.tiles.parts) ||
         (rows > 0 && 4 * rows < pair.values.rows.parts);
}

std::string describe_parts(const ValuePair& pair, std::span<const PartError> faults) {
  // Where a row is off, so may be its tiles, or the other way round: the fewer say more.
  const std::size_t rows = count_rows(faults), tiles = faults.size() - rows;
  const bool tell_rows = tiles == 0 || (rows > 0 && rows <= tiles);
  const std::size_t told = tell_rows ? rows : tiles;
  std::string message = fmt::format("{}{} of its {} {} {} off beyond what rounding explains",
                                    faults.size() < ValueComparison::kMostSuspects ? "" : "at least ", told,
                                    tell_rows ? pair.values.rows.parts : pair.values.tiles.parts,
                                    tell_rows ? "rows" : "tiles", told == 1 ? "is" : "are");
  std::size_t named = 0;
  for (const PartError& part : faults) {
    if (part.is_row != tell_rows || named == kPartsNamed) continue;
    message += (named++ == 0 ? ": " : "; ") + describe(part);
  }
  return message;
}

}  // namespace assay
