// A recorded number of a block as its key: the number says already which prefix it ends.
#pragma once

#include <cstring>

#include "refimpl/engine/block_pool.h"

namespace assay {

inline BlockKey key_of(std::uint64_t number) {
  // Spread (SplitMix64's last step): the key's first bytes are its hash.
  std::uint64_t mixed = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  BlockKey key;
  std::memcpy(key.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(key.bytes.data() + sizeof mixed, &number, sizeof number);
  return key;
}

}  // namespace assay
