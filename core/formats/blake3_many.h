// BLAKE3 of many messages under one key: their chunks and nodes fill the lanes of vectors together, so that
// short messages cost no more a byte than long ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/formats/blake3_kernels.h"

namespace assay {

using Blake3Key = std::array<std::uint8_t, 32>;

// out[i] = the keyed hash of messages[i]; by vectors of at most `widest` lanes.
void blake3_many(const Blake3Key& key, std::span<const std::span<const std::byte>> messages,
                 std::span<std::array<std::uint8_t, 32>> out, std::size_t widest = blake3::kMostLanes);

}  // namespace assay
