#include "kernels/cuda/mbarrier_emulated.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/system/error.h"

namespace assay::cuda::emulator {
namespace {

constexpr int kMostBytes = (1 << 20) - 1;  // PTX ISA, "tx-count": the range of a phase's

// A barrier's phase, packed into its 8 bytes: they are the block's, and NaN before mbarrier_init().
struct Phase {
  unsigned pending, arrivals;  // still to come; of a whole phase
  unsigned number;             // 0 or 1
  int bytes;                   // still to come
};

Phase phase_of(const std::uint64_t* barrier, Where where) {
  require_shared(barrier, sizeof *barrier, sizeof *barrier, where);
  std::uint64_t bits;
  std::memcpy(&bits, barrier, sizeof bits);
  if (bits == ~std::uint64_t{0}) throw Error::internal(said_at(where, "an mbarrier that was not made"));
  const auto field = [&](unsigned bit, unsigned count) {
    return static_cast<unsigned>(bits >> bit & ((1u << count) - 1));
  };
  return {field(0, 20), field(20, 20), field(40, 1), static_cast<int>(field(41, 22)) - kMostBytes - 1};
}

// Ends the phase if nothing of it is to come, and lets those look who wait.
void store(std::uint64_t* barrier, Phase phase, Where where) {
  if (phase.bytes > kMostBytes || phase.bytes < -kMostBytes)
    throw Error::internal(said_at(where, "an mbarrier counts 1,048,575 bytes a phase at most"));
  if (phase.pending == 0 && phase.bytes == 0) {
    phase.pending = phase.arrivals;
    phase.number ^= 1;
  }
  const std::uint64_t bits = std::uint64_t{phase.pending} | std::uint64_t{phase.arrivals} << 20 |
                             std::uint64_t{phase.number} << 40 |
                             static_cast<std::uint64_t>(phase.bytes + kMostBytes + 1) << 41;
  std::memcpy(barrier, &bits, sizeof bits);
  wake(barrier);
}

// The oldest copy that reports to a barrier; whether there was one.
bool land_one(std::uint64_t* barrier, Where where) {
  std::vector<BulkCopy>& copies = bulk_copies();
  const auto it =
      std::find_if(copies.begin(), copies.end(), [&](const BulkCopy& c) { return c.barrier == barrier; });
  if (it == copies.end()) return false;
  const BulkCopy copy = std::move(*it);
  copies.erase(it);
  copy.land();
  Phase phase = phase_of(barrier, where);
  phase.bytes -= static_cast<int>(copy.bytes);
  store(barrier, phase, where);
  return true;
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Where where) {
  require_shared(barrier, sizeof *barrier, sizeof *barrier, where);
  if (arrivals == 0 || arrivals > kMostBytes)
    throw Error::internal(said_at(where, "an mbarrier counts 1 to 1,048,575 arrivals"));
  store(barrier, {arrivals, arrivals, 0, 0}, where);
}

void mbarrier_arrive(std::uint64_t* barrier, unsigned bytes_expected, Where where) {
  Phase phase = phase_of(barrier, where);
  if (phase.pending == 0)
    throw Error::internal(said_at(where, "more arrivals at an mbarrier than a phase has"));
  --phase.pending;
  phase.bytes += static_cast<int>(bytes_expected);
  store(barrier, phase, where);
  if (phase_of(barrier, where).number != phase.number) let_others_run();
}

void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Where where) {
  while (phase_of(barrier, where).number == parity) {
    if (!land_one(barrier, where)) wait_at(barrier, "an mbarrier", where);
  }
}

void copy_tile(void* tile, const TensorMap& map, std::int32_t column_byte, std::int32_t row,
               std::uint64_t* barrier, Where where) {
  const TileSource source = source_of(map);
  if (const char* why = unmappable(source))
    throw Error::internal(said_at(where, std::string("a tensor map: ") + why));
  const std::size_t bytes = std::size_t{source.tile_rows} * kTileBytes;
  require_shared(tile, bytes, 1024, where);
  phase_of(barrier, where);
  std::memset(tile, 0xFF, bytes);
  const auto land = [=] {
    for (std::uint32_t r = 0; r < source.tile_rows; ++r) {
      for (std::uint32_t c = 0; c < kTileBytes; ++c) {
        const std::int64_t from_row = std::int64_t{row} + r, from = std::int64_t{column_byte} + c;
        const bool there = from_row >= 0 && from >= 0 && static_cast<std::uint64_t>(from_row) < source.rows &&
                           static_cast<std::uint64_t>(from) < source.row_bytes;
        std::byte value{0};
        if (there)
          value =
              static_cast<const std::byte*>(source.base)[static_cast<std::uint64_t>(from_row) * source.pitch +
                                                         static_cast<std::uint64_t>(from)];
        static_cast<std::byte*>(tile)[r * kTileBytes + ((c / 16) ^ (r % 8)) * 16 + c % 16] = value;
      }
    }
  };
  bulk_copies().push_back({barrier, bytes, land});
  wake(barrier);
}

void copy_to_cluster(void* shared, const void* global, std::size_t bytes, std::uint64_t* barrier,
                     unsigned ranks, Where where) {
  require_shared(shared, bytes, 16, where);
  if (bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    throw Error::internal(said_at(where, "a bulk copy is of whole 16 bytes, from an address aligned so"));
  if (ranks >> cluster_size() != 0)
    throw Error::internal(said_at(where, "a copy to a block that the cluster has not"));
  const std::byte* const mine = shared_memory();
  for (unsigned rank = 0; rank < cluster_size(); ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    std::byte* const to = shared_memory_of(rank) + (static_cast<std::byte*>(shared) - mine);
    const std::byte* const reports_to =
        shared_memory_of(rank) + (reinterpret_cast<std::byte*>(barrier) - mine);
    std::memset(to, 0xFF, bytes);
    bulk_copies(rank).push_back({reports_to, bytes, [=] { std::memcpy(to, global, bytes); }});
    wake(reports_to);
  }
}

}  // namespace assay::cuda::emulator
