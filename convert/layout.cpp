#include "convert/layout.h"

#include <algorithm>
#include <map>

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
  std::vector<safetensors::Tensor> described;
  std::map<std::string, OutputTensor> by_name;
  for (OutputTensor& tensor : shard.tensors) {
    described.push_back({tensor.name, tensor.type, tensor.shape});
    by_name.emplace(tensor.name, std::move(tensor));
  }
  shard.tensors.clear();
  safetensors::sort_as_reference(described);
  shard.header = safetensors::serialize_header(described, shard.metadata);
  for (const safetensors::Tensor& tensor : described) {
    OutputTensor& output = by_name.at(tensor.name);
    output.offset = tensor.begin;  // from the buffer's beginning, until the header's length is settled
    output.bytes = tensor.bytes();
    shard.tensors.push_back(std::move(output));
  }
  pad_header(shard, checkpoint);
  for (OutputTensor& tensor : shard.tensors) tensor.offset += shard.header.size();
  shard.bytes = shard.tensors.back().offset + shard.tensors.back().bytes;
}

}  // namespace

void lay_out(ConversionPlan& plan) {
  for (OutputShard& shard : plan.shards) {
    lay_out(shard, plan.checkpoint);
    plan.file_bytes += shard.bytes;
    for (const OutputTensor& tensor : shard.tensors) plan.tensor_bytes += tensor.bytes;
  }
  for (const CheckpointTensor& tensor : plan.checkpoint.tensors) plan.read_bytes += tensor.bytes;
}

}  // namespace assay
