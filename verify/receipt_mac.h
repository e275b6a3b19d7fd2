// HMAC-SHA256 (RFC 2104, by OpenSSL) over a receipt's own text, in which the 64 digits of the code itself
// stand as zeros. Anybody with the key can do the same:
//
//   sed -E 's/("mac": ")[0-9a-f]{64}/\1000…0/' r.json | openssl dgst -sha256 -mac HMAC -macopt hexkey:…
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// The key: the file's bytes as they are. Throws Error::usage for fewer than 16.
std::string read_receipt_key(const std::filesystem::path& file);

// What stands where the code is to be written: a JSON string of 64 zeros.
std::string mac_placeholder();
// `text` with its code filled in. It must hold "mac": "000…0" once.
std::string sealed(std::string text, std::string_view key);

enum class Seal { none, broken, whole };
Seal check_seal(std::string text, std::string_view key);

}  // namespace assay
