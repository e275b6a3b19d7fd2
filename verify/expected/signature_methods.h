// Whom the user believes, read: keys, certificates, an identity with its trusted root, or a policy's signers.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "verify/expected/signature.h"
#include "verify/signature/policy.h"

namespace assay {

// What a request amounts to, and what has to live as long.
struct SignatureMethods {
  std::vector<signature::NamedMethod> all;
  std::unique_ptr<signature::TrustedRoot> root;
  std::optional<signature::Policy> policy;
};

// Throws Error::usage where the request names no way, or several.
void check_request(const SignatureRequest& request);
// `model`: what a policy is asked about. Throws Error::input for what cannot be read, Error::refused where no rule of the
// policy is about it.
SignatureMethods read_methods(const SignatureRequest& request, const fs::path& model);
// By which of these `text` was signed, in a bundle without an envelope. Throws Error::refused: by none.
signature::Signer signer_of_text(const signature::Bundle& bundle, const SignatureMethods& methods,
                                 std::string_view text);

}  // namespace assay
