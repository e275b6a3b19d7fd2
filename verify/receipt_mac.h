// HMAC-SHA256 (RFC 2104, by OpenSSL) over a receipt's own text, in which the 64 digits of the code itself
// stand as zeros. Anybody with the key can do the same:
//
//   sed -E 's/("mac": ")[0-9a-f]{64}/\1000…0/' r.json | openssl dgst -sha256 -mac HMAC -macopt hexkey:…
#pragma once

#include <openssl/evp.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/system/json_stream.h"

namespace assay {

// The key: the file's bytes as they are. Throws Error::usage for fewer than 16.
std::string read_receipt_key(const std::filesystem::path& file);

// What stands where the code is to be written: a JSON string of 64 zeros.
std::string mac_placeholder();
// HMAC-SHA256 of a text that comes in pieces.
class TextCode {
 public:
  explicit TextCode(std::string_view key);
  void add(std::string_view text);
  std::string hex();  // once, at the end

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// A text that passes through and gets its code: the last piece must hold "mac": "000…0".
class SealedText {
 public:
  SealedText(std::string_view key, WriteText write) : code_(key), write_(std::move(write)) {}
  void write(std::string piece);
  void finish();

 private:
  TextCode code_;
  WriteText write_;
  std::string last_;  // held back
};

enum class Seal { none, broken, whole };
Seal check_seal(std::string_view text, std::string_view key);

}  // namespace assay
