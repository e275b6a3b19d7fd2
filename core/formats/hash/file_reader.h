// Hands out a file's bytes in order, by chunks small enough to stay in the second-level cache until hashed.
//
// The file is looked at in windows. What a window holds decides how it is read:
//   in the page cache       by the caller's own thread, straight into its small buffer; or, when cores are
//                           idle, a piece ahead by the read pool, so that copying and hashing overlap
//   not in the page cache   a ring of pieces ahead by the read pool, past the cache (or through it)
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "core/formats/hash/read_pool.h"
#include "core/system/file.h"

namespace assay {

class FileReader {
 public:
  static constexpr std::size_t kChunk = 64 << 10;
  enum class Status { chunk, waiting, end };

  // `stagger` moves the small buffer by so many bytes (sha256::kStagger).
  FileReader(ReadPool& pool, Wakeup& wakeup, bool keep_cache, std::size_t stagger);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader() { close(); }

  // The bytes [begin, end), no further than the file goes. Throws as File::open.
  void open(const fs::path& path, std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX);
  void close();
  const File& file() const { return *file_; }
  std::uint64_t bytes() const { return end_ - begin_; }  // to be handed out, when opened

  // The next at most kChunk bytes, valid until the next call; a multiple of 64 except for the last.
  // `waiting`: the wakeup will be signalled. `end`: also when the file turned out shorter than when opened.
  // Throws Error::io. `idle_cores`: threads of the read pool have a core to run on while this one hashes. `room`: where
  // the caller would have the bytes, unless empty, and as many at once; what the pool has read lies elsewhere.
  Status next(std::span<const std::byte>& chunk, bool idle_cores, std::span<std::byte> room = {});

 private:
  struct Piece {
    ReadRequest request;
    std::span<std::byte> room;
  };
  enum class Window { by_caller, ring };

  void release_used_piece();
  void enter_window(bool idle_cores);
  void fill_ring(bool idle_cores);
  void request_piece(Piece& piece);
  void allocate_ring();
  Status next_by_caller(std::span<const std::byte>& chunk, std::span<std::byte> room);
  Status next_from_ring(std::span<const std::byte>& chunk);

  static constexpr std::size_t kPieces = 8;

  ReadPool& pool_;
  Wakeup& wakeup_;
  const bool keep_cache_;
  std::unique_ptr<std::byte[]> small_memory_;
  std::byte* small_ = nullptr;
  std::unique_ptr<std::byte[], void (*)(void*)>
      ring_memory_;  // allocated when first needed, kept from file to file
  std::array<Piece, kPieces> ring_;

  std::optional<File> file_;
  std::uint64_t begin_ = 0, end_ = 0;
  int direct_ = -1;
  bool direct_tried_ = false, cut_short_ = false;
  Window window_ = Window::by_caller;
  ReadMode mode_ = ReadMode::through_cache;
  std::size_t ahead_ = kPieces;   // so many pieces are asked for at once
  std::uint64_t window_end_ = 0;  // up to which window_ and mode_ hold
  std::uint64_t position_ = 0;    // handed out before here
  std::uint64_t requested_ = 0;   // asked of the pool before here
  std::size_t head_ = 0, in_ring_ = 0, used_of_head_ = 0;
};

}  // namespace assay
