// What a full block of a cache holds, as a number nobody makes twice: a chain of SHA-256 over everything that the
// keys and values of its tokens depend on.
//
//   root = H(identity)                  weights, precision, kernels, variant, rope regime, salt
//   key  = H(parent's key ‖ tokens)     tokens as little-endian 32-bit numbers
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "refimpl/ops/calls.h"

namespace assay {

struct BlockKey {
  std::array<std::uint8_t, 32> bytes = {};
  bool operator==(const BlockKey&) const = default;
};
struct BlockKeyHash {
  std::size_t operator()(const BlockKey& key) const {
    std::size_t value = 0;
    std::memcpy(&value, key.bytes.data(), sizeof value);
    return value;
  }
};

class BlockHasher {
 public:
  virtual ~BlockHasher() = default;
  virtual BlockKey root(std::string_view identity) const;
  virtual BlockKey next(const BlockKey& parent, std::span<const TokenId> tokens) const;
};

}  // namespace assay
