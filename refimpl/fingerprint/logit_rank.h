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

// What is counted is derived. The table is A = S + E: S of the model's rank, E what rounding did. By Weyl's inequality no singular value moves by
// more than ‖E‖, the largest of E's; and of independent errors of root mean square σ, of n × m entries,
//
//   ‖E‖ ≤ F = σ (c_r √m + c_c √n + t b)
//
// but for one time in a thousand million: √n + √m and t = √(2 ln 10⁹) are Davidson's and Szarek's ("Local operator theory, random matrices and
// Banach spaces", 2001, theorem II.13). Floating-point errors are as unequal as what is rounded: c_r and c_c are by how much the largest row's
// and column's root mean squares exceed the table's, b by how much its largest entry does (Bandeira, van Handel, Ann. Probab. 44, 2016).
//
//   σ_r(A) ≥ 3 F   S's own σ_r is at least 2 F: r directions are there. What is not counted, σ_{r+1}(A) ≤ F, is of S at most 2 F: it is
//                  smaller than anything that counts.
//   σ ≤ B          B is what rounding of logits to bfloat16, the coarsest that engines keep them in, does: its unit roundoff 2⁻⁸ times
//                  their root mean square; or half a step of what was told, where all values are of few digits. More is no rounding, and
//                  nobody knows what it hides.
//   σ_{¾} ≥ 0.198 σ (√n + √m) d / 2   of what is left a quarter lies below that, by the quarter-circle law (Marchenko, Pastur 1967), of n = m,
//                  and of other n and m less; d the least row's and column's c multiplied, as σ_k(D E D') ≥ σ_k(E) min D min D', and a
//                  half for steps, which double at powers of two. Few directions left are no noise.
//
// Which means are subtracted of a table whose rows are contexts, whose columns are tokens.
enum class Means : std::uint8_t { kept, of_rows, of_columns, of_both };

// Of a table as it was told, relative to the root mean square of all entries.
struct EntrySizes {
  double rows_most = 1, rows_least = 1, columns_most = 1, columns_least = 1;  // root mean squares
  double largest = 1;                                                         // of one entry
  double told_step = 0;  // absolute: what was told may be so far off; 0: as floats are
};

struct Spectrum {
  std::size_t contexts = 0, tokens = 0;
  double rms = 0;  // of the entries, without means
  EntrySizes sizes;
  std::vector<double> values;  // singular values, largest first, without the zero that a mean makes
};
// `contexts` and `tokens` of it are one less each where their mean was subtracted.
Spectrum spectrum_of(DenseMatrix table, Means means, int jobs);

struct RankFound {
  std::optional<std::size_t> rank;
  double last = 0, next = 0;  // the smallest singular value that counts, the largest that does not
  double floor = 0;           // F
  double noise = 0;           // σ: root mean square of what is left of an entry
  std::string why;            // there is none
};
RankFound find_rank(const Spectrum& spectrum);

}  // namespace assay
