// Behind the pool a level in memory, behind that one on disk. What the pool evicts is in memory at once, and goes to disk
// behind the work, by a thread of its own, whose errors the next call throws; what comes back from disk, layer by layer or
// whole, stays in memory. Memory and disk give up what was used longest ago, but nothing that a text which waits will want:
// whoever has the queue is asked.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "refimpl/block_store/disk_level.h"
#include "refimpl/engine/outer_level.h"
#include "refimpl/engine/scheduler.h"

namespace assay {

// Does a text of the queue go on from this block? What TieredLevel::ask() is given.
bool waits_for(const Scheduler& scheduler, const BlockKey& key);

class TieredLevel : public OuterLevel {
 public:
  // Will a text that waits begin with this block?
  using Wanted = std::function<bool(const BlockKey&)>;
  struct Counts {
    std::size_t from_memory = 0, from_disk = 0;  // blocks that came back
    std::size_t saved = 0;                       // went to disk
    std::size_t given_up = 0, spared = 0;        // by memory; passed over for their being wanted
    std::size_t spared_on_disk = 0;
  };

  // `disk`: none, and what memory gives up is forgotten.
  TieredLevel(const BlockStorage& storage, std::uint64_t memory_bytes, std::unique_ptr<DiskLevel> disk);
  ~TieredLevel() override;  // all is saved

  void ask(const Wanted& wanted);
  Counts counts() const;

  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override;
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override;
  void keep(std::size_t group, BlockId block, const BlockContent& content) override;
  void finish() override;

  // How a block goes to disk, by the thread of its own.
  using Save = std::function<void(DiskLevel&, const DiskLevel::Unsaved&)>;
  void save_by(Save save) { save_ = std::move(save); }

 private:
  class Remembered;
  struct Kept {
    std::string name;
    BlockKey key, parent;
    std::vector<TokenId> tokens;
    OuterBlock block;
    std::size_t bytes;
  };
  using Place = std::list<Kept>::iterator;
  const Kept* kept(std::size_t group, const BlockContent& wanted, bool with_states) const;
  void remember(std::string name, const BlockContent& content, OuterBlock block);
  void make_room(std::size_t bytes);
  void forget(Place place);
  void save_all();
  void save(std::unique_lock<std::mutex>& lock, DiskLevel::Unsaved unsaved);
  void rethrow();

  const BlockStorage& storage_;
  std::uint64_t memory_bytes_, held_bytes_ = 0;
  Wanted wanted_;
  std::list<Kept> order_;  // used longest ago first
  std::unordered_map<std::string, Place> places_;

  mutable std::mutex mutex_;  // of the disk, the queue to it, and counts
  std::condition_variable changed_;
  std::unique_ptr<DiskLevel> disk_;
  std::deque<DiskLevel::Unsaved> unsaved_;
  std::unordered_set<std::string> on_the_way_;
  bool over_ = false;
  std::exception_ptr failure_;  // of the saver
  Save save_ = [](DiskLevel& disk, const DiskLevel::Unsaved& unsaved) { disk.put(unsaved); };
  Counts counts_;
  std::thread saver_;
};

}  // namespace assay
