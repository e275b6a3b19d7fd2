#include "core/formats/hash/file_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "core/formats/hash/page_cache.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kWindow = 16 << 20;
constexpr std::size_t kReadPiece =
    1 << 20;  // 8 in flight keep a fast drive busy; half the size measured 15 % slower
// Of what is cached one is copied while the other is hashed: more of them, or smaller ones, wake threads for work that takes no
// longer than waking (one file of 1 GiB: 0.67 s, with eight of 128 KiB 0.72).
constexpr std::size_t kCachedAhead = 2;
constexpr std::uint64_t kWorthDirect = 1 << 20;  // below, a second open costs more than it spares
constexpr std::size_t kCacheLine = 64;

}  // namespace

FileReader::FileReader(ReadPool& pool, Wakeup& wakeup, bool keep_cache, std::size_t stagger)
    : pool_(pool),
      wakeup_(wakeup),
      keep_cache_(keep_cache),
      small_memory_(new std::byte[kChunk + kCacheLine + stagger]),
      ring_memory_(nullptr, &std::free) {
  void* start = small_memory_.get();
  std::size_t space = kChunk + kCacheLine;
  small_ = static_cast<std::byte*>(std::align(kCacheLine, kChunk, start, space)) + stagger;
}

void FileReader::open(const fs::path& path, std::uint64_t begin, std::uint64_t end) {
  close();
  file_ = File::open(path);
  end_ = std::min(end, file_->size());
  begin_ = std::min(begin, end_);
  window_end_ = position_ = requested_ = begin_;
  // Past the cache whole pages are read: where a span ends within one, some bytes would be read twice.
  const bool pages =
      begin_ % kDirectAlignment == 0 && (end_ % kDirectAlignment == 0 || end_ == file_->size());
  direct_tried_ = !pages;
}

void FileReader::close() {
  std::array<ReadRequest*, kPieces> pending;
  for (std::size_t i = 0; i < in_ring_; ++i) pending[i] = &ring_[(head_ + i) % kPieces].request;
  if (in_ring_ != 0) pool_.cancel(std::span(pending).first(in_ring_));
  if (direct_ >= 0) ::close(direct_);
  direct_ = -1;
  direct_tried_ = cut_short_ = false;
  file_.reset();
  begin_ = end_ = window_end_ = position_ = requested_ = 0;
  head_ = in_ring_ = used_of_head_ = 0;
}

FileReader::Status FileReader::next(std::span<const std::byte>& chunk, bool idle_cores,
                                    std::span<std::byte> room) {
  release_used_piece();
  if (cut_short_ || position_ == end_) return Status::end;
  if (in_ring_ == 0 && position_ == window_end_) enter_window(idle_cores);
  if (window_ == Window::by_caller && in_ring_ == 0) return next_by_caller(chunk, room);
  fill_ring(idle_cores);
  return next_from_ring(chunk);
}

void FileReader::release_used_piece() {
  if (in_ring_ == 0 || used_of_head_ < ring_[head_].request.into.size()) return;
  head_ = (head_ + 1) % kPieces;
  --in_ring_;
  used_of_head_ = 0;
}

// Decides about the bytes from window_end_ on.
void FileReader::enter_window(bool idle_cores) {
  const std::uint64_t start = window_end_;
  window_end_ = std::min(end_, start + kWindow);
  requested_ = start;
  if (cache_share(file_->descriptor(), start, window_end_ - start) == CacheShare::all) {
    window_ = idle_cores && file_->size() > kChunk ? Window::ring : Window::by_caller;
    mode_ = ReadMode::through_cache;
    ahead_ = kCachedAhead;
    return;
  }
  window_ = Window::ring;
  ahead_ = kPieces;
  mode_ = ReadMode::through_cache;
  if (keep_cache_) return;
  if (!direct_tried_ && file_->size() >= kWorthDirect) {
    direct_ = open_uncached(*file_);
    direct_tried_ = true;
  }
  mode_ = direct_ >= 0 ? ReadMode::uncached : ReadMode::forgetting;
}

// As far ahead as there is room; into the next window too, unless that is one the caller reads itself.
void FileReader::fill_ring(bool idle_cores) {
  while (in_ring_ < ahead_ && window_ == Window::ring && requested_ < end_) {
    if (requested_ == window_end_) {
      enter_window(idle_cores);
      continue;
    }
    request_piece(ring_[(head_ + in_ring_) % kPieces]);
    ++in_ring_;
  }
}

void FileReader::request_piece(Piece& piece) {
  if (ring_memory_ == nullptr) allocate_ring();
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kReadPiece, window_end_ - requested_));
  piece.request.descriptor = file_->descriptor();
  piece.request.direct_descriptor = direct_;
  piece.request.mode = mode_;
  piece.request.offset = requested_;
  piece.request.into = piece.room.first(length);
  piece.request.wakeup = &wakeup_;
  requested_ += length;
  pool_.submit(piece.request);
}

void FileReader::allocate_ring() {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, kPieces * kReadPiece));
  if (memory == nullptr) throw std::bad_alloc();
  ring_memory_.reset(memory);
  for (std::size_t i = 0; i < kPieces; ++i) ring_[i].room = {memory + i * kReadPiece, kReadPiece};
}

FileReader::Status FileReader::next_by_caller(std::span<const std::byte>& chunk, std::span<std::byte> room) {
  if (room.empty()) room = {small_, kChunk};
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), window_end_ - position_));
  const std::size_t got = file_->read_at(position_, room.first(wanted));
  cut_short_ = got < wanted;  // and stays so, should the file grow again meanwhile
  if (got == 0) return Status::end;
  position_ += got;
  chunk = room.first(got);
  return Status::chunk;
}

FileReader::Status FileReader::next_from_ring(std::span<const std::byte>& chunk) {
  const ReadRequest& request = ring_[head_].request;
  if (!request.done.load(std::memory_order_acquire)) return Status::waiting;
  if (request.error_number != 0) {
    throw Error::from_errno("read", request.error_number).in(file_->path()).at(request.offset + request.got);
  }
  const std::size_t length = std::min(kChunk, request.got - used_of_head_);
  if (length == 0) {
    cut_short_ = true;
    return Status::end;
  }
  chunk = request.into.subspan(used_of_head_, length);
  used_of_head_ += length;
  position_ += length;
  return Status::chunk;
}

}  // namespace assay
