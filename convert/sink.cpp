#include "convert/sink.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "convert/copy_range.h"
#include "core/system/error.h"

namespace assay {

ShardSink::ShardSink(const ConversionPlan& plan, const OutputShard& shard, const fs::path& folder,
                     OutputDigests& digests, GrowingFile* whole)
    : shard_(shard), digests_(digests), whole_(whole) {
  if (!shard.part_of.empty()) {
    open_section(folder / shard.part_of);
    return;
  }
  if (!plan.ranks) {
    open(folder, shard.name, shard.header, shard.bytes);
    digests_.written(*growing_.front(), 0, shard.header.size());
    return;
  }
  cut_ = plan.ranks->cut(plan, shard);
  for (const RankFile& file : cut_->files) open(folder, file.name, file.header, file.bytes);
}

ShardSink::~ShardSink() {
  for (const auto& file : growing_) digests_.forget(*file);
}

void ShardSink::open(const fs::path& folder, const std::string& name, const std::string& header,
                     std::uint64_t bytes) {
  const fs::path path = folder / name;
  fs::create_directories(path.parent_path());
  fs::remove(path);  // what a killed run wrote and did not come to note down
  names_.push_back(name);
  files_.push_back(std::make_unique<AtomicFile>(path));
  AtomicFile& file = *files_.back();
  // What pads a rank's part is never written.
  if (bytes > 0) file.reserve(bytes);
  file.write_at(0, std::as_bytes(std::span(header)));
  growing_.push_back(std::make_unique<GrowingFile>(file, bytes));
  digests_.add(*growing_.back());
}

void ShardSink::open_section(const fs::path& path) {
  section_of_ = std::make_unique<ResumableFile>(path);
  const auto readable = std::make_shared<const File>(File::open(path));
  for (const OutputTensor& tensor : shard_.tensors) {
    names_.push_back(tensor.name);
    growing_.push_back(std::make_unique<GrowingFile>(readable, tensor.offset, tensor.bytes));
    digests_.add(*growing_.back());
  }
}

std::size_t ShardSink::place_of(const OutputTensor& tensor) const {
  return static_cast<std::size_t>(&tensor - shard_.tensors.data());
}

void ShardSink::write(const OutputTensor& tensor, std::uint64_t at, std::span<const std::byte> bytes) {
  if (!cut_) {
    files_.front()->write_at(tensor.offset + at, bytes);
    return digests_.written(*growing_.front(), tensor.offset + at, bytes.size());
  }
  const TensorCut& cut = cut_->tensors[place_of(tensor)];
  for (const RankPart& part : cut.parts) {
    scatter(cut, part, at, bytes, [&](std::uint64_t offset, std::span<const std::byte> mine) {
      files_[part.file]->write_at(offset, mine);
    });
  }
}

void ShardSink::write(const OutputTensor& tensor, std::uint64_t at, std::uint64_t bytes,
                      Scratch<std::byte>& memory) {
  const auto data = memory.take(bytes);
  if (cut_) return write(tensor, at, data);
  if (section_of_) {
    section_of_->write_at(tensor.offset + at, data);
    if (whole_ != nullptr) digests_.written(*whole_, tensor.offset + at, bytes);
    return digests_.written(*growing_[place_of(tensor)], at, bytes, memory);
  }
  files_.front()->write_at(tensor.offset + at, data);
  digests_.written(*growing_.front(), tensor.offset + at, bytes, memory);
}

void ShardSink::copy(const File& from, std::uint64_t from_offset, std::uint64_t to_offset,
                     std::uint64_t bytes) {
  copy_range(from, from_offset, *files_.front(), to_offset, bytes);
  digests_.written(*growing_.front(), to_offset, bytes);
}

bool ShardSink::owns(const GrowingFile& file) const {
  return std::any_of(growing_.begin(), growing_.end(), [&](const auto& own) { return own.get() == &file; });
}

void ShardSink::all_written() {
  for (const auto& file : growing_) digests_.all_written(*file);
  if (whole_ == nullptr) return;
  for (const OutputTensor& tensor : shard_.tensors) digests_.written(*whole_, tensor.offset, tensor.bytes);
}

std::vector<FinishedFile> ShardSink::finished() const {
  std::vector<FinishedFile> files;
  for (std::size_t i = 0; i < names_.size(); ++i)
    files.push_back({names_[i], growing_[i]->bytes(), growing_[i]->digest()});
  return files;
}

void ShardSink::sync() const {
  if (section_of_) section_of_->sync();
  for (const auto& file : files_) {
    if (::fsync(file->descriptor()) != 0)
      throw Error::from_errno("flush to disk", errno).in(file->temporary());
  }
}

void ShardSink::commit() {
  for (auto& file : files_) file->commit();
}

}  // namespace assay
