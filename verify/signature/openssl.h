// libcrypto's objects as values that free themselves, and its reasons as words.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay::signature {

template <auto Release>
struct Releases {
  template <typename T>
  void operator()(T* object) const {
    Release(object);
  }
};
template <typename T, auto Release>
using Owned = std::unique_ptr<T, Releases<Release>>;

inline const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
// What an i2d_ function writes.
template <typename Object, typename Write>
std::string der_of(Object* object, Write write) {
  unsigned char* out = nullptr;
  const int length = write(object, &out);
  if (length < 0) return {};
  std::string der(reinterpret_cast<char*>(out), static_cast<std::size_t>(length));
  OPENSSL_free(out);
  return der;
}
Owned<BIO, BIO_free> memory_of(std::string_view text);
// The last reason that libcrypto queued, in its words; the queue is emptied.
std::string openssl_reason();

using Certificate = std::shared_ptr<X509>;
using Certificates = std::vector<Certificate>;

// Whole and nothing behind it; nullptr otherwise.
Certificate certificate_from_der(std::string_view der);
// Every certificate of a PEM file. Throws Error::input where there is none.
Certificates certificates_from_pem(std::string_view text, const std::filesystem::path& source);
std::string der_of(const Certificate& certificate);
std::string subject_of(const Certificate& certificate);

}  // namespace assay::signature
