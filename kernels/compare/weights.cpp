#include "kernels/compare/weights.h"

#include <fmt/format.h>

#include "core/model/value_judge.h"

namespace assay {
namespace {

constexpr std::size_t kMostNamed = 5;

}  // namespace

void judge_weights(const Weights& test, const Weights& reference, const CommonOptions& common,
                   ModelComparison& result) {
  if (test.checkpoint().gguf.has_value() != reference.checkpoint().gguf.has_value()) {
    result.notes.push_back("weights of a GGUF and of safetensors are not compared by themselves");
    return;
  }
  const StoredTensors here = find_stored(test.checkpoint(), test.config().quantization());
  const StoredTensors there = find_stored(reference.checkpoint(), reference.config().quantization());
  const CheckpointReader of_test(test.checkpoint()), of_reference(reference.checkpoint());
  std::vector<ValuePair> pairs = pairs_by_name(here.tensors, there.tensors);
  compare_pairs(of_test, of_reference, pairs, common.jobs, common.progress);
  const ValueJudge judge(pairs);
  std::size_t faults = 0;
  for (const ValuePair& pair : pairs) {
    const std::vector<PartError> parts = judge.parts_off(pair);
    if (parts.empty() || ++faults > kMostNamed) continue;
    result.reasons.push_back(fmt::format("{}: {}", pair.here->name, describe_parts(pair, parts)));
  }
  if (faults > kMostNamed) result.reasons.push_back(fmt::format("and {} tensors more", faults - kMostNamed));
  if (faults > 0) result.status = CaseStatus::failed;
}

}  // namespace assay
