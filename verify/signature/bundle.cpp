#include "verify/signature/bundle.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "verify/signature/json_fields.h"

namespace assay::signature {
namespace {

// A million files of a model take about 250 bytes each, and base64 a third more.
constexpr JsonLimits kBundleLimits{.max_bytes = 512ull << 20, .max_depth = 32};
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kMostProofHashes = 64;

int version_of(const std::string& media_type) {
  if (media_type == "application/vnd.dev.sigstore.bundle+json;version=0.1") return 1;
  if (media_type == "application/vnd.dev.sigstore.bundle+json;version=0.2") return 2;
  if (media_type == "application/vnd.dev.sigstore.bundle+json;version=0.3" ||
      media_type == "application/vnd.dev.sigstore.bundle.v0.3+json")
    return 3;
  throw Error::input(fmt::format("is of media type '{}', no Sigstore bundle 0.1 to 0.3", media_type));
}

std::string hash_in(const ParsedJson& object, std::string_view name) {
  std::string bytes = bytes_in(object, name);
  if (bytes.size() != kHashBytes) throw Error::input(fmt::format("{} is not of 32 bytes", name));
  return bytes;
}

InclusionProof proof_in(const ParsedJson& json) {
  InclusionProof proof;
  proof.index = field(json, "logIndex") != nullptr ? count_in(json, "logIndex") : 0;
  proof.size = count_in(json, "treeSize");
  proof.root = hash_in(json, "rootHash");
  if (field(json, "hashes") != nullptr) {
    for (const ParsedJson& hash : array_in(json, "hashes")) {
      proof.hashes.push_back(hash_in(ParsedJson{{"hashes", hash}}, "hashes"));
      if (proof.hashes.size() > kMostProofHashes) throw Error::input("hashes is longer than any proof");
    }
  }
  if (field(json, "checkpoint") != nullptr)
    proof.checkpoint = text_in(object_in(json, "checkpoint"), "envelope");
  return proof;
}

LogEntry entry_in(const ParsedJson& json) {
  LogEntry entry;
  entry.index = field(json, "logIndex") != nullptr ? count_in(json, "logIndex") : 0;
  entry.log_id = hash_in(object_in(json, "logId"), "keyId");
  const ParsedJson& kind = object_in(json, "kindVersion");
  entry.kind = text_in(kind, "kind");
  entry.version = text_in(kind, "version");
  if (field(json, "integratedTime") != nullptr) entry.integrated_time = count_in(json, "integratedTime");
  if (field(json, "inclusionPromise") != nullptr)
    entry.promise = bytes_in(object_in(json, "inclusionPromise"), "signedEntryTimestamp");
  if (field(json, "inclusionProof") != nullptr) entry.proof = proof_in(object_in(json, "inclusionProof"));
  entry.body = bytes_in(json, "canonicalizedBody");
  return entry;
}

void read_signer(const ParsedJson& material, Bundle& bundle) {
  const bool key = field(material, "publicKey") != nullptr;
  const bool chain = field(material, "x509CertificateChain") != nullptr;
  const bool certificate = field(material, "certificate") != nullptr;
  if (key + chain + certificate != 1)
    throw Error::input(
        "verificationMaterial has to have one of publicKey, x509CertificateChain and certificate");
  if (key) {
    const ParsedJson& identifier = object_in(material, "publicKey");
    if (field(identifier, "hint") != nullptr) bundle.key_hint = text_in(identifier, "hint");
  } else if (certificate) {
    bundle.material = Material::certificate;
    bundle.certificates.push_back(bytes_in(object_in(material, "certificate"), "rawBytes"));
  } else {
    bundle.material = Material::certificate_chain;
    for (const ParsedJson& one : array_in(object_in(material, "x509CertificateChain"), "certificates"))
      bundle.certificates.push_back(bytes_in(one, "rawBytes"));
    if (bundle.certificates.empty()) throw Error::input("x509CertificateChain has no certificate");
  }
}

void read_witnesses(const ParsedJson& material, Bundle& bundle) {
  if (field(material, "tlogEntries") != nullptr) {
    for (const ParsedJson& entry : array_in(material, "tlogEntries"))
      bundle.entries.push_back(entry_in(entry));
  }
  if (bundle.material == Material::certificate && bundle.entries.empty())
    throw Error::input("has a certificate of Sigstore's kind and no tlogEntries");
  const ParsedJson* data = field(material, "timestampVerificationData");
  if (data == nullptr || field(*data, "rfc3161Timestamps") == nullptr) return;
  for (const ParsedJson& one : array_in(*data, "rfc3161Timestamps"))
    bundle.timestamps.push_back(bytes_in(one, "signedTimestamp"));
}

Envelope envelope_in(const ParsedJson& json) {
  Envelope envelope;
  envelope.payload_type = text_in(json, "payloadType");
  envelope.payload = bytes_in(json, "payload");
  for (const ParsedJson& one : array_in(json, "signatures"))
    envelope.signatures.push_back(bytes_in(one, "sig"));
  if (envelope.signatures.empty()) throw Error::input("dsseEnvelope has no signature");
  return envelope;
}

MessageSignature message_in(const ParsedJson& json) {
  MessageSignature message;
  message.signature = bytes_in(json, "signature");
  if (field(json, "messageDigest") == nullptr) return message;
  const ParsedJson& digest = object_in(json, "messageDigest");
  if (text_in(digest, "algorithm") != "SHA2_256") throw Error::input("messageDigest is no SHA-256");
  message.sha256 = hash_in(digest, "digest");
  return message;
}

}  // namespace

Bundle parse_bundle(std::string_view text, const std::filesystem::path& source) {
  const ParsedJson json = parse_json(text, source, kBundleLimits);
  try {
    Bundle bundle;
    bundle.version = version_of(text_in(json, "mediaType"));
    const ParsedJson& material = object_in(json, "verificationMaterial");
    read_signer(material, bundle);
    read_witnesses(material, bundle);
    if (field(json, "dsseEnvelope") != nullptr)
      bundle.envelope = envelope_in(object_in(json, "dsseEnvelope"));
    if (field(json, "messageSignature") != nullptr)
      bundle.message = message_in(object_in(json, "messageSignature"));
    if (bundle.envelope.has_value() == bundle.message.has_value())
      throw Error::input("has to have one of dsseEnvelope and messageSignature");
    return bundle;
  } catch (Error& error) {
    throw error.in(source);
  }
}

}  // namespace assay::signature
