// Memory that matrices leave to those after them. A forward pass asks for the same few sizes over and over;
// fresh pages for each would cost more than some of the operations.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "refimpl/ops/matrix.h"

namespace assay {

class MatrixMemory : public std::enable_shared_from_this<MatrixMemory> {
 public:
  // Its numbers are whatever they were. Throws Error::input where no memory could hold it.
  Matrix allocate(std::size_t rows, std::size_t columns, Real real);

 private:
  using Block = std::unique_ptr<std::byte[]>;
  void take_back(Block block, std::size_t bytes);

  std::mutex mutex_;
  std::map<std::size_t, std::vector<Block>> idle_;  // by size
  std::size_t idle_bytes_ = 0;
};

}  // namespace assay
