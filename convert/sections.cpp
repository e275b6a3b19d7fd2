#include "convert/sections.h"

#include <fmt/format.h>

namespace assay {
namespace {

constexpr std::uint64_t kSectionBytes = 128ull << 20;  // at least, before the next begins

}  // namespace

std::vector<OutputShard> sections_of(const OutputShard& file) {
  std::vector<OutputShard> sections;
  for (const OutputTensor& tensor : file.tensors) {
    if (sections.empty() || sections.back().bytes >= kSectionBytes) {
      OutputShard& next = sections.emplace_back();
      next.name = fmt::format("{} from {}", file.name, tensor.name);
      next.part_of = file.name;
    }
    sections.back().tensors.push_back(tensor);
    sections.back().bytes += tensor.bytes;
  }
  return sections;
}

void begin_file(const OutputShard& file, const fs::path& folder) {
  const std::uint64_t end =
      file.tensors.empty() ? file.header.size() : file.tensors.back().offset + file.tensors.back().bytes;
  ResumableFile target(folder / file.name);
  target.write_at(0, std::as_bytes(std::span(file.header)));
  target.write_at(end, std::vector<std::byte>(file.bytes - end));
  // Whole from the start: what lies between tensors is hashed before the next one is written.
  if (fs::file_size(folder / file.name) < file.bytes) fs::resize_file(folder / file.name, file.bytes);
}

}  // namespace assay
