#include "verify/signature/certificate_log.h"

#include <openssl/x509v3.h>

#include <cstdint>

#include "core/system/error.h"
#include "verify/signature/encoding.h"

namespace assay::signature {
namespace {

Error malformed() {
  return Error::refused("its certificate's list of signed certificate timestamps is malformed");
}

// TLS's presentation language: big-endian numbers, and lengths before what is of variable length.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw malformed();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (const char c : take(static_cast<std::uint64_t>(bytes)))
      value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }
  std::string_view sized(int length_bytes) { return take(number(length_bytes)); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
}

struct Timestamp {
  std::string_view log_id, extensions, signature;
  std::uint64_t time_ms = 0;
};

Timestamp parse_timestamp(std::string_view bytes) {
  Reader reader(bytes);
  Timestamp out;
  if (reader.number(1) != 0) throw malformed();  // version 1
  out.log_id = reader.take(32);
  out.time_ms = reader.number(8);
  out.extensions = reader.sized(2);
  const std::uint64_t hash = reader.number(1), algorithm = reader.number(1);
  constexpr std::uint64_t kSha256 = 4, kRsa = 1, kEcdsa = 3;
  if (hash != kSha256 || (algorithm != kRsa && algorithm != kEcdsa)) throw malformed();
  out.signature = reader.sized(2);
  if (!reader.empty()) throw malformed();
  return out;
}

// The list, out of the OCTET STRING that the extension holds.
std::string list_of(const Certificate& certificate) {
  const int at = X509_get_ext_by_NID(certificate.get(), NID_ct_precert_scts, -1);
  if (at < 0) throw Error::refused("no certificate transparency log has seen its certificate");
  if (X509_get_ext_by_NID(certificate.get(), NID_ct_precert_scts, at) >= 0) throw malformed();
  const ASN1_OCTET_STRING* outer = X509_EXTENSION_get_data(X509_get_ext(certificate.get(), at));
  const unsigned char* bytes = ASN1_STRING_get0_data(outer);
  const unsigned char* const end = bytes + ASN1_STRING_length(outer);
  const Owned<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free> inner(
      d2i_ASN1_OCTET_STRING(nullptr, &bytes, ASN1_STRING_length(outer)));
  if (inner == nullptr || bytes != end) throw malformed();
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(inner.get())),
          static_cast<std::size_t>(ASN1_STRING_length(inner.get()))};
}

// The certificate's part that is signed, as the log saw it: without the log's own answer.
std::string seen_by_log(const Certificate& certificate) {
  const Owned<X509, X509_free> copy(X509_dup(certificate.get()));
  const int at = X509_get_ext_by_NID(copy.get(), NID_ct_precert_scts, -1);
  X509_EXTENSION_free(X509_delete_ext(copy.get(), at));
  return der_of(copy.get(), i2d_re_X509_tbs);
}

std::string signed_by_log(const Timestamp& timestamp, const Certificate& certificate,
                          const Certificate& issuer) {
  const auto issuer_key = PublicKey::of(issuer);
  if (!issuer_key) throw Error::refused("the key of its certificate's issuer is of a kind not known here");
  const std::string seen = seen_by_log(certificate);
  std::string out;
  append_number(out, 0, 1);  // version 1
  append_number(out, 0, 1);  // a certificate timestamp
  append_number(out, timestamp.time_ms, 8);
  append_number(out, 1, 2);  // of a precertificate
  out += sha256(issuer_key->der());
  append_number(out, seen.size(), 3);
  out += seen;
  append_number(out, timestamp.extensions.size(), 2);
  out += timestamp.extensions;
  return out;
}

}  // namespace

void check_certificate_log(const Certificate& certificate, const Certificate& issuer,
                           const TrustedRoot& root) {
  const std::string list = list_of(certificate);
  Reader outer(list);
  Reader timestamps(outer.sized(2));
  const std::string_view only = timestamps.sized(2);
  if (!outer.empty()) throw malformed();
  if (!timestamps.empty())
    throw Error::refused("its certificate has more than one signed certificate timestamp");
  const Timestamp timestamp = parse_timestamp(only);
  const std::string text = signed_by_log(timestamp, certificate, issuer);
  for (const Log& log : root.certificate_logs) {
    if (log.id != timestamp.log_id || !log.window.holds(static_cast<std::int64_t>(timestamp.time_ms)))
      continue;
    if (log.key.verifies(text, timestamp.signature)) return;
    throw Error::refused("the certificate transparency log has not signed its certificate");
  }
  throw Error::refused("no certificate transparency log that is trusted has seen its certificate");
}

}  // namespace assay::signature
