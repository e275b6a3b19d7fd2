// What a step reads of the outer level, layer by layer: a thread reads ahead while earlier layers are computed, and whoever
// puts or reads rows of a layer waits for that layer's (BlockStorage::await).
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "refimpl/step/block_storage.h"

namespace assay {

// Rows of a block that come layer by layer, in the order of its group's layers: while earlier ones are computed.
class LayeredRows {
 public:
  virtual ~LayeredRows() = default;
  // Of the next layer, keys before values; by one thread, which need not be the engine's. None: they are not what they
  // should be.
  virtual std::optional<std::vector<double>> next() = 0;
  // By the engine's thread, when no more are asked for: all came and were right, or nothing of the block counts.
  virtual void over(bool whole) = 0;
};

// Of a layer, in seconds since the step began: when it was read, when it was asked for, when it was there.
struct LayerArrival {
  std::size_t layer = 0, numbers = 0;
  double read_from = 0, read_to = 0, asked = 0, there = 0;
};

class LayerArrivals {
 public:
  struct Damaged {};  // thrown to whoever waits: a block is not what it should be

  struct Block {
    std::size_t group = 0;
    std::int32_t block = 0;  // where they go
    std::shared_ptr<LayeredRows> rows = {};
  };
  LayerArrivals(BlockStorage& storage, std::vector<Block> blocks);  // the storage outlives it
  LayerArrivals(const LayerArrivals&) = delete;
  LayerArrivals& operator=(const LayerArrivals&) = delete;
  ~LayerArrivals();  // without finish(): nothing of the blocks counts

  // Every layer's are there. Throws as above, and what went wrong while they were read.
  void finish();
  bool any() const { return !blocks_.empty(); }
  const std::vector<LayerArrival>& times() const { return times_; }

 private:
  void read_all();
  void wait_for(std::size_t layer);
  double now() const;

  BlockStorage& storage_;
  std::vector<Block> blocks_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<LayerArrival> times_;                        // by layer
  std::vector<std::vector<std::vector<double>>> numbers_;  // by layer, by block of its group
  std::size_t next_ = 0;                                   // the first layer that is not in the blocks yet
  bool whole_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t read_ = 0;  // layers
  bool over_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace assay
