#include "verify/signature/verify_bundle.h"

#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/system/error.h"
#include "verify/signature/certificate_log.h"
#include "verify/signature/encoding.h"
#include "verify/signature/log_entry.h"
#include "verify/signature/statement.h"
#include "verify/signature/timestamp.h"

namespace assay::signature {
namespace {

constexpr std::size_t kMostTimestamps = 32;
constexpr std::size_t kHintDigits = 64;
constexpr int kModelVersion = 3;

const std::string& signature_of(const Bundle& bundle) {
  if (bundle.message) return bundle.message->signature;
  if (bundle.envelope->signatures.size() != 1) throw Error::refused("it has to have exactly one signature");
  return bundle.envelope->signatures[0];
}

std::string message_digest(const Bundle& bundle, const std::optional<std::string_view>& message) {
  if (!message) throw Error::refused("it is of one file, not of a model's list of files");
  std::string digest = sha256(*message);
  if (!bundle.message->sha256.empty() && bundle.message->sha256 != digest)
    throw Error::refused("it is of another file");
  return digest;
}

// Model-signing 0.2.0 signed something slightly else than DSSE's encoding: taken from what it wrote alone.
void check_signature(const Bundle& bundle, const PublicKey& key,
                     const std::optional<std::string_view>& message, bool first_release_too) {
  const std::string& signature = signature_of(bundle);
  if (bundle.message) {
    message_digest(bundle, message);
    if (key.verifies(*message, signature)) return;
  } else {
    const Envelope& envelope = *bundle.envelope;
    if (key.verifies(pae(envelope.payload_type, envelope.payload), signature)) return;
    if (first_release_too && claims_first_release(envelope.payload) &&
        key.verifies(pae_of_first_release(envelope.payload_type, envelope.payload), signature))
      return;
  }
  throw Error::refused("the signature is not by that key, or what was signed has been changed");
}

Certificate read_certificate(const std::string& der) {
  Certificate certificate = certificate_from_der(der);
  if (certificate == nullptr) throw Error::refused("a certificate of it cannot be read");
  return certificate;
}

Certificates certificates_above(const Bundle& bundle) {
  Certificates others;
  for (std::size_t i = 1; i < bundle.certificates.size(); ++i)
    others.push_back(read_certificate(bundle.certificates[i]));
  return others;
}

// Those that a chain does not need are looked at, too: nothing that a bundle brings may have been changed.
void require_issued(const Certificates& brought, const Certificates& known) {
  Certificates issuers = brought;
  issuers.insert(issuers.end(), known.begin(), known.end());
  for (const Certificate& one : brought) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const Certificate& other) {
      return X509_cmp(one.get(), other.get()) == 0;
    });
    if (!is_known && !is_issued_by_one_of(one, issuers))
      throw Error::refused(
          "it brings a certificate that none of those known here has issued, or that has been changed");
  }
}

PublicKey key_of(const Certificate& certificate) {
  auto key = PublicKey::of(certificate);
  if (!key) throw Error::refused("its certificate's key is of a kind that is not known here");
  return std::move(*key);
}

void require(const Bundle& bundle, Material material, std::string_view asked) {
  if (bundle.material == material) return;
  const std::string_view is = bundle.material == Material::public_key    ? "a key"
                              : bundle.material == Material::certificate ? "keyless"
                                                                         : "a certificate chain";
  throw Error::refused(fmt::format("it is signed by way of {}, and {} was asked for", is, asked));
}

std::int64_t today() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Signer verify_by_key(const Bundle& bundle, const ByKey& method,
                     const std::optional<std::string_view>& message) {
  require(bundle, Material::public_key, "a key");
  if (bundle.version != kModelVersion)
    throw Error::refused("its media type is not that of bundles signed by a key");
  const std::string hint = method.key.hint();
  check_signature(bundle, method.key, message, true);
  // Other programs have other hints; one of this form is the key's or the bundle is about another key.
  if (bundle.key_hint.size() == kHintDigits && bundle.key_hint != hint && from_hex(bundle.key_hint))
    throw Error::refused(fmt::format("it names the key {:.12}…, not {:.12}…", bundle.key_hint, hint));
  Signer signer{"key", fmt::format("the key {} ({} {:.12}…)", method.file, method.key.kind(), hint)};
  signer.certificate = hint;
  return signer;
}

// No witness says when it was signed: the chain is looked at as of the moment from which the signer's
// certificate is valid, as model-signing does.
Signer verify_by_certificate(const Bundle& bundle, const ByCertificate& method,
                             const std::optional<std::string_view>& message) {
  require(bundle, Material::certificate_chain, "a certificate");
  if (bundle.version != kModelVersion)
    throw Error::refused("its media type is not that of bundles signed by a certificate");
  const Certificate leaf = read_certificate(bundle.certificates[0]);
  const Certificates others = certificates_above(bundle);
  const Certificates chain = build_chain(leaf, others, method.anchors, not_before(leaf));
  require_issued(others, method.anchors);
  if (!may_sign(leaf) && !is_code_signer(leaf)) throw Error::refused("its certificate is not for signing");
  check_signature(bundle, key_of(leaf), message, true);
  Signer signer{"certificate",
                fmt::format("{}, certified by {}", subject_of(leaf), subject_of(chain.back()))};
  signer.certificate = hex(sha256(der_of(leaf)));
  signer.expired = not_after(leaf) < today();
  return signer;
}

// Who has seen the signature, and when. What is there has to hold, each of them.
std::vector<std::int64_t> times_of(const Bundle& bundle, const LogEntry& entry, const TrustedRoot& root) {
  std::vector<std::int64_t> times;
  const std::set<std::string_view> distinct(bundle.timestamps.begin(), bundle.timestamps.end());
  if (distinct.size() != bundle.timestamps.size() || distinct.size() > kMostTimestamps)
    throw Error::refused("it has too many time stamps, or one twice");
  for (const std::string& timestamp : bundle.timestamps)
    times.push_back(check_timestamp(timestamp, signature_of(bundle), root));
  // The promise, which is checked with the entry, is what binds the log to this time.
  if (entry.integrated_time != 0 && !entry.promise.empty()) times.push_back(entry.integrated_time);
  if (times.empty()) throw Error::refused("nobody has witnessed when it was signed");
  return times;
}

// The issuer's certificate, by every chain of a root's authority that was trusted at that time.
Certificate issuer_at(const Certificate& leaf, std::int64_t time, const TrustedRoot& root) {
  Error last = Error::refused("no certificate authority is trusted for the time at which it was signed");
  for (const Authority& authority : root.certificate_authorities) {
    if (!authority.window.holds(time * 1000)) continue;
    const Certificates between(authority.chain.begin(), authority.chain.end() - 1);
    try {
      const Certificates chain = build_chain(leaf, between, {authority.chain.back()}, time);
      if (chain.size() > 1) return chain[1];
    } catch (const Error& error) {
      last = error;
    }
  }
  throw last;
}

void check_leaf(const Certificate& leaf, const std::vector<std::int64_t>& times, const TrustedRoot& root) {
  Certificate issuer;
  for (const std::int64_t time : times) {
    issuer = issuer_at(leaf, time, root);
    if (time < not_before(leaf) || time > not_after(leaf))
      throw Error::refused("it was signed outside the time for which its certificate is valid");
  }
  check_certificate_log(leaf, issuer, root);
  if (!may_sign(leaf) || !is_code_signer(leaf) || X509_check_ca(leaf.get()) != 0)
    throw Error::refused("its certificate is not for signing code");
}

void check_identity(const Identity& found, const Identity& demanded) {
  if (found.subject.empty() || found.subject != demanded.subject)
    throw Error::refused(fmt::format("it is signed by '{}', not by '{}'", found.subject, demanded.subject));
  if (found.issuer.empty() || found.issuer != demanded.issuer)
    throw Error::refused(
        fmt::format("its signer was attested by '{}', not by '{}'", found.issuer, demanded.issuer));
}

// In version 0.3 a certificate stands alone; before, it came with those above it, but never the root.
Certificate signer_certificate(const Bundle& bundle, const TrustedRoot& root) {
  if (bundle.version == kModelVersion || bundle.material == Material::public_key)
    require(bundle, Material::certificate, "keyless");
  for (const std::string& der : bundle.certificates) {
    if (is_self_signed(read_certificate(der))) throw Error::refused("it brings a root of its own");
  }
  Certificates known;
  for (const Authority& authority : root.certificate_authorities)
    known.insert(known.end(), authority.chain.begin(), authority.chain.end());
  require_issued(certificates_above(bundle), known);
  return read_certificate(bundle.certificates[0]);
}

Signer verify_keyless(const Bundle& bundle, const Keyless& method,
                      const std::optional<std::string_view>& message) {
  const Certificate leaf = signer_certificate(bundle, *method.root);
  if (bundle.entries.size() != 1)
    throw Error::refused("it has to have exactly one entry of a transparency log");
  const LogEntry& entry = bundle.entries[0];
  if (bundle.version == 1 && entry.promise.empty())
    throw Error::refused("a bundle of version 0.1 has to have the transparency log's promise");
  const std::vector<std::int64_t> times = times_of(bundle, entry, *method.root);
  check_leaf(leaf, times, *method.root);
  const Identity found = identity_of(leaf);
  check_identity(found, method.demanded);
  check_in_log(entry, bundle.version, *method.root);
  check_signature(bundle, key_of(leaf), message, false);
  Logged logged{bundle.envelope ? &*bundle.envelope : nullptr, {}, signature_of(bundle), leaf};
  if (bundle.message) logged.message_sha256 = message_digest(bundle, message);
  check_body(entry, logged);
  Signer signer{"keyless", fmt::format("{}, as {} attested, on {}", found.subject, found.issuer,
                                       show_time(*std::min_element(times.begin(), times.end())))};
  signer.identity = found;
  signer.certificate = hex(sha256(der_of(leaf)));
  signer.times = times;
  signer.root = method.root->origin;
  return signer;
}

}  // namespace

std::string_view name_of(const Method& method) {
  return method.index() == 0 ? "key" : method.index() == 1 ? "certificate" : "keyless";
}

Signer verify_bundle(const Bundle& bundle, const Method& method,
                     const std::optional<std::string_view>& message) {
  try {
    if (const auto* key = std::get_if<ByKey>(&method)) return verify_by_key(bundle, *key, message);
    if (const auto* certificate = std::get_if<ByCertificate>(&method))
      return verify_by_certificate(bundle, *certificate, message);
    return verify_keyless(bundle, std::get<Keyless>(method), message);
  } catch (const Error& error) {
    // What is malformed inside what was signed or witnessed is as little proof as what is wrong.
    if (error.kind() != ErrorKind::input) throw;
    throw Error::refused(error.message());
  }
}

}  // namespace assay::signature
