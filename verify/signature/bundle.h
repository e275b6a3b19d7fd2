// A Sigstore bundle: what was signed, the signature, and what is to be known of the signer. The format is
// sigstore/protobuf-specs' sigstore_bundle.proto, versions 0.1 to 0.3, in JSON.
//
// Nothing is verified here; a Bundle is merely well formed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::signature {

struct InclusionProof {
  std::int64_t index = 0, size = 0;
  std::string root;                 // 32 bytes
  std::vector<std::string> hashes;  // of 32 bytes each
  std::string checkpoint;           // a signed note; may be absent in version 0.1
};

// One entry of a transparency log.
struct LogEntry {
  std::int64_t index = 0;
  std::string log_id;  // 32 bytes
  std::string kind, version;
  std::int64_t integrated_time = 0;  // seconds; 0: the log says none (Rekor v2)
  std::string promise;               // the signed entry timestamp; may be empty
  std::optional<InclusionProof> proof;
  std::string body;
};

struct Envelope {
  std::string payload_type, payload;
  std::vector<std::string> signatures;
};

struct MessageSignature {
  std::string sha256;  // as the bundle has it; empty where it does not
  std::string signature;
};

enum class Material { public_key, certificate_chain, certificate };

struct Bundle {
  int version = 3;  // of 0.1, 0.2, 0.3
  Material material = Material::public_key;
  std::string key_hint;                   // of a public key; older bundles have none
  std::vector<std::string> certificates;  // DER, the signer's first
  std::vector<LogEntry> entries;
  std::vector<std::string> timestamps;  // RFC 3161 responses
  std::optional<Envelope> envelope;     // one of these two
  std::optional<MessageSignature> message;
};

// Throws Error::input with `source` as the file.
Bundle parse_bundle(std::string_view text, const std::filesystem::path& source);

}  // namespace assay::signature
