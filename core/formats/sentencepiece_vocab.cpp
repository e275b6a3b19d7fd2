#include "core/formats/sentencepiece_vocab.h"

#include <fmt/format.h>

#include <cstring>

#include "core/system/error.h"

namespace assay {
namespace {

// The four wire types that are still written: a varint, 8 bytes, a length and so many bytes, 4 bytes.
class Wire {
 public:
  Wire(std::string_view bytes, std::uint64_t base, const std::filesystem::path& source)
      : bytes_(bytes), base_(base), source_(source) {}

  bool done() const { return at_ == bytes_.size(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("a number of more than ten bytes");
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("a field runs beyond the end");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::string_view message() { return take(varint()); }
  std::uint64_t offset() const { return base_ + at_; }

  void skip(std::uint64_t wire_type) {
    switch (wire_type) {
      case 0: varint(); return;
      case 1: take(8); return;
      case 2: message(); return;
      case 5: take(4); return;
      default: fail(fmt::format("an unknown wire type, {}", wire_type));
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error::input(fmt::format("is no SentencePiece model: {}", what)).in(source_).at(offset());
  }

 private:
  std::string_view bytes_;
  std::uint64_t base_;
  const std::filesystem::path& source_;
  std::size_t at_ = 0;
};

constexpr std::uint64_t tag(std::uint64_t field, std::uint64_t wire_type) {
  return field << 3 | wire_type;
}

SentencePiece parse_piece(Wire wire) {
  SentencePiece piece;
  while (!wire.done()) {
    const std::uint64_t key = wire.varint();
    if (key == tag(1, 2)) {
      piece.text = wire.message();
    } else if (key == tag(2, 5)) {
      std::memcpy(&piece.score, wire.take(4).data(), sizeof piece.score);
    } else if (key == tag(3, 0)) {
      const std::uint64_t type = wire.varint();
      if (type < 1 || type > 6) wire.fail(fmt::format("a piece of type {}", type));
      piece.type = static_cast<SentencePiece::Type>(type);
    } else {
      wire.skip(key & 7);
    }
  }
  return piece;
}

}  // namespace

std::vector<SentencePiece> parse_sentencepiece_vocab(std::string_view bytes,
                                                     const std::filesystem::path& source) {
  std::vector<SentencePiece> pieces;
  Wire wire(bytes, 0, source);
  while (!wire.done()) {
    const std::uint64_t key = wire.varint();
    if (key != tag(1, 2)) {
      wire.skip(key & 7);
      continue;
    }
    const std::string_view message = wire.message();
    pieces.push_back(parse_piece({message, wire.offset() - message.size(), source}));
  }
  if (pieces.empty()) wire.fail("it has no pieces");
  return pieces;
}

}  // namespace assay
