#include "verify/signature/chain.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "core/system/error.h"

namespace assay::signature {
namespace {

struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }  // not what is in it
};
using CertificateStack = std::unique_ptr<STACK_OF(X509), FreeStack>;

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) throw Error::refused("a certificate holds a time that is none");
  return static_cast<std::int64_t>(::timegm(&parts));
}

CertificateStack stack_of(const Certificates& certificates) {
  CertificateStack stack(sk_X509_new_null());
  for (const Certificate& certificate : certificates) sk_X509_push(stack.get(), certificate.get());
  return stack;
}

std::string_view text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// The content of the extension with this object id; empty where there is none.
std::string_view extension_of(const Certificate& certificate, const char* id) {
  const Owned<ASN1_OBJECT, ASN1_OBJECT_free> object(OBJ_txt2obj(id, 1));
  const int at = X509_get_ext_by_OBJ(certificate.get(), object.get(), -1);
  if (at < 0) return {};
  return text_of(X509_EXTENSION_get_data(X509_get_ext(certificate.get(), at)));
}

// A DER UTF8String, whole.
std::string utf8_string(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  const Owned<ASN1_UTF8STRING, ASN1_UTF8STRING_free> text(
      d2i_ASN1_UTF8STRING(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (text == nullptr || at != bytes_of(der) + der.size()) return {};
  return std::string(text_of(text.get()));
}

std::string name_in(const GENERAL_NAME* name) {
  int type = 0;
  const void* value = GENERAL_NAME_get0_value(name, &type);
  if (type == GEN_EMAIL || type == GEN_URI)
    return std::string(text_of(static_cast<const ASN1_STRING*>(value)));
  if (type != GEN_OTHERNAME) return {};
  const auto* other = static_cast<const OTHERNAME*>(value);
  char id[64] = {};
  OBJ_obj2txt(id, sizeof id, other->type_id, 1);
  constexpr std::string_view kUserName = "1.3.6.1.4.1.57264.1.7";
  if (id != kUserName || ASN1_TYPE_get(other->value) != V_ASN1_UTF8STRING) return {};
  return std::string(text_of(other->value->value.utf8string));
}

std::string subject_name(const Certificate& certificate) {
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1)
    throw Error::refused("its certificate has to be for exactly one name");
  return name_in(sk_GENERAL_NAME_value(names.get(), 0));
}

}  // namespace

Certificates build_chain(const Certificate& leaf, const Certificates& others, const Certificates& anchors,
                         std::int64_t time) {
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  for (const Certificate& anchor : anchors) X509_STORE_add_cert(store.get(), anchor.get());
  const CertificateStack between = stack_of(others);
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), between.get());
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, static_cast<std::time_t>(time));
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (!good) {
    throw Error::refused(fmt::format("its certificate does not lead to one that is trusted: {}",
                                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
  }
  Certificates chain;
  const STACK_OF(X509)* found = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 0; i < sk_X509_num(found); ++i) {
    X509_up_ref(sk_X509_value(found, i));
    chain.emplace_back(sk_X509_value(found, i), X509_free);
  }
  return chain;
}

std::int64_t not_before(const Certificate& certificate) {
  return seconds_of(X509_get0_notBefore(certificate.get()));
}

std::int64_t not_after(const Certificate& certificate) {
  return seconds_of(X509_get0_notAfter(certificate.get()));
}

// Without the extension libcrypto answers that every usage is allowed: here it has to be said.
bool may_sign(const Certificate& certificate) {
  return X509_get_ext_by_NID(certificate.get(), NID_key_usage, -1) >= 0 &&
         (X509_get_key_usage(certificate.get()) & X509v3_KU_DIGITAL_SIGNATURE) != 0;
}

bool is_code_signer(const Certificate& certificate) {
  return X509_get_ext_by_NID(certificate.get(), NID_ext_key_usage, -1) >= 0 &&
         (X509_get_extended_key_usage(certificate.get()) & XKU_CODE_SIGN) != 0;
}

bool is_issued_by_one_of(const Certificate& certificate, const Certificates& issuers) {
  const auto has_signed = [&](const Certificate& issuer) {
    EVP_PKEY* key = X509_get0_pubkey(issuer.get());
    return key != nullptr && X509_check_issued(issuer.get(), certificate.get()) == X509_V_OK &&
           X509_verify(certificate.get(), key) == 1;
  };
  const bool is_issued = has_signed(certificate) || std::any_of(issuers.begin(), issuers.end(), has_signed);
  ERR_clear_error();
  return is_issued;
}

bool is_self_signed(const Certificate& certificate) {
  const bool self = X509_self_signed(certificate.get(), 1) == 1;
  ERR_clear_error();
  return self;
}

Identity identity_of(const Certificate& certificate) {
  constexpr const char* kIssuer = "1.3.6.1.4.1.57264.1.8";
  constexpr const char* kFirstIssuer = "1.3.6.1.4.1.57264.1.1";  // without the DER around it
  Identity identity{subject_name(certificate), {}};
  const std::string_view wrapped = extension_of(certificate, kIssuer);
  identity.issuer =
      wrapped.empty() ? std::string(extension_of(certificate, kFirstIssuer)) : utf8_string(wrapped);
  return identity;
}

}  // namespace assay::signature
