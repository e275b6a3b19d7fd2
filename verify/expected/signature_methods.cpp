#include "verify/expected/signature_methods.h"

#include <algorithm>
#include <iterator>

#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostKeyBytes = 16ull << 20;

const signature::TrustedRoot* root_for(const SignatureRequest& request, SignatureMethods& methods) {
  if (!request.trusted_root) return &signature::embedded_trusted_root();
  methods.root =
      std::make_unique<signature::TrustedRoot>(signature::read_trusted_root(*request.trusted_root));
  return methods.root.get();
}

}  // namespace

void check_request(const SignatureRequest& request) {
  const int ways = request.public_key.has_value() + !request.authorities.empty() +
                   (request.identity || request.issuer) + request.policy.has_value();
  if (ways != 1) {
    throw Error::usage(ways == 0 ? "a signature is worth what its signer is worth, and none is named"
                                 : "a signature is verified in one way, and several are given")
        .remedy("give --public-key, or --ca, or --identity with --issuer, or --policy");
  }
  if (request.identity.has_value() != request.issuer.has_value())
    throw Error::usage("--identity says who, --issuer who attested it").remedy("give both");
  if (request.trusted_root && !request.identity)
    throw Error::usage("--trusted-root is for --identity and --issuer");
}

SignatureMethods read_methods(const SignatureRequest& request, const fs::path& model) {
  check_request(request);
  SignatureMethods methods;
  if (request.policy) {
    methods.policy = signature::Policy::read(*request.policy);
    methods.all = methods.policy->methods_for(model);
  } else if (request.public_key) {
    const fs::path& file = *request.public_key;
    methods.all.push_back(
        {{},
         signature::ByKey{signature::PublicKey::from_pem(read_small_file(file, kMostKeyBytes), file),
                          file.filename().string()}});
  } else if (!request.authorities.empty()) {
    signature::ByCertificate by;
    for (const fs::path& file : request.authorities) {
      auto more = signature::certificates_from_pem(read_small_file(file, kMostKeyBytes), file);
      std::move(more.begin(), more.end(), std::back_inserter(by.anchors));
    }
    methods.all.push_back({{}, std::move(by)});
  } else {
    methods.all.push_back(
        {{}, signature::Keyless{{*request.identity, *request.issuer}, root_for(request, methods)}});
  }
  return methods;
}

signature::Signer signer_of_text(const signature::Bundle& bundle, const SignatureMethods& methods,
                                 std::string_view text) {
  std::string why = "nobody who is believed is named";
  for (const signature::NamedMethod& method : methods.all) {
    try {
      return signature::verify_bundle(bundle, method.method, text);
    } catch (const Error& error) {
      why = error.message();
    }
  }
  throw Error::refused("its signature is not good: " + why);
}

}  // namespace assay
