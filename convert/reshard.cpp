#include "convert/reshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t bytes_of(const OutputTensor& tensor) {
  const auto elements = element_count(tensor.shape);
  const auto bytes = elements ? storage_bytes(tensor.type, *elements) : std::nullopt;
  if (!bytes) throw Error::input("its size overflows").tensor(tensor.name);
  return *bytes;
}

}  // namespace

std::string numbered_shard(std::string_view stem, std::size_t number, std::size_t count) {
  if (count == 1) return fmt::format("{}.safetensors", stem);
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem, number, count);
}

void close_gaps(ConversionPlan& plan) {
  const auto empty =
      std::erase_if(plan.shards, [](const OutputShard& shard) { return shard.tensors.empty(); });
  if (empty == 0 || plan.shards.empty()) return;
  const auto named = parse_shard_name(plan.shards.front().name);
  for (std::size_t i = 0; i < plan.shards.size(); ++i)
    plan.shards[i].name = numbered_shard(named ? named->stem : "model", i + 1, plan.shards.size());
}

void cut_into_shards(ConversionPlan& plan, std::uint64_t limit) {
  std::vector<OutputTensor> all;
  OutputShard fresh;
  for (OutputShard& shard : plan.shards) {
    std::move(shard.tensors.begin(), shard.tensors.end(), std::back_inserter(all));
    for (auto& entry : shard.metadata) {
      const bool known = std::any_of(fresh.metadata.begin(), fresh.metadata.end(),
                                     [&](const auto& there) { return there.first == entry.first; });
      if (!known) fresh.metadata.push_back(std::move(entry));
    }
  }
  // Works are in the order of the source.
  std::stable_sort(all.begin(), all.end(),
                   [](const OutputTensor& a, const OutputTensor& b) { return a.work < b.work; });
  plan.shards.clear();
  std::uint64_t held = 0;
  for (auto first = all.begin(); first != all.end();) {
    const auto end = std::find_if(first, all.end(), [&](const auto& t) { return t.work != first->work; });
    std::uint64_t bytes = 0;
    for (auto it = first; it != end; ++it) bytes += bytes_of(*it);
    if (plan.shards.empty() || (held > 0 && (bytes > limit || held > limit - bytes))) {
      plan.shards.push_back(fresh);
      held = 0;
    }
    std::move(first, end, std::back_inserter(plan.shards.back().tensors));
    held += bytes;
    first = end;
  }
  for (std::size_t i = 0; i < plan.shards.size(); ++i)
    plan.shards[i].name = numbered_shard("model", i + 1, plan.shards.size());
}

}  // namespace assay
