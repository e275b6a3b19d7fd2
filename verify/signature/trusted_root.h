// Whom keyless signatures are traced back to: Fulcio's certificate authorities, the certificate and signature
// transparency logs, the time stamp authorities, each with the time it is trusted for. The format is
// sigstore/protobuf-specs' sigstore_trustroot.proto, in JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/signature/keys.h"
#include "verify/signature/openssl.h"

namespace assay::signature {

// Both ends belong to it.
struct Window {
  std::int64_t begin_ms = 0;
  std::optional<std::int64_t> end_ms;
  bool holds(std::int64_t ms) const { return ms >= begin_ms && (!end_ms || ms <= *end_ms); }
};

struct Log {
  std::string host;  // of its address
  std::string id;    // 32 bytes
  PublicKey key;
  Window window;
  std::string checkpoint_id;  // by which its checkpoints are signed: mostly `id`

  bool is_called(std::string_view name) const { return id == name || checkpoint_id == name; }
};

struct Authority {
  Certificates chain;  // the issuing one first, the root last
  Window window;
};

struct TrustedRoot {
  std::string origin;  // for people: the file, or what is built in and of when
  std::string digest;  // SHA-256 of the document, hex
  std::vector<Log> logs, certificate_logs;
  std::vector<Authority> certificate_authorities, timestamp_authorities;
};

// Also a client's trust configuration, which holds one. Throws Error::input.
TrustedRoot parse_trusted_root(std::string_view text, const std::filesystem::path& source);
TrustedRoot read_trusted_root(const std::filesystem::path& file);
// Sigstore's public-good instance, as of embedded_trusted_root_date(): sigstore_public_good.json beside this file.
const TrustedRoot& embedded_trusted_root();
std::string_view embedded_trusted_root_date();  // "2025-09-22"

}  // namespace assay::signature
