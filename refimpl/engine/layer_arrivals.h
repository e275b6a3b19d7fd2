// What a step reads of the outer level, layer by layer: a thread reads ahead while earlier layers are computed, and whoever
// puts or reads rows of a layer waits for that layer's (BlockStorage::await).
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "refimpl/engine/scheduler.h"
#include "refimpl/step/block_storage.h"

namespace assay {

// Of a layer, in seconds since the step began: when it was read, when it was asked for, when it was there.
struct LayerArrival {
  std::size_t layer = 0, numbers = 0;
  double read_from = 0, read_to = 0, asked = 0, there = 0;
};

class LayerArrivals {
 public:
  struct Damaged {};  // thrown to whoever waits: a block is not what it should be

  // Those loads of a step whose rows come later. All outlive it.
  LayerArrivals(BlockStorage& storage, const std::vector<StepPlan::Load>& loads);
  LayerArrivals(const LayerArrivals&) = delete;
  LayerArrivals& operator=(const LayerArrivals&) = delete;
  ~LayerArrivals();  // without finish(): nothing of the blocks counts

  // Every layer's are there. Throws as above, and what went wrong while they were read.
  void finish();
  bool any() const { return !loads_.empty(); }
  const std::vector<LayerArrival>& times() const { return times_; }

 private:
  void read_all();
  void wait_for(std::size_t layer);
  double now() const;

  BlockStorage& storage_;
  std::vector<const StepPlan::Load*> loads_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<LayerArrival> times_;                        // by layer
  std::vector<std::vector<std::vector<double>>> numbers_;  // by layer, by load of its group
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
