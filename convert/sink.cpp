#include "convert/sink.h"

#include <algorithm>

namespace assay {
namespace {

class Scatter {
 public:
  Scatter(const TensorCut& cut, const RankPart& part, AtomicFile& file)
      : cut_(cut), part_(part), file_(file) {}

  void write(std::uint64_t at, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::uint64_t row = at / cut_.row_bytes, column = at % cut_.row_bytes;
      const std::uint64_t whole = column == 0 ? bytes.size() / cut_.row_bytes : 0;
      const std::uint64_t size =
          whole > 0 ? whole * cut_.row_bytes : std::min<std::uint64_t>(cut_.row_bytes - column, bytes.size());
      if (whole > 0)
        write_rows(row, whole, bytes.first(size));
      else
        write_piece_of_row(row, column, bytes.first(size));
      at += size;
      bytes = bytes.subspan(size);
    }
  }

 private:
  // A rank's parts of rows that follow each other lie side by side in its file.
  void write_rows(std::uint64_t first, std::uint64_t rows, std::span<const std::byte> bytes) {
    std::vector<std::byte> mine(rows * part_.row_bytes);
    for (std::uint64_t row = 0; row < rows; ++row) {
      std::byte* to = mine.data() + row * part_.row_bytes;
      for (const ByteRange& range : part_.ranges) {
        const auto piece = bytes.subspan(row * cut_.row_bytes + range.begin, range.end - range.begin);
        to = std::copy(piece.begin(), piece.end(), to);
      }
    }
    if (!mine.empty()) file_.write_at(part_.offset + first * part_.row_bytes, mine);
  }

  void write_piece_of_row(std::uint64_t row, std::uint64_t column, std::span<const std::byte> bytes) {
    std::uint64_t to = part_.offset + row * part_.row_bytes;
    for (const ByteRange& range : part_.ranges) {
      const std::uint64_t begin = std::max(range.begin, column);
      const std::uint64_t end = std::min<std::uint64_t>(range.end, column + bytes.size());
      if (begin < end) file_.write_at(to + begin - range.begin, bytes.subspan(begin - column, end - begin));
      to += range.end - range.begin;
    }
  }

  const TensorCut& cut_;
  const RankPart& part_;
  AtomicFile& file_;
};

}  // namespace

ShardSink::ShardSink(const OutputShard& shard, const fs::path& folder) : shard_(shard) {
  const auto open = [&](const std::string& name, const std::string& header) {
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path());
    files_.push_back(std::make_unique<AtomicFile>(path));
    files_.back()->write_at(0, std::as_bytes(std::span(header)));
  };
  if (shard.ranks.empty()) open(shard.name, shard.header);
  for (const RankFile& rank : shard.ranks) open(rank.name, rank.header);
}

void ShardSink::write(const OutputTensor& tensor, std::uint64_t at, std::span<const std::byte> bytes) {
  if (shard_.ranks.empty()) return files_.front()->write_at(tensor.offset + at, bytes);
  const TensorCut& cut = shard_.cuts[static_cast<std::size_t>(&tensor - shard_.tensors.data())];
  for (const RankPart& part : cut.parts) Scatter(cut, part, *files_[part.file]).write(at, bytes);
}

void ShardSink::commit() {
  for (auto& file : files_) file->commit();
}

}  // namespace assay
