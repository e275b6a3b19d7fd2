#include "refimpl/engine/block_key.h"

#include <openssl/evp.h>

#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

BlockKey digest(std::span<const std::uint8_t> bytes) {
  BlockKey key;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), key.bytes.data(), &size, EVP_sha256(), nullptr) != 1 ||
      size != key.bytes.size())
    throw Error::internal("SHA-256 of a block's tokens failed");
  return key;
}

}  // namespace

BlockKey BlockHasher::root(std::string_view identity) const {
  const std::vector<std::uint8_t> bytes(identity.begin(), identity.end());
  return digest(bytes);
}

BlockKey BlockHasher::next(const BlockKey& parent, std::span<const TokenId> tokens) const {
  std::vector<std::uint8_t> bytes(parent.bytes.begin(), parent.bytes.end());
  bytes.reserve(bytes.size() + 4 * tokens.size());
  for (const TokenId id : tokens) {
    for (const unsigned shift : {0U, 8U, 16U, 24U}) bytes.push_back(static_cast<std::uint8_t>(id >> shift));
  }
  return digest(bytes);
}

}  // namespace assay
