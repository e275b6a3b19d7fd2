// A file as the disk has it, whatever the page cache says: what was written is written out first, then read past the cache.
// Where a file system has no such reading, what it lets go of leaves the cache before.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/formats/hash/read_pool.h"
#include "core/system/file.h"

namespace assay {

class DiskFile {
 public:
  explicit DiskFile(std::shared_ptr<const File> file);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  const File& file() const { return *file_; }
  // Throws Error::input where the file ends early.
  void read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  friend class DiskStream;
  // `offset` and `into` begin with a page.
  void prepare(ReadRequest& request, std::uint64_t offset, std::span<std::byte> into) const;
  std::shared_ptr<const File> file_;
  int direct_;  // -1: there is none
};

// A run of a file's bytes, in order, some pieces ahead.
class DiskStream {
 public:
  explicit DiskStream(ReadPool& pool) : pool_(pool), memory_(nullptr, &std::free) {}
  DiskStream(const DiskStream&) = delete;
  DiskStream& operator=(const DiskStream&) = delete;
  ~DiskStream() { close(); }

  // `file` outlives it, or close().
  void open(const DiskFile& file, std::uint64_t begin, std::uint64_t bytes);
  void close();
  // The next bytes, as many as there is room for. Throws Error::input where the file ends early.
  void read(std::span<std::byte> out);

 private:
  static constexpr std::size_t kPieces = 3;
  void fill();

  ReadPool& pool_;
  Wakeup wakeup_;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
  std::array<ReadRequest, kPieces> ring_;
  const DiskFile* file_ = nullptr;
  std::uint64_t position_ = 0, requested_ = 0, end_ = 0;
  std::size_t head_ = 0, in_ring_ = 0;
};

}  // namespace assay
