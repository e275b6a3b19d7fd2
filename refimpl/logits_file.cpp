#include "refimpl/logits_file.h"

#include <fmt/format.h>

#include "core/formats/safetensors.h"

namespace assay {

LogitsFile::LogitsFile(const fs::path& path, const std::vector<std::size_t>& tokens, std::size_t vocabulary,
                       bool wide, const std::vector<std::pair<std::string, std::string>>& metadata)
    : file_(path), wide_(wide) {
  std::vector<safetensors::Tensor> tensors;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tensors.push_back({tokens.size() == 1 ? "logits" : fmt::format("logits.{}", i),
                       wide ? ElementType::F64 : ElementType::F32,
                       {tokens[i], vocabulary}});
  const std::string header = safetensors::serialize_header(tensors, metadata);
  for (const safetensors::Tensor& tensor : tensors) begins_.push_back(header.size() + tensor.begin);
  file_.write(header);
  end_ = header.size();
}

void LogitsFile::put(std::size_t text, std::size_t position, std::span<const double> row) {
  narrow_.assign(row.begin(), row.end());
  const std::span<const std::byte> bytes = wide_ ? std::as_bytes(row) : std::as_bytes(std::span(narrow_));
  const std::uint64_t at = begins_.at(text) + position * bytes.size();
  if (at != end_) return file_.write_at(at, bytes);
  file_.write(bytes);  // a pipe takes nothing else
  end_ += bytes.size();
}

}  // namespace assay
