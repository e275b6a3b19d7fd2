// A thread of control on a stack of its own, that runs until it pauses: what the emulator makes of each
// thread of a block. Fibers of one pool run on the system thread that made it.
#pragma once

#include <cstddef>
#include <memory>

namespace assay::cuda {

// Stacks are kept for the next use: a launch of many blocks makes them once.
class FiberPool {
 public:
  using Entry = void (*)(void* argument, std::size_t fiber);
  FiberPool();
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // Fibers 0 … count - 1 at their beginning; `entry` must not throw.
  void reset(std::size_t count, Entry entry, void* argument);
  // Runs fiber `fiber` until it pauses or ends.
  void resume(std::size_t fiber);
  // Called by the fiber that runs: back to resume()'s caller.
  void pause();
  bool ended(std::size_t fiber) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::cuda
