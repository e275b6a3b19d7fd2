#include "verify/signature/sign.h"

#include <fmt/format.h>

#include <chrono>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "verify/signature/bundle.h"
#include "verify/signature/chain.h"
#include "verify/signature/encoding.h"
#include "verify/signature/statement.h"
#include "verify/signature/verify_bundle.h"

namespace assay::signature {
namespace {

constexpr std::uint64_t kMostPemBytes = 1ull << 20;
constexpr std::string_view kBundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";

void check_chain(const SigningKey& signer, const std::filesystem::path& file) {
  const Certificate& leaf = signer.chain[0];
  const auto own = PublicKey::of(leaf);
  if (!own || own->der() != signer.key.public_key().der())
    throw Error::input("its first certificate is not of the key given")
        .in(file)
        .remedy("put the signer's certificate first, and those above it after");
  if (!may_sign(leaf) && !is_code_signer(leaf))
    throw Error::input("its first certificate is not for signing").in(file);
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  if (now.count() < not_before(leaf) || now.count() > not_after(leaf))
    throw Error::input("its first certificate is not valid today").in(file);
}

Json material_of(const SigningKey& signer) {
  Json material;
  if (signer.chain.empty()) {
    material["publicKey"] = {{"hint", signer.key.public_key().hint()}};
  } else {
    Json certificates = Json::array();
    for (const Certificate& one : signer.chain)
      certificates.push_back({{"rawBytes", encode_base64(der_of(one))}});
    material["x509CertificateChain"] = {{"certificates", std::move(certificates)}};
  }
  material["tlogEntries"] = Json::array();
  return material;
}

// Nothing leaves the house that does not verify.
std::string checked(const Json& bundle, const SigningKey& signer, std::optional<std::string_view> message) {
  std::string text = bundle.dump() + "\n";
  try {
    verify_bundle(parse_bundle(text, "the bundle made"), method_of(signer), message);
  } catch (const Error& error) {
    throw Error::internal("the signature made does not verify: " + error.message());
  }
  return text;
}

}  // namespace

SigningKey read_signing_key(const std::filesystem::path& key,
                            const std::optional<std::filesystem::path>& certificate) {
  SigningKey signer{PrivateKey::from_pem(read_small_file(key, kMostPemBytes), key), {}, {}};
  const PublicKey own = signer.key.public_key();
  if (!own.kind().starts_with("EC "))
    throw Error::input(fmt::format("is a key of kind {}, and models are signed by EC keys", own.kind()))
        .in(key)
        .remedy("make one with 'openssl ecparam -name prime256v1 -genkey -noout'");
  signer.words = fmt::format("the key {} ({} {:.12}…)", key.filename().string(), own.kind(), own.hint());
  if (!certificate) return signer;
  signer.chain = certificates_from_pem(read_small_file(*certificate, kMostPemBytes), *certificate);
  check_chain(signer, *certificate);
  signer.words = subject_of(signer.chain[0]);
  return signer;
}

Method method_of(const SigningKey& signer) {
  if (signer.chain.empty()) return ByKey{signer.key.public_key(), {}};
  return ByCertificate{{signer.chain.back()}};
}

std::string sign_statement(std::string_view payload, const SigningKey& signer) {
  const Json signature = {{"sig", encode_base64(signer.key.sign(pae(kStatementType, payload)))},
                          {"keyid", ""}};
  const Json bundle = {{"mediaType", kBundleType},
                       {"verificationMaterial", material_of(signer)},
                       {"dsseEnvelope",
                        {{"payload", encode_base64(payload)},
                         {"payloadType", kStatementType},
                         {"signatures", Json::array({signature})}}}};
  return checked(bundle, signer, std::nullopt);
}

std::string sign_text(std::string_view text, const SigningKey& signer) {
  const Json bundle = {
      {"mediaType", kBundleType},
      {"verificationMaterial", material_of(signer)},
      {"messageSignature",
       {{"messageDigest", {{"algorithm", "SHA2_256"}, {"digest", encode_base64(sha256(text))}}},
        {"signature", encode_base64(signer.key.sign(text))}}}};
  return checked(bundle, signer, text);
}

}  // namespace assay::signature
