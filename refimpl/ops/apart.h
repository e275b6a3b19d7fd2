// Operations of which one process has a part only (refimpl/ranks): what forward rules compute beside Ops they ask these
// for, where it needs a whole row, or experts that lie elsewhere. Other operations have all.
#pragma once

#include <cstddef>
#include <functional>

#include "refimpl/ops/interface.h"

namespace assay {

// What an expert makes of the rows it is given: as many, as wide.
using ExpertFunction = std::function<Matrix(const Matrix& rows, std::size_t expert)>;

class OpsApart {
 public:
  virtual ~OpsApart() = default;
  // `mine`: this process's columns of a row; of what `of` makes of the whole row, its columns.
  virtual Matrix on_whole_rows(const Matrix& mine, const std::function<Matrix(const Matrix&)>& of) = 0;
  // Σ over a token's experts, in the order of their numbers, of weight · expert(token), rounded stage by stage; experts
  // are called where they lie.
  virtual Matrix sent_to_experts(const Matrix& x, const Routing& routing, std::size_t experts,
                                 const ExpertFunction& expert) = 0;
  // Of `whole` key heads, dealt out in order and repeated where there are fewer than processes: this one's first.
  virtual std::size_t first_key_head(std::size_t whole) const = 0;
};

}  // namespace assay
