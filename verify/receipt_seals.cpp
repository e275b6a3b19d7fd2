#include "verify/receipt_seals.h"

#include "core/system/file.h"

namespace assay {

std::string signature_over(const std::filesystem::path& receipt, const signature::SigningKey& signer) {
  constexpr std::uint64_t kMostReceiptBytes = 1ull << 30;
  return signature::sign_text(read_small_file(receipt, kMostReceiptBytes), signer);
}

}  // namespace assay
