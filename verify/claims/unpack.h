// Unpacks gzip and zstd piece by piece: a layer may be larger unpacked than the memory, and than the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "verify/claims/claim.h"

namespace assay {

// How much of what is unpacked is believed: beyond, no weights are meant.
inline constexpr std::uint64_t kUnpackedFreely = 64ull << 20;
inline constexpr std::uint64_t kUnpackedPerByte = 200;

class Unpacker {
 public:
  using Out = std::function<void(std::span<const std::byte>)>;
  virtual ~Unpacker() = default;
  // Both throw Error::input, with the offset in what is packed, where that is damaged or a decompression bomb.
  virtual void consume(std::span<const std::byte> packed, const Out& out) = 0;
  virtual void finish() = 0;
};

// Throws Error::input for what this build cannot unpack.
std::unique_ptr<Unpacker> make_unpacker(Packing packing);

}  // namespace assay
