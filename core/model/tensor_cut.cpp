#include "core/model/tensor_cut.h"

#include <algorithm>

namespace assay {
namespace {

// Cuts [at, at + size) into runs of whole rows and pieces of one row: visit(row, column, rows, offset, size),
// with rows 0 for a piece.
template <typename Visit>
void for_each_run(const TensorCut& cut, std::uint64_t at, std::uint64_t size, const Visit& visit) {
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t row = (at + done) / cut.row_bytes, column = (at + done) % cut.row_bytes;
    const std::uint64_t rows = column == 0 ? (size - done) / cut.row_bytes : 0;
    const std::uint64_t run = rows > 0 ? rows * cut.row_bytes : std::min(cut.row_bytes - column, size - done);
    visit(row, column, rows, done, run);
    done += run;
  }
}

IndexRange overlap(const IndexRange& a, const IndexRange& b) {
  const std::uint64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Of a piece [column, column + size) of one row, what the part holds: visit(offset in the file, offset in the
// piece, bytes).
template <typename Visit>
void for_each_range(const RankPart& part, std::uint64_t row, const IndexRange& piece, const Visit& visit) {
  std::uint64_t to = part.offset + (row - part.rows.begin) * part.row_bytes;
  for (const PartRange& range : part.ranges) {
    const IndexRange mine = overlap(range, piece);
    if (mine.size() > 0) visit(to + mine.begin - range.begin, mine.begin - piece.begin, mine.size(), range);
    to += range.size();
  }
}

}  // namespace

void scatter(const TensorCut& cut, const RankPart& part, std::uint64_t at, std::span<const std::byte> bytes,
             const std::function<void(std::uint64_t, std::span<const std::byte>)>& write) {
  for_each_run(cut, at, bytes.size(), [&](auto row, auto column, auto rows, auto done, auto run) {
    if (rows == 0) {
      if (row < part.rows.begin || row >= part.rows.end) return;
      for_each_range(part, row, {column, column + run}, [&](auto to, auto from, auto size, const PartRange&) {
        write(to, bytes.subspan(done + from, size));
      });
      return;
    }
    // A rank's parts of rows that follow each other lie side by side in its file.
    const IndexRange mine = overlap({row, row + rows}, part.rows);
    if (mine.size() == 0 || part.row_bytes == 0) return;
    std::vector<std::byte> packed(mine.size() * part.row_bytes);
    for (std::uint64_t r = mine.begin; r < mine.end; ++r) {
      std::byte* to = packed.data() + (r - mine.begin) * part.row_bytes;
      for (const PartRange& range : part.ranges) {
        const auto piece = bytes.subspan(done + (r - row) * cut.row_bytes + range.begin, range.size());
        to = std::copy(piece.begin(), piece.end(), to);
      }
    }
    write(part.offset + (mine.begin - part.rows.begin) * part.row_bytes, packed);
  });
}

void gather(const TensorCut& cut, std::uint64_t at, std::span<std::byte> bytes,
            const std::function<void(std::uint32_t, std::uint64_t, std::span<std::byte>)>& read) {
  for_each_run(cut, at, bytes.size(), [&](auto row, auto column, auto rows, auto done, auto run) {
    for (const RankPart& part : cut.parts) {
      if (rows == 0) {
        if (row < part.rows.begin || row >= part.rows.end) continue;
        for_each_range(part, row, {column, column + run},
                       [&](auto from, auto to, auto size, const PartRange& range) {
                         if (!range.repeated) read(part.file, from, bytes.subspan(done + to, size));
                       });
        continue;
      }
      const IndexRange mine = overlap({row, row + rows}, part.rows);
      const bool of_use = std::any_of(part.ranges.begin(), part.ranges.end(),
                                      [](const PartRange& range) { return !range.repeated; });
      if (mine.size() == 0 || part.row_bytes == 0 || !of_use) continue;
      std::vector<std::byte> packed(mine.size() * part.row_bytes);
      read(part.file, part.offset + (mine.begin - part.rows.begin) * part.row_bytes, packed);
      for (std::uint64_t r = mine.begin; r < mine.end; ++r) {
        auto from = packed.begin() + static_cast<std::ptrdiff_t>((r - mine.begin) * part.row_bytes);
        for (const PartRange& range : part.ranges) {
          const auto to = bytes.subspan(done + (r - row) * cut.row_bytes + range.begin, range.size());
          if (!range.repeated) std::copy_n(from, range.size(), to.begin());
          from += static_cast<std::ptrdiff_t>(range.size());
        }
      }
    }
  });
}

bool covers_once(const TensorCut& cut) {
  // Rows between the same borders are covered alike.
  std::vector<std::uint64_t> borders = {0, cut.rows};
  for (const RankPart& part : cut.parts) {
    borders.push_back(part.rows.begin);
    borders.push_back(part.rows.end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    std::vector<IndexRange> ranges;
    for (const RankPart& part : cut.parts) {
      if (part.rows.begin > borders[i] || part.rows.end <= borders[i]) continue;
      for (const PartRange& range : part.ranges)
        if (range.size() > 0 && !range.repeated) ranges.push_back(range);
    }
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::uint64_t end = 0;
    for (const IndexRange& range : ranges) {
      if (range.begin != end) return false;
      end = range.end;
    }
    if (end != cut.row_bytes) return false;
  }
  return borders.back() == cut.rows;
}

}  // namespace assay
