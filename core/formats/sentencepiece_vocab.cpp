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

// take(the message) for each field of this number in ModelProto, whatever stands between.
template <class Take>
void for_each_field(Wire& model, std::uint64_t field, const std::filesystem::path& source, Take&& take) {
  while (!model.done()) {
    const std::uint64_t key = model.varint();
    if (key != tag(field, 2)) {
      model.skip(key & 7);
      continue;
    }
    const std::string_view message = model.message();
    take(Wire(message, model.offset() - message.size(), source));
  }
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, std::uint64_t field, std::uint64_t value) {
  put_varint(out, tag(field, 0));
  put_varint(out, value);
}
void put_message(std::string& out, std::uint64_t field, std::string_view message) {
  put_varint(out, tag(field, 2));
  put_varint(out, message.size());
  out += message;
}

}  // namespace

// Fields of sentencepiece_model.proto: TrainerSpec 2 (model_type 3, vocab_size 4, byte_fallback 35, unk_id
// 40, bos_id 41, eos_id 42), NormalizerSpec 3 (name 1, add_dummy_prefix 3, remove_extra_whitespaces 4,
// escape_whitespaces 5).
std::string serialize_sentencepiece_bpe(const std::vector<SentencePiece>& pieces, const SentencePieceIds& ids,
                                        bool prefix) {
  constexpr std::uint64_t kBpe = 2;
  std::string out;
  for (const SentencePiece& piece : pieces) {
    std::string message;
    put_message(message, 1, piece.text);
    put_varint(message, tag(2, 5));
    char score[sizeof piece.score];
    std::memcpy(score, &piece.score, sizeof score);
    message.append(score, sizeof score);
    put_number(message, 3, static_cast<std::uint64_t>(piece.type));
    put_message(out, 1, message);
  }
  std::string trainer, normalizer;
  put_number(trainer, 3, kBpe);
  put_number(trainer, 4, pieces.size());
  put_number(trainer, 35, 1);
  put_number(trainer, 40, ids.unknown);
  put_number(trainer, 41, ids.begin);
  put_number(trainer, 42, ids.end);
  put_message(out, 2, trainer);
  put_message(normalizer, 1, "identity");
  put_number(normalizer, 3, prefix ? 1 : 0);
  put_number(normalizer, 4, 0);
  put_number(normalizer, 5, 1);
  put_message(out, 3, normalizer);
  return out;
}

std::vector<SentencePiece> parse_sentencepiece_vocab(std::string_view bytes,
                                                     const std::filesystem::path& source) {
  std::vector<SentencePiece> pieces;
  Wire wire(bytes, 0, source);
  for_each_field(wire, 1, source, [&](Wire piece) { pieces.push_back(parse_piece(piece)); });
  if (pieces.empty()) wire.fail("it has no pieces");
  return pieces;
}

bool sentencepiece_adds_prefix(std::string_view bytes, const std::filesystem::path& source) {
  bool adds = true;
  Wire wire(bytes, 0, source);
  for_each_field(wire, 3, source, [&](Wire normalizer) {
    while (!normalizer.done()) {
      const std::uint64_t field = normalizer.varint();
      if (field == tag(3, 0))
        adds = normalizer.varint() != 0;
      else
        normalizer.skip(field & 7);
    }
  });
  return adds;
}

}  // namespace assay
