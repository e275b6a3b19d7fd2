#include "convert/sink.h"

#include <unistd.h>

#include <cerrno>

#include "core/system/error.h"

namespace assay {

ShardSink::ShardSink(const ConversionPlan& plan, const OutputShard& shard, const fs::path& folder)
    : shard_(shard) {
  if (!plan.ranks) {
    open(folder, shard.name, shard.header, shard.bytes);
    return;
  }
  cut_ = plan.ranks->cut(plan, shard);
  for (const RankFile& file : cut_->files) open(folder, file.name, file.header, file.bytes);
}

void ShardSink::open(const fs::path& folder, const std::string& name, const std::string& header,
                     std::uint64_t bytes) {
  const fs::path path = folder / name;
  fs::create_directories(path.parent_path());
  fs::remove(path);  // what a killed run wrote and did not come to note down
  names_.push_back(name);
  files_.push_back(std::make_unique<AtomicFile>(path));
  AtomicFile& file = *files_.back();
  // The whole length at once: what pads a rank's part is never written, and reads as zeros.
  if (::ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0)
    throw Error::from_errno("set the length", errno).in(path);
  file.write_at(0, std::as_bytes(std::span(header)));
}

void ShardSink::write(const OutputTensor& tensor, std::uint64_t at, std::span<const std::byte> bytes) {
  if (!cut_) return files_.front()->write_at(tensor.offset + at, bytes);
  const TensorCut& cut = cut_->tensors[static_cast<std::size_t>(&tensor - shard_.tensors.data())];
  for (const RankPart& part : cut.parts) {
    scatter(cut, part, at, bytes, [&](std::uint64_t offset, std::span<const std::byte> mine) {
      files_[part.file]->write_at(offset, mine);
    });
  }
}

std::vector<File> ShardSink::reopened() const {
  std::vector<File> files;
  for (const auto& file : files_) files.push_back(File::open(file->temporary()));
  return files;
}

void ShardSink::commit() {
  for (auto& file : files_) file->commit();
}

}  // namespace assay
