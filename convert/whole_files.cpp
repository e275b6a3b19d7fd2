#include "convert/whole_files.h"

namespace assay {
namespace {

// What lies between the tensors to come, and around them: the header, tensors of earlier runs, holes, the end.
void add_what_is_there(const OutputShard& file, const std::set<std::uint64_t>& to_come, GrowingFile& growing,
                       OutputDigests& digests) {
  std::uint64_t at = 0;
  for (const OutputTensor& tensor : file.tensors) {
    if (!to_come.contains(tensor.offset) || tensor.bytes == 0) continue;
    if (tensor.offset > at) digests.written(growing, at, tensor.offset - at);
    at = tensor.offset + tensor.bytes;
  }
  if (file.bytes > at) digests.written(growing, at, file.bytes - at);
}

}  // namespace

WholeFiles::WholeFiles(const ConversionPlan& plan, std::span<const OutputShard* const> sections,
                       const fs::path& folder, OutputDigests& digests)
    : digests_(digests) {
  std::map<std::string_view, std::set<std::uint64_t>> to_come;  // offsets of tensors, by file
  for (const OutputShard* section : sections) {
    if (section->part_of.empty()) continue;
    for (const OutputTensor& tensor : section->tensors) to_come[section->part_of].insert(tensor.offset);
  }
  for (const OutputShard& file : plan.shards) {
    const auto tensors = to_come.find(file.name);
    if (tensors == to_come.end()) continue;
    Whole& whole = files_[file.name];
    auto readable = std::make_shared<const File>(File::open(folder / file.name));
    whole.growing = std::make_unique<GrowingFile>(std::move(readable), 0, file.bytes);
    digests_.add(*whole.growing);
    add_what_is_there(file, tensors->second, *whole.growing, digests_);
    ++left_;
  }
}

WholeFiles::~WholeFiles() {
  for (const auto& [name, whole] : files_) digests_.forget(*whole.growing);
}

GrowingFile* WholeFiles::of(const OutputShard& section) {
  const auto found = files_.find(section.part_of);
  return found == files_.end() ? nullptr : found->second.growing.get();
}

void WholeFiles::all_written() {
  for (const auto& [name, whole] : files_)
    if (!whole.hashed) digests_.all_written(*whole.growing);
}

bool WholeFiles::take(const GrowingFile& file) {
  for (auto& [name, whole] : files_) {
    if (whole.growing.get() != &file) continue;
    whole.hashed = true;
    --left_;
    return true;
  }
  return false;
}

std::map<std::string, Digest> WholeFiles::digests() const {
  std::map<std::string, Digest> digests;
  for (const auto& [name, whole] : files_)
    if (whole.hashed) digests.emplace(name, whole.growing->digest());
  return digests;
}

}  // namespace assay
