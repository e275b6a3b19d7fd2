#include "convert/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_map>

#include "convert/equal.h"
#include "convert/merge.h"
#include "convert/pipeline.h"
#include "convert/scale_map.h"
#include "core/formats/stream_digest.h"
#include "core/numeric/ceil_div.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kBytesAtOnce = 1 << 20;

// A tensor of the source or of the output, in one piece or in those of several ranks.
struct WholeTensor {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t, std::span<std::byte>)> read;
};

WholeTensor stored_tensor(const CheckpointReader& reader, const CheckpointTensor& tensor) {
  return {tensor.name, tensor.type, tensor.shape, tensor.bytes,
          [&](std::uint64_t at, std::span<std::byte> out) { reader.read(tensor, at, out); }};
}

WholeTensor gathered_tensor(const ConversionPlan& plan, const CheckpointReader& reader,
                            const OutputTensor& tensor) {
  const TensorCut& cut = plan.gathered[tensor.from];
  return {tensor.name, tensor.type, tensor.shape, tensor.bytes,
          [&](std::uint64_t at, std::span<std::byte> out) { read_gathered(reader, cut, at, out); }};
}

// The output as it lies on disk.
class Made {
 public:
  Made(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& folder) {
    if (!plan.ranks) {
      side_.emplace(folder, options.jobs);
      return;
    }
    merged_ = make_merge_plan(folder, options);
    reader_.emplace(merged_.checkpoint);
    for (const OutputShard& shard : merged_.shards)
      for (const OutputTensor& tensor : shard.tensors) places_.emplace(tensor.name, &tensor);
  }
  std::optional<WholeTensor> find(std::string_view name) const {
    if (side_) {
      const CheckpointTensor* tensor = side_->checkpoint.find(name);
      return tensor == nullptr ? std::nullopt : std::optional(stored_tensor(side_->reader, *tensor));
    }
    const auto place = places_.find(name);
    if (place == places_.end()) return std::nullopt;
    return gathered_tensor(merged_, *reader_, *place->second);
  }
  const Side* side() const { return side_ ? &*side_ : nullptr; }

 private:
  std::optional<Side> side_;
  ConversionPlan merged_;
  std::optional<CheckpointReader> reader_;
  std::unordered_map<std::string_view, const OutputTensor*> places_;
};

Digest digest_of(const WholeTensor& tensor, Progress& progress) {
  StreamDigest digest(DigestKind::sha256, tensor.bytes);
  std::vector<std::byte> buffer(std::min(tensor.bytes, kBytesAtOnce));
  for (std::uint64_t at = 0; at < tensor.bytes; at += kBytesAtOnce) {
    if (interrupted()) throw Interrupted{};
    const auto piece = std::span(buffer).first(std::min(kBytesAtOnce, tensor.bytes - at));
    tensor.read(at, piece);
    digest.update(piece);
    progress.add(piece.size());
  }
  return digest.finish();
}

Digest digest_of(const std::vector<Digest>& digests) {
  StreamDigest all(DigestKind::sha256, digests.size() * 32);
  for (const Digest& digest : digests) all.update(std::as_bytes(std::span(digest.bytes)));
  return all.finish();
}

// Scale (i, j) of the new grid against the old one that covers the same rows and columns.
std::string scale_fault(const ConversionPlan& plan, const CheckpointReader& source, const LogicalTensor& old,
                        const Made& made) {
  const CheckpointTensor& stored = plan.checkpoint.tensors[*old.scale];
  const auto found = made.find(stored.name);
  const ScaleMap rows{old.rows, old.form.block_rows, plan.spec.block_rows};
  const ScaleMap columns{old.columns, old.form.block_columns, plan.spec.block_columns};
  const std::uint64_t size = info(stored.type).block_bytes;
  if (!found || found->type != stored.type ||
      found->bytes != old.slices * rows.new_count() * columns.new_count() * size)
    return fmt::format("{}: missing in the output, or of another size", stored.name);
  std::vector<std::byte> before(stored.bytes), after(found->bytes);
  source.read(stored, 0, before);
  found->read(0, after);
  for (std::uint64_t block = 0; block < old.slices * rows.new_count(); ++block) {
    const std::uint64_t top =
        block / rows.new_count() * rows.old_count() + rows.first(block % rows.new_count());
    for (std::uint64_t j = 0; j < columns.new_count(); ++j) {
      if (std::memcmp(&before[(top * columns.old_count() + columns.first(j)) * size],
                      &after[(block * columns.new_count() + j) * size], size) != 0)
        return fmt::format("{}: scale [{}, {}] is not that of its block", old.name, block, j);
    }
  }
  return {};
}

// fn to fnuz: the codes as they were but for -0, which fnuz has not, and every scale twice what it was.
std::string recoding_fault(const ConversionPlan& plan, const CheckpointReader& source,
                           const LogicalTensor& old, const Made& made) {
  const CheckpointTensor& codes = plan.checkpoint.tensors[old.codes];
  const auto found = made.find(old.name);
  const auto scale_name = plan.checkpoint.tensors[*old.scale].name;
  const auto scales = made.find(scale_name);
  const std::uint64_t count = old.slices * old.scale_rows() * old.scale_columns();
  if (!found || found->bytes != codes.bytes) return fmt::format("{}: missing in the output", old.name);
  if (!scales || scales->bytes != count * sizeof(float))
    return fmt::format("{}: missing in the output, or of another size", scale_name);
  std::vector<std::byte> before(std::min(codes.bytes, kBytesAtOnce)), after(before.size());
  for (std::uint64_t at = 0; at < codes.bytes; at += kBytesAtOnce) {
    const std::uint64_t size = std::min(kBytesAtOnce, codes.bytes - at);
    source.read(codes, at, std::span(before).first(size));
    found->read(at, std::span(after).first(size));
    for (std::uint64_t i = 0; i < size; ++i) {
      if (after[i] != (before[i] == std::byte{0x80} ? std::byte{0} : before[i]))
        return fmt::format("{}: code {} is not what it was", old.name, at + i);
    }
  }
  std::vector<float> old_scales(count), new_scales(count);
  StoredReader(source, old).decode_scales(0, old.slices * old.scale_rows(), old_scales);
  scales->read(0, std::as_writable_bytes(std::span(new_scales)));
  for (std::uint64_t i = 0; i < count; ++i)
    if (!(new_scales[i] == 2 * old_scales[i])) return fmt::format("{}: scale {} is not doubled", old.name, i);
  return {};
}

// Value by value; what is merely copied is proved byte by byte.
bool is_proved(const Work& work) {
  return work.action == WorkAction::reblock || work.action == WorkAction::recode;
}

// Of what only moved, in the order of the source.
std::vector<WholeTensor> kept_tensors(const ConversionPlan& plan, const CheckpointReader& source) {
  std::vector<WholeTensor> kept;
  if (!plan.gathered.empty()) {
    for (const OutputShard& shard : plan.shards)
      for (const OutputTensor& tensor : shard.tensors) kept.push_back(gathered_tensor(plan, source, tensor));
    return kept;
  }
  std::vector<bool> leaves = plan.left_out;
  leaves.resize(plan.checkpoint.tensors.size());
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    if (work.action == WorkAction::reblock) leaves[*tensor.scale] = true;
    if (work.action != WorkAction::recode) continue;
    for (const std::uint32_t place : tensor.places()) leaves[place] = true;
  }
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (!leaves[i]) kept.push_back(stored_tensor(source, plan.checkpoint.tensors[i]));
  return kept;
}

}  // namespace

Proof prove(const ConversionPlan& plan, const ConvertOptions& options, const CheckpointReader& source,
            const fs::path& output, Progress& progress) {
  const Made made(plan, options, output);
  Proof proof;
  const std::vector<WholeTensor> kept = kept_tensors(plan, source);
  std::vector<Digest> before(kept.size()), after(kept.size());
  std::vector<std::string> faults(kept.size() + plan.works.size());
  parallel_for(options.jobs, kept.size(), [&](std::size_t i) {
    const auto copy = made.find(kept[i].name);
    if (!copy || copy->type != kept[i].type || copy->shape != kept[i].shape) {
      faults[i] = fmt::format("{}: missing or changed in the output", kept[i].name);
      return;
    }
    before[i] = digest_of(kept[i], progress);
    after[i] = digest_of(*copy, progress);
    if (before[i] != after[i]) faults[i] = fmt::format("{}: its stored bytes changed", kept[i].name);
  });

  std::unordered_map<std::string_view, const LogicalTensor*> places;
  if (made.side() != nullptr)
    for (const LogicalTensor& tensor : made.side()->stored.tensors) places.emplace(tensor.name, &tensor);
  parallel_for(options.jobs, plan.works.size(), [&](std::size_t i) {
    const LogicalTensor& old = plan.stored.tensors[plan.works[i].tensor];
    if (!is_proved(plan.works[i])) return;
    std::string& fault = faults[kept.size() + i];
    fault = plan.works[i].action == WorkAction::recode ? recoding_fault(plan, source, old, made)
                                                       : scale_fault(plan, source, old, made);
    // Codes and scales that are what they should be decode alike; where the output can be read as it is, that
    // is seen to as well.
    if (!fault.empty() || made.side() == nullptr) return;
    const auto found = places.find(old.name);
    if (found == places.end())
      fault = fmt::format("{}: missing in the output", old.name);
    else if (const auto differs = compare_tensor(source, old, made.side()->reader, *found->second,
                                                 {.non_finite = NonFinite::differs}, progress))
      fault = fmt::format("{}: {}", old.name, differs->what);
  });
  for (const Work& work : plan.works) {
    if (!is_proved(work)) continue;
    const LogicalTensor& old = plan.stored.tensors[work.tensor];
    proof.values += made.side() != nullptr ? old.elements() : 0;
    const bool same = work.action == WorkAction::recode;
    proof.scales += same ? old.slices * old.scale_rows() * old.scale_columns()
                         : old.slices * ceil_div(old.rows, plan.spec.block_rows) *
                               ceil_div(old.columns, plan.spec.block_columns);
  }
  for (const WholeTensor& tensor : kept) proof.code_bytes += tensor.bytes;
  for (std::string& fault : faults) {
    if (!fault.empty()) proof.faults.push_back(std::move(fault));
  }
  proof.tensors = kept.size();
  proof.before = digest_of(before);
  proof.after = digest_of(after);
  return proof;
}

}  // namespace assay
