// How a receipt is vouched for: by a code in it, by a signature beside it, by both or by nobody.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "verify/signature/sign.h"

namespace assay {

struct ReceiptSeals {
  std::optional<std::string> key;               // of the code (verify/receipt_mac.h)
  std::optional<signature::SigningKey> signer;  // of RECEIPT.sig
};

// What RECEIPT.sig has to hold, of a receipt that lies there, whole.
std::string signature_over(const std::filesystem::path& receipt, const signature::SigningKey& signer);

}  // namespace assay
