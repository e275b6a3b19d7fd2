#include "refimpl/tokenizers/sentencepiece_model.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <optional>

#include "core/system/error.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// One field of a protobuf message (protobuf.dev/programming-guides/encoding).
struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of varints and fixed numbers
  std::string_view bytes;   // of length-delimited fields
};

class MessageReader {
 public:
  MessageReader(std::string_view message, const fs::path& source) : rest_(message), source_(source) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field = {};
    field.number = static_cast<std::uint32_t>(tag >> 3);
    if (tag >> 3 == 0 || tag >> 32 != 0) fail("has a field of number 0 or beyond 2^29");
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: field.value = fixed(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.value = fixed(4); break;
      default: fail(fmt::format("has a field of wire type {}", tag & 7));
    }
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error::input("is no SentencePiece model: " + what).in(source_);
  }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail("a field is longer than what holds it");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number has more than ten bytes");
  }
  std::uint64_t fixed(std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

  std::string_view rest_;
  const fs::path& source_;
};

void for_each_field(std::string_view message, const fs::path& source,
                    const std::function<void(const Field&)>& visit) {
  MessageReader reader(message, source);
  for (Field field; reader.next(field);) visit(field);
}

void read_piece(std::string_view message, const fs::path& source, SentencePieceModel& model) {
  std::string_view text;
  float score = 0;
  std::uint64_t kind = 1;
  for_each_field(message, source, [&](const Field& field) {
    if (field.number == 1) text = field.bytes;
    if (field.number == 2) {
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&score, &bits, sizeof score);
    }
    if (field.number == 3) kind = field.value;
  });
  if (kind < 1 || kind > 6 || text.empty() || !(score == score)) {
    throw Error::input(
        fmt::format("piece {} is empty, not a number, or of kind {}", model.scores.size(), kind))
        .in(source);
  }
  model.vocabulary.set(static_cast<TokenId>(model.scores.size()), text, static_cast<PieceKind>(kind));
  model.scores.push_back(score);
}

void read_trainer(std::string_view message, const fs::path& source, SentencePieceModel& model) {
  struct {
    std::int32_t unk = 0, bos = 1, eos = 2, pad = -1;
  } ids;
  for_each_field(message, source, [&](const Field& field) {
    const auto number = static_cast<std::int32_t>(field.value);
    switch (field.number) {
      case 3:
        if (field.value < 1 || field.value > 4)
          throw Error::input(fmt::format("model type {} is none we know", field.value)).in(source);
        model.type = static_cast<SentencePieceModel::Type>(field.value);
        break;
      case 24: model.space_as_suffix = field.value != 0; break;
      case 35: model.byte_fallback = field.value != 0; break;
      case 40: ids.unk = number; break;
      case 41: ids.bos = number; break;
      case 42: ids.eos = number; break;
      case 43: ids.pad = number; break;
      case 44: model.unk_surface = field.bytes; break;
      default: break;
    }
  });
  const auto known = [&](std::int32_t id) -> std::optional<TokenId> {
    if (id < 0 || static_cast<std::size_t>(id) >= model.vocabulary.size()) return std::nullopt;
    return static_cast<TokenId>(id);
  };
  model.special.unk = known(ids.unk);
  model.special.bos = known(ids.bos);
  model.special.eos = known(ids.eos);
  model.special.pad = known(ids.pad);
}

void read_normalizer_spec(std::string_view message, const fs::path& source, SentencePieceModel& model) {
  for_each_field(message, source, [&](const Field& field) {
    switch (field.number) {
      case 2: model.charsmap = field.bytes; break;
      case 3: model.add_dummy_prefix = field.value != 0; break;
      case 4: model.remove_extra_spaces = field.value != 0; break;
      case 5: model.escape_spaces = field.value != 0; break;
      default: break;
    }
  });
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const fs::path& source) {
  SentencePieceModel model;
  std::string_view trainer;
  for_each_field(bytes, source, [&](const Field& field) {
    if (field.number == 1) read_piece(field.bytes, source, model);
    if (field.number == 2) trainer = field.bytes;
    if (field.number == 3) read_normalizer_spec(field.bytes, source, model);
  });
  if (model.scores.empty()) throw Error::input("is no SentencePiece model: it has no pieces").in(source);
  read_trainer(trainer, source, model);
  // What counts is which piece is of kind "unknown"; the trainer's number is a wish.
  for (TokenId id = 0; id < model.vocabulary.size(); ++id) {
    if (model.vocabulary.kind(id) == PieceKind::unknown) model.special.unk = id;
  }
  find_end_of_generation(model.special, model.vocabulary);
  return model;
}

}  // namespace assay
