#include "convert/layout.h"

#include <algorithm>
#include <map>

#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kPage = 4096;  // what file systems share, and copy_file_range clones, in

// File systems that can share extents do so for whole pages: spaces after the JSON move the buffer to where
// most of the bytes that are only copied have, modulo a page, the offset they have in the source.
void pad_header(OutputShard& shard, const Checkpoint& checkpoint) {
  std::map<std::uint64_t, std::uint64_t> votes;
  for (const OutputTensor& tensor : shard.tensors) {
    if (tensor.source != OutputTensor::Source::stored) continue;
    const std::uint64_t from = checkpoint.tensors[tensor.from].offset;
    const std::uint64_t buffer = (from % kPage + kPage - tensor.offset % kPage) % kPage;
    if (buffer % 8 == 0) votes[buffer] += tensor.bytes;
  }
  if (votes.empty()) return;
  const auto best = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best->second < kPage) return;
  shard.header.append((best->first + kPage - shard.header.size() % kPage) % kPage, ' ');
  const std::uint64_t json_bytes = shard.header.size() - 8;
  for (int i = 0; i < 8; ++i) shard.header[i] = static_cast<char>(json_bytes >> (8 * i) & 0xFF);
}

void lay_out(OutputShard& shard, const Checkpoint& checkpoint) {
  // safetensors::sort_as_reference, of what has more to it than a name.
  std::sort(shard.tensors.begin(), shard.tensors.end(), [](const OutputTensor& a, const OutputTensor& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  std::vector<safetensors::Tensor> described;
  described.reserve(shard.tensors.size());
  for (OutputTensor& tensor : shard.tensors)
    described.push_back({std::move(tensor.name), tensor.type, std::move(tensor.shape)});
  shard.header = safetensors::serialize_header(described, shard.metadata);
  for (std::size_t i = 0; i < described.size(); ++i) {
    OutputTensor& tensor = shard.tensors[i];
    tensor.name = std::move(described[i].name);
    tensor.shape = std::move(described[i].shape);
    tensor.offset = described[i].begin;  // from the buffer's beginning, until the header's length is settled
    tensor.bytes = described[i].bytes();
  }
  pad_header(shard, checkpoint);
  for (OutputTensor& tensor : shard.tensors) tensor.offset += shard.header.size();
  shard.bytes =
      shard.tensors.empty() ? shard.header.size() : shard.tensors.back().offset + shard.tensors.back().bytes;
}

}  // namespace

void lay_out(ConversionPlan& plan, int jobs) {
  parallel_for(jobs, plan.shards.size(), [&](std::size_t i) { lay_out(plan.shards[i], plan.checkpoint); });
  sum_up(plan);
}

void sum_up(ConversionPlan& plan) {
  for (const OutputShard& shard : plan.shards) {
    plan.file_bytes += shard.bytes;
    for (const OutputTensor& tensor : shard.tensors) plan.tensor_bytes += tensor.bytes;
  }
  for (const CheckpointTensor& tensor : plan.checkpoint.tensors) plan.read_bytes += tensor.bytes;
}

}  // namespace assay
