#include "refimpl/tokenizers/byte_level.h"

#include <array>

#include "refimpl/tokenizers/unicode.h"

namespace assay::byte_level {
namespace {

bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<std::optional<std::uint8_t>, 512> bytes;

  Alphabet() {
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = prints(byte) ? static_cast<char32_t>(byte) : next++;
      unicode::append(characters[static_cast<std::size_t>(byte)], code);
      bytes[code] = static_cast<std::uint8_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

void append_encoded(std::string& out, std::string_view bytes) {
  const auto& characters = alphabet().characters;
  for (const char c : bytes) out += characters[static_cast<unsigned char>(c)];
}

std::optional<std::uint8_t> byte_of(char32_t character) {
  const auto& bytes = alphabet().bytes;
  return character < bytes.size() ? bytes[character] : std::nullopt;
}

std::optional<std::string> decoded(std::string_view piece) {
  std::string bytes;
  bool inside = true;
  unicode::for_each_character(piece, [&](const unicode::Character& c, std::string_view) {
    const auto byte = byte_of(c.code);
    if (byte)
      bytes += static_cast<char>(*byte);
    else
      inside = false;
  });
  if (!inside) return std::nullopt;
  return bytes;
}

}  // namespace assay::byte_level
