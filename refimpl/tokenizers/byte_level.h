// GPT-2's alphabet: each of the 256 bytes as a printable character, so that vocabularies can be text.
// (openai/gpt-2 encoder.py, bytes_to_unicode: bytes that print stand for themselves, the others are U+0100
// on.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::byte_level {

void append_encoded(std::string& out, std::string_view bytes);
std::optional<std::uint8_t> byte_of(char32_t character);
// The bytes of a piece; nullopt when it holds a character outside the alphabet.
std::optional<std::string> decoded(std::string_view piece);

}  // namespace assay::byte_level
