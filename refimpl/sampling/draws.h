// The random decisions of one text. The engine's are functions of seed, position and purpose; a proof puts others in their
// place, which take every way in turn and add up what each weighs.
#pragma once

#include <cstddef>
#include <span>

#include "refimpl/ops/calls.h"
#include "refimpl/sampling/keyed_random.h"

namespace assay {

class Draws {
 public:
  virtual ~Draws() = default;
  // A token of this law. `branch`: of several guesses at one position, which.
  virtual TokenId token(std::span<const double> law, std::uint64_t position, DrawPurpose purpose,
                        std::size_t branch = 0) const = 0;
  // Is the guess kept, whose probability to be is this?
  virtual bool keeps(double probability, std::uint64_t position, std::size_t branch) const = 0;
};

class KeyedDraws final : public Draws {
 public:
  explicit KeyedDraws(const DrawKey& key) : key_(key) {}
  TokenId token(std::span<const double> law, std::uint64_t position, DrawPurpose purpose,
                std::size_t branch) const override;
  bool keeps(double probability, std::uint64_t position, std::size_t branch) const override;

 private:
  DrawKey key_;
};

}  // namespace assay
