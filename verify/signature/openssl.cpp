#include "verify/signature/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "core/system/error.h"

namespace assay::signature {
namespace {

std::string contents_of(BIO* memory) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(memory, &data);
  return length > 0 ? std::string(data, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

Owned<BIO, BIO_free> memory_of(std::string_view text) {
  return Owned<BIO, BIO_free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason != nullptr ? reason : "";
  ERR_clear_error();
  return text;
}

Certificate certificate_from_der(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  Certificate certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())), X509_free);
  ERR_clear_error();
  if (certificate == nullptr || at != bytes_of(der) + der.size()) return nullptr;
  return certificate;
}

Certificates certificates_from_pem(std::string_view text, const std::filesystem::path& source) {
  const auto memory = memory_of(text);
  Certificates all;
  while (X509* next = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr))
    all.emplace_back(next, X509_free);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (all.empty() || !at_end) {
    throw Error::input(all.empty() ? "holds no certificate" : "holds a certificate that cannot be read")
        .in(source)
        .remedy("give certificates in PEM, one after the other");
  }
  return all;
}

std::string der_of(const Certificate& certificate) {
  return der_of(certificate.get(), i2d_X509);
}

std::string subject_of(const Certificate& certificate) {
  const Owned<BIO, BIO_free> memory(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(memory.get(), X509_get_subject_name(certificate.get()), 0,
                     XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  return contents_of(memory.get());
}

}  // namespace assay::signature
