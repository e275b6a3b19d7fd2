// Which hidden size the ranks of a model's logits belong to.
//
// With r the rank of its logits and a that of their differences (logit_rank.h), both less what a softmax takes away:
//   RMS norm                       h spans everything: a = d, r = d; and r = d + 1 where the head has a bias
//   layer norm                     h = g ∘ u + b with Σu = 0: a = d − 1; r = d where there is any bias, of norm or head, else d − 1
// So d is one of two neighbours, r ≤ d ≤ r + 1 where r = a, a ≤ d ≤ a + 1 where r = a + 1; and it is the even one, for there is
// no model of an odd hidden size: heads rotate pairs.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay {

struct HiddenSize {
  std::size_t size = 0;
  std::string_view because;  // what the two ranks say of the last norm and the head
};
HiddenSize hidden_size_of(std::size_t rank, std::size_t rank_of_differences);

}  // namespace assay
