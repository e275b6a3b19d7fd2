#include "refimpl/block_store/tiered_level.h"

#include <algorithm>
#include <utility>

#include "refimpl/block_store/block_name.h"

namespace assay {

TieredLevel::TieredLevel(const BlockStorage& storage, std::uint64_t memory_bytes,
                         std::unique_ptr<DiskLevel> disk)
    : storage_(storage), memory_bytes_(memory_bytes), disk_(std::move(disk)) {
  if (disk_) saver_ = std::thread([this] { save_all(); });
}

TieredLevel::~TieredLevel() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  if (saver_.joinable()) saver_.join();
}

// Rows on their way from disk, which memory has when all of them came.
class TieredLevel::Remembered : public LayeredRows {
 public:
  Remembered(TieredLevel& level, std::string name, BlockContent content, OuterBlock block)
      : level_(level), name_(std::move(name)), content_(std::move(content)), block_(std::move(block)) {}
  std::optional<std::vector<double>> next() override {
    std::optional<std::vector<double>> rows = block_.later->next();
    if (rows) block_.rows.insert(block_.rows.end(), rows->begin(), rows->end());
    return rows;
  }
  void over(bool whole) override {
    {
      const std::lock_guard lock(level_.mutex_);
      block_.later->over(whole);
    }
    block_.later = nullptr;
    if (whole) level_.remember(std::move(name_), content_, std::move(block_));
  }

 private:
  TieredLevel& level_;
  std::string name_;
  BlockContent content_;
  OuterBlock block_;
};

void TieredLevel::ask(const Wanted& wanted) {
  wanted_ = wanted;
  if (disk_) disk_->ask(wanted);
}

void TieredLevel::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void TieredLevel::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return on_the_way_.empty(); });
  rethrow();
}

bool waits_for(const Scheduler& scheduler, const BlockKey& key) {
  return std::any_of(scheduler.waiting().begin(), scheduler.waiting().end(), [&](const ServedText* text) {
    return std::find(text->keys.begin(), text->keys.end(), key) != text->keys.end();
  });
}

TieredLevel::Counts TieredLevel::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  if (disk_) counts.spared_on_disk = disk_->spared();
  return counts;
}

// By its name, and all that the name stands for.
const TieredLevel::Kept* TieredLevel::kept(std::size_t group, const BlockContent& wanted,
                                           bool with_states) const {
  for (const bool stated : {true, false}) {
    if (with_states && !stated) continue;
    const auto place = places_.find(block_name(group, wanted.key, stated));
    if (place == places_.end()) continue;
    const Kept& found = *place->second;
    if (found.parent == wanted.parent && found.tokens == wanted.tokens) return &found;
  }
  return nullptr;
}

bool TieredLevel::has(std::size_t group, const BlockContent& wanted, bool with_states) const {
  if (kept(group, wanted, with_states) != nullptr) return true;
  if (!disk_) return false;
  const std::lock_guard lock(mutex_);
  const auto goes = [&](bool stated) { return on_the_way_.contains(block_name(group, wanted.key, stated)); };
  return goes(true) || (!with_states && goes(false)) || disk_->has(group, wanted, with_states);
}

std::optional<OuterBlock> TieredLevel::fetch(std::size_t group, const BlockContent& wanted,
                                             bool with_states) {
  if (const Kept* found = kept(group, wanted, with_states)) {
    const Place place = places_.at(found->name);
    order_.splice(order_.end(), order_, place);
    const std::lock_guard lock(mutex_);
    ++counts_.from_memory;
    return OuterBlock{place->block.rows, with_states ? place->block.states : nullptr};
  }
  if (!disk_) return std::nullopt;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {  // what memory gave up before it was written
    return !on_the_way_.contains(block_name(group, wanted.key, true)) &&
           !on_the_way_.contains(block_name(group, wanted.key, false));
  });
  std::optional<OuterBlock> block = disk_->fetch(group, wanted, with_states);
  if (!block) return std::nullopt;
  ++counts_.from_disk;
  lock.unlock();
  if (with_states != (block->states != nullptr)) return block;
  std::string name = block_name(group, wanted.key, with_states);
  if (!block->later) {
    remember(std::move(name), wanted, *block);
    return block;
  }
  OuterBlock comes{{}, block->states, nullptr};
  comes.later = std::make_shared<Remembered>(*this, std::move(name), wanted, std::move(*block));
  return comes;
}

void TieredLevel::keep(std::size_t group, BlockId block, const BlockContent& content) {
  const std::string name = block_name(group, content.key, content.states != nullptr);
  if (const auto place = places_.find(name); place != places_.end())
    order_.splice(order_.end(), order_, place->second);
  else
    remember(name, content, {storage_.read(group, block), content.states});
  if (!disk_) return;
  const std::lock_guard lock(mutex_);
  rethrow();
  std::optional<DiskLevel::Unsaved> unsaved =
      disk_->prepare(group, content, [&] { return storage_.read(group, block); });
  if (!unsaved) return;
  on_the_way_.insert(unsaved->name);
  unsaved_.push_back(std::move(*unsaved));
  changed_.notify_all();
}

void TieredLevel::remember(std::string name, const BlockContent& content, OuterBlock block) {
  std::size_t bytes = block.rows.size() * sizeof(double);
  if (block.states) {
    for (const Matrix& state : *block.states) bytes += state.rows() * state.columns() * sizeof(double);
  }
  if (bytes > memory_bytes_ || places_.contains(name)) return;
  make_room(bytes);
  order_.push_back({name, content.key, content.parent, content.tokens, std::move(block), bytes});
  places_[std::move(name)] = std::prev(order_.end());
  held_bytes_ += bytes;
}

// Used longest ago first, of those that nobody waits for; where all are waited for, of all.
void TieredLevel::make_room(std::size_t bytes) {
  std::size_t spared = 0, given_up = 0;
  for (auto place = order_.begin(); place != order_.end() && bytes > memory_bytes_ - held_bytes_;) {
    const Place next = std::next(place);
    if (wanted_ && wanted_(place->key)) {
      ++spared;
    } else {
      forget(place);
      ++given_up;
    }
    place = next;
  }
  for (; bytes > memory_bytes_ - held_bytes_; ++given_up) forget(order_.begin());
  const std::lock_guard lock(mutex_);
  counts_.spared += spared;
  counts_.given_up += given_up;
}

void TieredLevel::forget(Place place) {
  held_bytes_ -= place->bytes;
  places_.erase(place->name);
  order_.erase(place);
}

void TieredLevel::save_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !unsaved_.empty(); });
    if (unsaved_.empty()) return;
    DiskLevel::Unsaved unsaved = std::move(unsaved_.front());
    unsaved_.pop_front();
    save(lock, std::move(unsaved));
    changed_.notify_all();
  }
}

void TieredLevel::save(std::unique_lock<std::mutex>& lock, DiskLevel::Unsaved unsaved) {
  const std::string name = unsaved.name;
  lock.unlock();
  try {
    DiskLevel::seal(unsaved);
    lock.lock();
    save_(*disk_, unsaved);
    ++counts_.saved;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failure_ = std::current_exception();
    disk_->forget(name);
  }
  on_the_way_.erase(name);
}

}  // namespace assay
