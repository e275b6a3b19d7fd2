#include "convert/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "convert/equal.h"
#include "convert/fp8_cast.h"
#include "convert/merge.h"
#include "convert/pipeline.h"
#include "convert/same_bytes.h"
#include "convert/scale_map.h"
#include "core/formats/hash/page_cache.h"
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
  ReadBytes read;
  // In one piece: what it is in its checkpoint, and of the output its file.
  const CheckpointTensor* stored = nullptr;
  OpenDisk disk = nullptr;
};

WholeTensor stored_tensor(const CheckpointReader& reader, const CheckpointTensor& tensor) {
  return {tensor.name,
          tensor.type,
          tensor.shape,
          tensor.bytes,
          [&](std::uint64_t at, std::span<std::byte> out) { reader.read(tensor, at, out); },
          &tensor};
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
      disk_.resize(side_->checkpoint.files.size());
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
      return tensor == nullptr ? std::nullopt : std::optional(on_disk(*tensor));
    }
    const auto place = places_.find(name);
    if (place == places_.end()) return std::nullopt;
    return gathered_tensor(merged_, *reader_, *place->second);
  }
  const Side* side() const { return side_ ? &*side_ : nullptr; }

 private:
  WholeTensor on_disk(const CheckpointTensor& tensor) const {
    WholeTensor found = stored_tensor(side_->reader, tensor);
    found.disk = [this, file = tensor.file] { return disk_of(file); };
    found.read = [disk = found.disk, begin = tensor.offset](std::uint64_t at, std::span<std::byte> out) {
      disk()->read_exactly(begin + at, out);
    };
    return found;
  }
  std::shared_ptr<const DiskFile> disk_of(std::uint32_t file) const {
    const std::lock_guard lock(mutex_);
    auto disk = disk_[file].lock();
    if (disk != nullptr) return disk;
    const fs::path& path = side_->checkpoint.files[file].path;
    disk = std::make_shared<const DiskFile>(std::make_shared<const File>(File::open(path)));
    disk_[file] = disk;
    return disk;
  }

  std::optional<Side> side_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const DiskFile>> disk_;  // of its files, those that are read
  ConversionPlan merged_;
  std::optional<CheckpointReader> reader_;
  std::unordered_map<std::string_view, const OutputTensor*> places_;
};

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

// Whether codes of finite numbers give such under these scales: a code is 57,344 at most.
bool scales_are_tame(const CheckpointReader& source, const LogicalTensor& tensor) {
  std::vector<float> scales(tensor.slices * tensor.scale_rows() * tensor.scale_columns());
  StoredReader(source, tensor).decode_scales(0, tensor.slices * tensor.scale_rows(), scales);
  return std::all_of(scales.begin(), scales.end(), [](float scale) { return std::abs(scale) <= 0x1p100F; });
}

// What has just been written is read from the disk and not from memory, as far as the system lets go of it. Tensors are read
// past its memory (DiskFile), but for those that are put together from several files.
void forget_cached(const ConversionPlan& plan, const fs::path& output) {
  std::map<std::string_view, std::uint64_t> headers;  // of whole shards
  if (!plan.ranks) {
    for (const OutputShard& shard : plan.shards) headers.emplace(shard.name, shard.header.size());
  }
  for (const auto& entry : fs::recursive_directory_iterator(output)) {
    if (!entry.is_regular_file()) continue;
    const File file = File::open(entry.path());
    const auto header = headers.find(fs::relative(entry.path(), output).generic_string());
    const std::uint64_t pages =
        header == headers.end() ? file.size() : ceil_div(header->second, kDirectAlignment) * kDirectAlignment;
    drop_from_cache(file.descriptor(), 0, pages);
  }
}

// The two passes over what was made: what only moved, byte by byte; then values of what was blocked anew.
class Proving {
 public:
  Proving(const ConversionPlan& plan, const ConvertOptions& options, const CheckpointReader& source,
          const Made& made, Progress& progress, const EarlyReads& early)
      : plan_(plan), options_(options), source_(source), made_(made), progress_(progress), early_(early) {
    if (made.side() == nullptr) return;
    for (const LogicalTensor& tensor : made.side()->stored.tensors) places_.emplace(tensor.name, &tensor);
  }

  void kept(Proof& proof) {
    const std::vector<WholeTensor> all = kept_tensors(plan_, source_);
    std::vector<ReadTwice> read(all.size());
    std::vector<StoredTwice> pairs;
    std::vector<std::size_t> places;  // of the pairs
    std::vector<bool> there(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto copy = made_.find(all[i].name);
      there[i] = copy && copy->type == all[i].type && copy->shape == all[i].shape;
      if (!there[i]) continue;
      if (const EarlyRead* early = early_read(all[i], *copy)) {
        read[i] = early->read;
        progress_.add(2 * all[i].bytes);
        continue;
      }
      places.push_back(i);
      pairs.push_back({all[i].bytes, all[i].read, copy->read, copy->disk,
                       copy->disk != nullptr ? copy->stored->offset : 0,
                       first_non_finite(all[i].type).value_or(0x80)});
    }
    const std::vector<ReadTwice> read_now = read_twice(pairs, options_.jobs, progress_);
    for (std::size_t i = 0; i < places.size(); ++i) read[places[i]] = read_now[i];
    std::vector<Digest> before, after;
    for (std::size_t i = 0; i < all.size(); ++i) {
      before.push_back(there[i] ? read[i].before : Digest{});
      after.push_back(there[i] ? read[i].after : Digest{});
      if (!there[i])
        proof.faults.push_back(fmt::format("{}: missing or changed in the output", all[i].name));
      else if (before[i] != after[i])
        proof.faults.push_back(fmt::format("{}: its stored bytes changed", all[i].name));
      else if (read[i].finite)
        same_and_finite_.insert(all[i].name);
      proof.code_bytes += all[i].bytes;
    }
    proof.tensors = all.size();
    proof.before = digest_of(before);
    proof.after = digest_of(after);
  }

  void values(Proof& proof) {
    std::vector<std::string> faults(plan_.works.size());
    parallel_for(options_.jobs, faults.size(), [&](std::size_t i) { faults[i] = fault(plan_.works[i]); });
    for (std::string& fault : faults)
      if (!fault.empty()) proof.faults.push_back(std::move(fault));
  }

 private:
  // What was read of it while the rest was written; nullptr: it has to be read.
  const EarlyRead* early_read(const WholeTensor& tensor, const WholeTensor& copy) const {
    if (tensor.stored == nullptr || copy.disk == nullptr) return nullptr;
    const auto place = static_cast<std::uint32_t>(tensor.stored - plan_.checkpoint.tensors.data());
    const auto found = early_.find(place);
    const bool is_there = found != early_.end() && found->second.offset == copy.stored->offset &&
                          found->second.file == made_.side()->checkpoint.files[copy.stored->file].name;
    return is_there ? &found->second : nullptr;
  }

  std::string fault(const Work& work) const {
    if (!is_proved(work)) return {};
    const LogicalTensor& old = plan_.stored.tensors[work.tensor];
    std::string fault = work.action == WorkAction::recode ? recoding_fault(plan_, source_, old, made_)
                                                          : scale_fault(plan_, source_, old, made_);
    // Codes and scales that are what they should be decode alike; where the output can be read as it is, that
    // is seen to as well.
    if (!fault.empty() || made_.side() == nullptr) return fault;
    const auto found = places_.find(old.name);
    if (found == places_.end()) return fmt::format("{}: missing in the output", old.name);
    if (work.action == WorkAction::reblock && follows(old, *found->second)) return {};
    if (const auto differs = compare_tensor(source_, old, made_.side()->reader, *found->second,
                                            {.non_finite = NonFinite::differs}, progress_))
      return fmt::format("{}: {}", old.name, differs->what);
    return {};
  }

  // That every value is the same finite number, from what has been seen: the same codes, all of them finite, under the
  // scale that stood over each block, in the same form but for the blocks, by what the output says of itself.
  bool follows(const LogicalTensor& old, const LogicalTensor& now) const {
    const std::string& codes = plan_.checkpoint.tensors[old.codes].name;
    const Checkpoint& made = made_.side()->checkpoint;
    return is_code_by_scale(old) && is_code_by_scale(now) && first_non_finite(old.form.codes) &&
           same_and_finite_.contains(codes) && made.tensors[now.codes].name == codes &&
           made.tensors[*now.scale].name == plan_.checkpoint.tensors[*old.scale].name &&
           old.shape == now.shape && old.form.codes == now.form.codes && old.form.scales == now.form.scales &&
           old.form.scale_factor == now.form.scale_factor && old.form.transposed == now.form.transposed &&
           now.form.block_rows == plan_.spec.block_rows &&
           now.form.block_columns == plan_.spec.block_columns && scales_are_tame(source_, old);
  }

  const ConversionPlan& plan_;
  const ConvertOptions& options_;
  const CheckpointReader& source_;
  const Made& made_;
  Progress& progress_;
  const EarlyReads& early_;
  std::unordered_map<std::string_view, const LogicalTensor*> places_;  // in the output
  std::unordered_set<std::string> same_and_finite_;                    // names in the source
};

}  // namespace

Proof prove(const ConversionPlan& plan, const ConvertOptions& options, const CheckpointReader& source,
            const fs::path& output, Progress& progress, const EarlyReads& early) {
  forget_cached(plan, output);
  const Made made(plan, options, output);
  Proof proof;
  Proving proving(plan, options, source, made, progress, early);
  proving.kept(proof);
  proving.values(proof);
  for (const Work& work : plan.works) {
    if (!is_proved(work)) continue;
    const LogicalTensor& old = plan.stored.tensors[work.tensor];
    proof.values += made.side() != nullptr ? old.elements() : 0;
    const bool same = work.action == WorkAction::recode;
    proof.scales += same ? old.slices * old.scale_rows() * old.scale_columns()
                         : old.slices * ceil_div(old.rows, plan.spec.block_rows) *
                               ceil_div(old.columns, plan.spec.block_columns);
  }
  return proof;
}

}  // namespace assay
