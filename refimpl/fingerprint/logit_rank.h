// How many directions the logits of a model lie in: what is the rank of a table of its log-probabilities, where its smallest singular
// values are rounding.
//
// Logits are z = W h + b, with h of hidden_size numbers. A server tells ln p = z − ln Σ exp z, a constant off in each vector, so
// the mean over the tokens is subtracted of each: what is left is (I − 11ᵀ/m)(W H + b 1ᵀ), whose rank is W's own, plus one for b, unless the
// all-ones vector lies among W's columns (it does where hidden_size reaches the number of tokens; then nothing can be said). The same with
// the mean over the contexts subtracted as well has lost what is the same in every vector: the rank of the
// differences of h. Which hidden size the two belong to, hidden_size.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/fingerprint/dense_matrix.h"

namespace assay {

// Which means are subtracted of a table whose rows are contexts, whose columns are tokens.
enum class Means : std::uint8_t { kept, of_rows, of_columns, of_both };

struct Spectrum {
  std::size_t contexts = 0, tokens = 0;
  double rms = 0;              // of the entries
  std::vector<double> values;  // singular values, largest first, without the zero that a mean makes
};
// `contexts` and `tokens` of it are one less each where their mean was subtracted.
Spectrum spectrum_of(DenseMatrix table, Means means, int jobs);

struct RankFound {
  std::optional<std::size_t> rank;
  double last = 0, next = 0;  // the smallest singular value that counts, the largest that does not
  double floor = 0;           // the largest that noise alone of what is left would have
  double noise = 0;           // of an entry: root mean square of what is left
  std::string why;            // there is none
};
RankFound find_rank(const Spectrum& spectrum);

}  // namespace assay
