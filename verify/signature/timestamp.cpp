#include "verify/signature/timestamp.h"

#include <openssl/err.h>
#include <openssl/ts.h>

#include <algorithm>
#include <ctime>

#include "core/system/error.h"

namespace assay::signature {
namespace {

using Response = Owned<TS_RESP, TS_RESP_free>;

// Fractions of a second aside: no certificate is valid to a fraction.
std::int64_t time_of(const TS_RESP* response) {
  const ASN1_GENERALIZEDTIME* time =
      TS_TST_INFO_get_time(TS_RESP_get_tst_info(const_cast<TS_RESP*>(response)));
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) throw Error::refused("a time stamp holds a time that is none");
  return static_cast<std::int64_t>(::timegm(&parts));
}

// What nobody has signed in a response must be as it is expected, byte for byte: so that a response says what
// was signed and nothing else.
Response parse_response(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  Response response(d2i_TS_RESP(nullptr, &at, static_cast<long>(der.size())));
  const bool whole =
      response != nullptr && at == bytes_of(der) + der.size() && der_of(response.get(), i2d_TS_RESP) == der;
  ERR_clear_error();
  if (!whole || TS_RESP_get_token(response.get()) == nullptr ||
      TS_RESP_get_tst_info(response.get()) == nullptr)
    throw Error::refused("a time stamp is malformed");
  TS_STATUS_INFO* status = TS_RESP_get_status_info(response.get());
  if (ASN1_INTEGER_get(TS_STATUS_INFO_get0_status(status)) != TS_STATUS_GRANTED ||
      TS_STATUS_INFO_get0_text(status) != nullptr || TS_STATUS_INFO_get0_failure_info(status) != nullptr)
    throw Error::refused("a time stamp was not granted");
  return response;
}

// The certificates in the token are the authority's own, or there are none.
bool holds_only(const TS_RESP* response, const Certificates& chain) {
  const PKCS7* token = TS_RESP_get_token(const_cast<TS_RESP*>(response));
  const STACK_OF(X509)* embedded = token->d.sign->cert;
  for (int i = 0; i < sk_X509_num(embedded); ++i) {
    const auto known = std::any_of(chain.begin(), chain.end(), [&](const Certificate& certificate) {
      return X509_cmp(certificate.get(), sk_X509_value(embedded, i)) == 0;
    });
    if (!known) return false;
  }
  return true;
}

// The algorithm of the signature, which the token names beside that of its hash: they have to agree.
bool agrees(const X509_ALGOR* signature, const X509_ALGOR* hash) {
  const int signature_id = OBJ_obj2nid(signature->algorithm), hash_id = OBJ_obj2nid(hash->algorithm);
  if (signature_id == NID_rsaEncryption || signature_id == NID_X9_62_id_ecPublicKey) return true;
  int hash_of_signature = NID_undef, key = NID_undef;
  return OBJ_find_sigid_algs(signature_id, &hash_of_signature, &key) == 1 && hash_of_signature == hash_id;
}

// Outside what is signed: versions, and algorithms that the token names twice. libcrypto does not look at them.
bool is_framed(const TS_RESP* response) {
  constexpr long kVersion = 3, kSignerVersion = 1;  // RFC 5652, §5.1 and §5.3
  const PKCS7* token = TS_RESP_get_token(const_cast<TS_RESP*>(response));
  const PKCS7_SIGNED* content = token->d.sign;
  if (sk_X509_ALGOR_num(content->md_algs) != 1 || sk_PKCS7_SIGNER_INFO_num(content->signer_info) != 1)
    return false;
  const PKCS7_SIGNER_INFO* signer = sk_PKCS7_SIGNER_INFO_value(content->signer_info, 0);
  return ASN1_INTEGER_get(content->version) == kVersion &&
         ASN1_INTEGER_get(signer->version) == kSignerVersion &&
         X509_ALGOR_cmp(sk_X509_ALGOR_value(content->md_algs, 0), signer->digest_alg) == 0 &&
         agrees(signer->digest_enc_alg, signer->digest_alg);
}

// libcrypto takes names for equal that differ in case: here they are the same bytes.
bool is_named(const TS_RESP* response, const Certificates& chain) {
  const PKCS7* token = TS_RESP_get_token(const_cast<TS_RESP*>(response));
  const PKCS7_ISSUER_AND_SERIAL* named =
      sk_PKCS7_SIGNER_INFO_value(token->d.sign->signer_info, 0)->issuer_and_serial;
  return std::any_of(chain.begin(), chain.end(), [&](const Certificate& certificate) {
    return ASN1_INTEGER_cmp(X509_get0_serialNumber(certificate.get()), named->serial) == 0 &&
           der_of(X509_get_issuer_name(certificate.get()), i2d_X509_NAME) ==
               der_of(named->issuer, i2d_X509_NAME);
  });
}

bool is_by(const Response& response, std::string_view message, const Authority& authority) {
  const std::int64_t time = time_of(response.get());
  if (!authority.window.holds(time * 1000) || !holds_only(response.get(), authority.chain) ||
      !is_named(response.get(), authority.chain))
    return false;
  X509_STORE* store = X509_STORE_new();  // the context owns it
  X509_STORE_add_cert(store, authority.chain.back().get());
  X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), static_cast<std::time_t>(time));
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  STACK_OF(X509)* others = sk_X509_new_null();  // so does it these
  for (const Certificate& certificate : authority.chain) {
    X509_up_ref(certificate.get());
    sk_X509_push(others, certificate.get());
  }
  const Owned<TS_VERIFY_CTX, TS_VERIFY_CTX_free> context(TS_VERIFY_CTX_new());
  TS_VERIFY_CTX_set_flags(context.get(), TS_VFY_VERSION | TS_VFY_DATA | TS_VFY_SIGNATURE);
  TS_VERIFY_CTX_set_store(context.get(), store);
  TS_VERIFY_CTX_set_certs(context.get(), others);
  TS_VERIFY_CTX_set_data(context.get(), memory_of(message).release());
  const bool good = TS_RESP_verify_response(context.get(), response.get()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace

std::int64_t check_timestamp(std::string_view der, std::string_view message, const TrustedRoot& root) {
  const Response response = parse_response(der);
  if (!is_framed(response.get())) throw Error::refused("a time stamp is malformed");
  for (const Authority& authority : root.timestamp_authorities) {
    if (is_by(response, message, authority)) return time_of(response.get());
  }
  throw Error::refused("a time stamp is by no authority that is trusted, or not of this signature");
}

}  // namespace assay::signature
