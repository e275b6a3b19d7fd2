// Bytes as signatures meet them: base64, SHA-256, big-endian numbers. A std::string holds bytes here, not text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::signature {

std::string encode_base64(std::string_view bytes);
// RFC 4648 §4 and nothing else: padded, no blanks, no other alphabet, and no stray bits in the last digit; so
// two texts never mean the same bytes.
std::optional<std::string> decode_base64(std::string_view text);

std::string sha256(std::string_view bytes);
std::string hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view digits);

// "2022-10-31T23:59:59.999Z" in milliseconds since 1970. Throws Error::input for anything else.
std::int64_t parse_time_ms(std::string_view text);
// "2025-09-23 00:00:00 UTC"
std::string show_time(std::int64_t seconds);

// DSSE's pre-authentication encoding: what is signed in place of a payload, so that its type is signed too.
std::string pae(std::string_view type, std::string_view payload);
// The same as model-signing 0.2.0 had it: the payload as Python prints a bytes object, and "DSSEV1".
std::string pae_of_first_release(std::string_view type, std::string_view payload);

}  // namespace assay::signature
