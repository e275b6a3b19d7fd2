#include "core/formats/hash/disk_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/formats/hash/page_cache.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::chrono::milliseconds kLookAgain{50};

std::uint64_t page_of(std::uint64_t offset) {
  return offset - offset % kDirectAlignment;
}

using Pages = std::unique_ptr<std::byte, void (*)(void*)>;
Pages allocate_pages(std::size_t bytes) {
  Pages memory(static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, bytes)), &std::free);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Of what `request` has brought, the bytes from `offset` on.
std::span<const std::byte> brought(const DiskFile& file, const ReadRequest& request, std::uint64_t offset) {
  if (request.error_number != 0)
    throw Error::from_errno("read", request.error_number).in(file.file().path()).at(request.offset);
  if (request.offset + request.got <= offset)
    throw Error::input("the file ends early").in(file.file().path()).at(request.offset + request.got);
  return request.into.first(request.got).subspan(offset - request.offset);
}

}  // namespace

DiskFile::DiskFile(std::shared_ptr<const File> file)
    : file_(std::move(file)), direct_(open_uncached(*file_)) {}

DiskFile::~DiskFile() {
  if (direct_ >= 0) ::close(direct_);
}

// Reading past the cache writes out what lies there; without it that is done here.
void DiskFile::prepare(ReadRequest& request, std::uint64_t offset, std::span<std::byte> into) const {
  request.descriptor = file_->descriptor();
  request.direct_descriptor = direct_;
  request.mode = direct_ >= 0 ? ReadMode::uncached : ReadMode::through_cache;
  request.offset = offset;
  request.into = into;
  if (direct_ >= 0) return;
  constexpr unsigned kWritten =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  ::sync_file_range(request.descriptor, static_cast<off64_t>(offset), static_cast<off64_t>(into.size()),
                    kWritten);
  drop_from_cache(request.descriptor, offset, into.size());
}

void DiskFile::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  thread_local const Pages pages = allocate_pages(kPiece);
  while (!out.empty()) {
    ReadRequest request;
    const std::uint64_t page = page_of(offset);
    prepare(request, page, {pages.get(), std::min<std::uint64_t>(kPiece, offset - page + out.size())});
    perform(request);
    const auto bytes = brought(*this, request, offset);
    const std::size_t size = std::min(bytes.size(), out.size());
    std::memcpy(out.data(), bytes.data(), size);
    out = out.subspan(size);
    offset += size;
  }
}

void DiskStream::open(const DiskFile& file, std::uint64_t begin, std::uint64_t bytes) {
  close();
  if (memory_ == nullptr) memory_ = allocate_pages(kPieces * kPiece);
  file_ = &file;
  position_ = begin;
  requested_ = page_of(begin);
  end_ = begin + bytes;
  fill();
}

void DiskStream::close() {
  std::array<ReadRequest*, kPieces> pending;
  for (std::size_t i = 0; i < in_ring_; ++i) pending[i] = &ring_[(head_ + i) % kPieces];
  if (in_ring_ > 0) pool_.cancel(std::span(pending).first(in_ring_));
  head_ = in_ring_ = 0;
}

void DiskStream::fill() {
  while (in_ring_ < kPieces && requested_ < end_) {
    const std::size_t place = (head_ + in_ring_) % kPieces;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end_ - requested_));
    file_->prepare(ring_[place], requested_, {memory_.get() + place * kPiece, size});
    ring_[place].wakeup = &wakeup_;
    requested_ += size;
    ++in_ring_;
    pool_.submit(ring_[place]);
  }
}

void DiskStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    ReadRequest& piece = ring_[head_];
    while (!piece.done.load(std::memory_order_acquire)) wakeup_.wait_for(kLookAgain);
    const auto bytes = brought(*file_, piece, position_);
    const std::size_t size = std::min(bytes.size(), out.size());
    std::memcpy(out.data(), bytes.data(), size);
    out = out.subspan(size);
    position_ += size;
    if (position_ < piece.offset + piece.into.size()) continue;
    head_ = (head_ + 1) % kPieces;
    --in_ring_;
    fill();
  }
}

}  // namespace assay
