#include "verify/claims/unpack.h"

#include <fmt/format.h>
#include <zlib.h>
#if ASSAY_HAS_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <limits>
#include <vector>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kUnpackedPiece = 1u << 18;

class Raw : public Unpacker {
 public:
  void consume(std::span<const std::byte> packed, const Out& out) override { out(packed); }
  void finish() override {}
};

// Counts both sides.
class Bounded : public Unpacker {
 protected:
  void took(std::uint64_t packed) { packed_ += packed; }
  void made(std::uint64_t unpacked) {
    unpacked_ += unpacked;
    if (unpacked_ <= kUnpackedFreely || unpacked_ / kUnpackedPerByte <= packed_) return;
    throw Error::input(fmt::format("is a decompression bomb: {} make more than {}", human_bytes(packed_),
                                   human_bytes(unpacked_)));
  }
  [[noreturn]] void broken(std::string_view why) const {
    throw Error::input(fmt::format("cannot be unpacked: {}", why)).at(packed_);
  }
  std::vector<std::byte> piece_ = std::vector<std::byte>(kUnpackedPiece);

 private:
  std::uint64_t packed_ = 0, unpacked_ = 0;
};

// One gzip member or several (RFC 1952).
class Gzip : public Bounded {
 public:
  Gzip() {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw Error::internal("zlib cannot be started");
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void consume(std::span<const std::byte> packed, const Out& out) override {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    for (; !packed.empty(); packed = packed.subspan(std::min(packed.size(), kMost)))
      consume_some(packed.first(std::min(packed.size(), kMost)), out);
  }
  void finish() override {
    if (!ended_) broken("the gzip stream ends early");
  }

 private:
  void consume_some(std::span<const std::byte> packed, const Out& out) {
    // zlib reads through a pointer that is not to const and does not write.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    while (true) {
      if (ended_) {
        if (stream_.avail_in == 0) return;
        inflateReset(&stream_);
        ended_ = false;
      }
      const uInt before = stream_.avail_in;
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      const int state = inflate(&stream_, Z_NO_FLUSH);
      took(before - stream_.avail_in);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        broken(stream_.msg != nullptr ? stream_.msg : "the gzip stream is damaged");
      const std::size_t n = piece_.size() - stream_.avail_out;
      made(n);
      if (n > 0) out(std::span(piece_).first(n));
      ended_ = state == Z_STREAM_END;
      if (!ended_ && stream_.avail_in == 0 && stream_.avail_out > 0) return;
    }
  }

  z_stream stream_{};
  bool ended_ = false;
};

#if ASSAY_HAS_ZSTD
// One frame or several. Windows beyond 128 MiB are refused, as the zstd program refuses them.
class Zstd : public Bounded {
 public:
  Zstd() : stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (stream_ == nullptr) throw Error::internal("libzstd cannot be started");
  }
  void consume(std::span<const std::byte> packed, const Out& out) override {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    bool full = false;  // more may wait to be taken out
    while (in.pos < in.size || full) {
      const std::size_t before = in.pos;
      ZSTD_outBuffer made_here{piece_.data(), piece_.size(), 0};
      const std::size_t state = ZSTD_decompressStream(stream_.get(), &made_here, &in);
      took(in.pos - before);
      if (ZSTD_isError(state) != 0) broken(ZSTD_getErrorName(state));
      made(made_here.pos);
      if (made_here.pos > 0) out(std::span(piece_).first(made_here.pos));
      ended_ = state == 0;
      full = made_here.pos == made_here.size && !ended_;
    }
  }
  void finish() override {
    if (!ended_) broken("the zstd stream ends early");
  }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool ended_ = false;
};
#endif

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(Packing packing) {
  switch (packing) {
    case Packing::gzip: return std::make_unique<Gzip>();
    case Packing::zstd:
#if ASSAY_HAS_ZSTD
      return std::make_unique<Zstd>();
#else
      throw Error::input("is packed by zstd, which this program was built without")
          .remedy("build it where libzstd-dev is installed");
#endif
    case Packing::none: break;
  }
  return std::make_unique<Raw>();
}

}  // namespace assay
