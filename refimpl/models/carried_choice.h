// Keys that a layer chose for itself and for those that follow, carried beside the stream from one stage to the next.
#pragma once

#include <algorithm>
#include <utility>

#include "refimpl/ops/as_it_is.h"
#include "refimpl/ops/index_calls.h"

namespace assay {

// As KeyChoice::positions has them, of at most so many keys each, which no precision rounds: [tokens, most].
inline Matrix positions_of(const KeyChoice& chosen, std::size_t most, Ops& ops) {
  std::vector<double> positions(chosen.keys.size() * most, -1);
  for (std::size_t t = 0; t < chosen.keys.size(); ++t)
    std::copy_n(chosen.keys[t].begin(), std::min(chosen.keys[t].size(), most),
                positions.begin() + static_cast<std::ptrdiff_t>(t * most));
  return as_it_is(ops, positions, chosen.keys.size(), most);
}

inline KeyChoice choice_at(const Matrix& positions, Ops& ops) {
  KeyChoice chosen = {std::vector<std::vector<std::int32_t>>(positions.rows()), positions};
  const std::vector<double> all = ops.download(positions);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] >= 0) chosen.keys[i / positions.columns()].push_back(static_cast<std::int32_t>(all[i]));
  return chosen;
}

}  // namespace assay
