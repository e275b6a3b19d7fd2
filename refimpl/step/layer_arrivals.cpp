#include "refimpl/step/layer_arrivals.h"

#include <utility>

namespace assay {

LayerArrivals::LayerArrivals(BlockStorage& storage, std::vector<Block> blocks)
    : storage_(storage), blocks_(std::move(blocks)) {
  if (blocks_.empty()) return;
  times_.resize(storage.widths().size());
  numbers_.resize(times_.size());
  for (std::size_t layer = 0; layer < times_.size(); ++layer) times_[layer].layer = layer;
  reader_ = std::thread([this] { read_all(); });
  storage.set_arrivals([this](std::size_t layer) { wait_for(layer); });
}

LayerArrivals::~LayerArrivals() {
  if (!any()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  reader_.join();
  storage_.set_arrivals({});
  for (const Block& block : blocks_) block.rows->over(whole_);
}

double LayerArrivals::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void LayerArrivals::read_all() {
  try {
    for (std::size_t layer = 0; layer < numbers_.size(); ++layer) {
      const double from = now();
      std::vector<std::vector<double>> rows;
      for (const Block& block : blocks_) {
        if (block.group != storage_.group_of(layer)) continue;
        std::optional<std::vector<double>> numbers = block.rows->next();
        if (!numbers) throw Damaged();
        rows.push_back(std::move(*numbers));
      }
      const std::lock_guard lock(mutex_);
      if (over_) return;
      times_[layer].read_from = from;
      times_[layer].read_to = now();
      numbers_[layer] = std::move(rows);
      ++read_;
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

// In their order, so that what nobody asks for by itself is there as well.
void LayerArrivals::wait_for(std::size_t layer) {
  for (; next_ <= layer; ++next_) {
    const double asked = now();
    std::vector<std::vector<double>> rows;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return read_ > next_ || failure_; });
      if (read_ <= next_) std::rethrow_exception(failure_);
      rows = std::move(numbers_[next_]);
      times_[next_].asked = asked;
      times_[next_].there = now();
    }
    std::size_t at = 0;
    for (const Block& block : blocks_) {
      if (block.group != storage_.group_of(next_)) continue;
      times_[next_].numbers += rows.at(at).size();
      storage_.write_layer(next_, block.block, rows.at(at++));
    }
  }
}

void LayerArrivals::finish() {
  if (!any()) return;
  wait_for(times_.size() - 1);
  whole_ = true;
}

}  // namespace assay
