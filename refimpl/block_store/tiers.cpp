#include "refimpl/block_store/tiers.h"

namespace assay {

ServingParts CacheTiers::parts() {
  ServingParts parts;
  if (!options_.wanted()) return parts;
  parts.outer = [this](Ops& ops, const BlockStorage& storage) -> std::unique_ptr<OuterLevel> {
    std::unique_ptr<DiskLevel> disk;
    if (!options_.folder.empty())
      disk = std::make_unique<DiskLevel>(ops, storage,
                                         DiskOptions{.folder = options_.folder,
                                                     .most_bytes = options_.disk_bytes,
                                                     .told = options_.told,
                                                     .by_layer = true});
    if (options_.memory_bytes == 0) return disk;
    auto level = std::make_unique<TieredLevel>(storage, options_.memory_bytes, std::move(disk));
    level_ = level.get();
    return level;
  };
  return parts;
}

void CacheTiers::attend(const Scheduler& scheduler) {
  if (level_ != nullptr) level_->ask([&scheduler](const BlockKey& key) { return waits_for(scheduler, key); });
}

}  // namespace assay
