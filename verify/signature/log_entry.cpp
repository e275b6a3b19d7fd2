#include "verify/signature/log_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "verify/signature/checkpoint.h"
#include "verify/signature/encoding.h"
#include "verify/signature/json_fields.h"

namespace assay::signature {
namespace {

constexpr JsonLimits kBodyLimits{.max_bytes = 64ull << 20, .max_depth = 32};

const Log& log_of(const LogEntry& entry, const TrustedRoot& root) {
  for (const Log& log : root.logs) {
    const bool now = entry.integrated_time == 0 || log.window.holds(entry.integrated_time * 1000);
    if (log.is_called(entry.log_id) && now) return log;
  }
  throw Error::refused("its entry is in no transparency log that is trusted");
}

void check_proof(const LogEntry& entry, const InclusionProof& proof, const Log& log) {
  const Checkpoint checkpoint = parse_checkpoint(proof.checkpoint);
  check_checkpoint(checkpoint, log);
  if (checkpoint.root != proof.root || checkpoint.size != proof.size)
    throw Error::refused("the proof of its entry is of another state of the log than the checkpoint");
  if (root_from_proof(proof.index, proof.size, leaf_hash(entry.body), proof.hashes) != proof.root)
    throw Error::refused("its entry is not in the transparency log");
}

// The canonical JSON (RFC 8785) that Rekor 1 signs.
std::string promised(const LogEntry& entry) {
  return fmt::format(R"({{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}})",
                     encode_base64(entry.body), entry.integrated_time, hex(entry.log_id), entry.index);
}

// Where what the log has differs from what lies in the bundle.
class Comparison {
 public:
  Comparison(const Logged& logged) : logged_(logged) {}

  void hash(const ParsedJson& object, std::string_view bytes) const {
    if (text_in(object, "algorithm") != "sha256" || text_in(object, "value") != hex(bytes)) fail();
  }
  void digest(const ParsedJson& object, std::string_view bytes) const {
    if (text_in(object, "algorithm") != "SHA2_256" || bytes_in(object, "digest") != bytes) fail();
  }
  void signature(std::string_view bytes) const {
    if (bytes != logged_.signature) fail();
  }
  // However its lines are broken.
  void pem(std::string_view text) const {
    const Certificates logged = certificates_from_pem(text, "the transparency log's entry");
    if (logged.size() != 1 || X509_cmp(logged[0].get(), logged_.certificate.get()) != 0) fail();
  }
  // Rekor 2's, which knows both keys and certificates.
  void verifier(const ParsedJson& json) const {
    if (bytes_in(object_in(json, "x509Certificate"), "rawBytes") != der_of(logged_.certificate)) fail();
  }
  const ParsedJson& only(const ParsedJson& list) const {
    if (list.size() != 1) fail();
    return list[0];
  }
  std::string pae_digest() const {
    return sha256(pae(logged_.envelope->payload_type, logged_.envelope->payload));
  }
  std::string payload_digest() const { return sha256(logged_.envelope->payload); }
  std::string signed_digest() const {
    return logged_.envelope != nullptr ? pae_digest() : logged_.message_sha256;
  }
  bool of_envelope() const { return logged_.envelope != nullptr; }
  [[noreturn]] static void fail() {
    throw Error::refused("its entry in the transparency log is of something else");
  }

 private:
  const Logged& logged_;
};

void compare_hashedrekord_1(const ParsedJson& spec, const Comparison& same) {
  if (same.of_envelope()) Comparison::fail();
  same.hash(object_in(object_in(spec, "data"), "hash"), same.signed_digest());
  const ParsedJson& signature = object_in(spec, "signature");
  same.signature(bytes_in(signature, "content"));
  same.pem(bytes_in(object_in(signature, "publicKey"), "content"));
}

void compare_hashedrekord_2(const ParsedJson& spec, const Comparison& same) {
  const ParsedJson& record = object_in(spec, "hashedRekordV002");
  same.digest(object_in(record, "data"), same.signed_digest());
  const ParsedJson& signature = object_in(record, "signature");
  same.signature(bytes_in(signature, "content"));
  same.verifier(object_in(signature, "verifier"));
}

// Its hash of the envelope cannot be checked: nobody says how the envelope was written.
void compare_dsse_1(const ParsedJson& spec, const Comparison& same) {
  if (!same.of_envelope()) Comparison::fail();
  same.hash(object_in(spec, "payloadHash"), same.payload_digest());
  const ParsedJson& signature = same.only(array_in(spec, "signatures"));
  same.signature(bytes_in(signature, "signature"));
  same.pem(bytes_in(signature, "verifier"));
}

void compare_dsse_2(const ParsedJson& spec, const Comparison& same) {
  if (!same.of_envelope()) Comparison::fail();
  const ParsedJson& record = object_in(spec, "dsseV002");
  same.digest(object_in(record, "payloadHash"), same.payload_digest());
  const ParsedJson& signature = same.only(array_in(record, "signatures"));
  same.signature(bytes_in(signature, "content"));
  same.verifier(object_in(signature, "verifier"));
}

// Its signature is the base64 of base64.
void compare_intoto_2(const ParsedJson& spec, const Comparison& same) {
  if (!same.of_envelope()) Comparison::fail();
  const ParsedJson& content = object_in(spec, "content");
  same.hash(object_in(content, "payloadHash"), same.payload_digest());
  const ParsedJson& signature = same.only(array_in(object_in(content, "envelope"), "signatures"));
  same.signature(decode_base64(bytes_in(signature, "sig")).value_or(""));
  same.pem(bytes_in(signature, "publicKey"));
}

using Compare = void (*)(const ParsedJson&, const Comparison&);
struct Kind {
  std::string_view kind, version;
  Compare compare;
};
constexpr Kind kKinds[] = {{"hashedrekord", "0.0.1", compare_hashedrekord_1},
                           {"hashedrekord", "0.0.2", compare_hashedrekord_2},
                           {"dsse", "0.0.1", compare_dsse_1},
                           {"dsse", "0.0.2", compare_dsse_2},
                           {"intoto", "0.0.2", compare_intoto_2}};

}  // namespace

void check_in_log(const LogEntry& entry, int bundle_version, const TrustedRoot& root) {
  const Log& log = log_of(entry, root);
  const bool proven = entry.proof && !entry.proof->checkpoint.empty();
  if (!proven && (bundle_version > 1 || entry.promise.empty()))
    throw Error::refused("nothing proves that its entry is in the transparency log");
  if (proven) check_proof(entry, *entry.proof, log);
  if (!entry.promise.empty() && !log.key.verifies(promised(entry), entry.promise))
    throw Error::refused("the transparency log has not promised its entry");
}

void check_body(const LogEntry& entry, const Logged& logged) {
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) {
    return one.kind == entry.kind && one.version == entry.version;
  });
  if (kind == std::end(kKinds))
    throw Error::refused(
        fmt::format("its entry in the transparency log is of the kind {} {}, which is not known here",
                    entry.kind, entry.version));
  const ParsedJson body = parse_json(entry.body, "the transparency log's entry", kBodyLimits);
  if (text_in(body, "kind") != entry.kind || text_in(body, "apiVersion") != entry.version) Comparison::fail();
  kind->compare(object_in(body, "spec"), Comparison(logged));
}

}  // namespace assay::signature
