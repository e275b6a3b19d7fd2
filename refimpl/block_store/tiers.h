// The levels behind an engine's pool, as users ask for them: memory, disk, or both.
//
//   CacheTiers tiers({.folder = "blocks", .memory_bytes = 1u << 28, .told = note});
//   ServingEngine engine(model, ops, options, tiers.parts());
//   tiers.attend(engine.scheduler());           // which blocks its queue waits for
//   …  engine.keep_all();                       // before the end
#pragma once

#include <cstdint>

#include "refimpl/block_store/tiered_level.h"
#include "refimpl/engine/serving.h"

namespace assay {

struct TierOptions {
  std::filesystem::path folder;  // empty: nothing goes to disk
  std::uint64_t disk_bytes = DiskOptions().most_bytes;
  std::uint64_t memory_bytes = 0;  // 0: what comes and goes, comes from disk and goes there at once
  BlockFolder::Told told = {};
  bool wanted() const { return !folder.empty() || memory_bytes > 0; }
};

class CacheTiers {
 public:
  explicit CacheTiers(TierOptions options) : options_(std::move(options)) {}

  // For one engine, which it outlives. Of no tier: none.
  ServingParts parts();
  void attend(const Scheduler& scheduler);
  TieredLevel::Counts counts() const { return level_ == nullptr ? TieredLevel::Counts{} : level_->counts(); }

 private:
  TierOptions options_;
  TieredLevel* level_ = nullptr;
};

}  // namespace assay
