// Where kernels are tried: a memory that notices. Every matrix lies between canaries, its rows `padding`
// elements apart more than they are wide, and all of it is NaN before it is written: what a kernel forgets to
// write shows, what it reads of the padding spreads, what it writes there is found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refimpl/ops/reference.h"

namespace assay {

class GuardedOps final : public ReferenceOps {
 public:
  GuardedOps(const Arithmetic& arithmetic, int jobs, std::size_t padding)
      : ReferenceOps(arithmetic, jobs), padding_(padding) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override;

  // A result that the call brings along: it may change.
  void may_change(const Matrix& argument);
  // From here on what was allocated so far is input and may not change, but where a call says so.
  void seal();
  // The numbers of all inputs, for restore(); reverse_inputs() leaves the same ones in another order.
  using Contents = std::vector<std::vector<std::byte>>;
  Contents contents() const;
  void restore(const Contents& contents);
  void reverse_inputs();
  // What is allocated from here on lies where what was allocated since seal() lay, if it is as large.
  void rewind() { next_ = inputs_; }
  // The first canary or padding element that was overwritten: "padding behind row 3 of a 7 × 64 matrix".
  std::optional<std::string> damage() const;
  // Whether an input changed since seal().
  std::optional<std::string> changed_input() const;

 private:
  struct Block {
    Matrix matrix;  // keeps the memory alive
    std::byte* begin;
    std::size_t stride, before;  // elements
    std::uint64_t sealed = 0;
    bool changes = false;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::uint64_t fingerprint(const Block& block) const;
  Matrix again(std::size_t rows, std::size_t columns);

  std::size_t padding_;
  std::vector<Block> blocks_;
  std::size_t inputs_ = 0;    // sealed blocks
  std::size_t next_ = kNone;  // of the blocks to be used again
};

}  // namespace assay
