// Which tokens two dumps are of: rows aligned by token ids, and what is to be said where these differ.
//
// Numbers of other inputs differ, and no fault of the engine is in that. Three cases:
//   the same ids                           nothing is said
//   one dump has tokens that the other     padding, another sequence of the batch, tokens made after the
//   prompt: has not, or another order              no harm; a BOS too many: every later number differs. It is
//   said
//                                          where the numbers differ
//   both have tokens that the other        other inputs, certainly: only the tokens before the first
//   difference has not                                are compared
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/dumps/align.h"

namespace assay::dumps {

// Of one dump; `row` is counted over all steps and sequences.
struct TokenIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> positions;  // of each, or none
  std::vector<bool> masked;             // struck out by an attention mask; or none
  // What rows are matched by.
  std::vector<std::uint64_t> symbols(bool with_positions) const;
};

struct TokenAlignment {
  std::optional<RowMap> map;  // nullopt: tokens are compared as they stand
  std::string note;
  std::string inputs;   // how the inputs differ: "token 7 is 13 in REF, 42 in TEST"; empty: they do not
  bool differ = false;  // surely; else only where the numbers do
};
TokenAlignment align_ids(const TokenIds& ref, const TokenIds& test);

}  // namespace assay::dumps
