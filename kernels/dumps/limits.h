// How far a whole activation may lie from another's, and how far it does.
//
// No budget can be derived for the output of many layers whose weights are unknown here. Three rules, in
// order:
// 1. `--yardstick`: a plain computation of the same precision. At most twice its error (rule 3 of the
//    kernels').
// 2. `--rtol R`: R for every tap.
// 3. Otherwise, from the coarsest type that most taps of either dump were rounded to, u its unit roundoff,
//    for a tap in layer l (from 0) with vectors of K elements:
//       rtol = λ · (u + 2^-24·√K) · √(10·(l + 1))
//    A block rounds about ten results one after the other (norm, projection, rope, attention, output, sum,
//    norm, gate, product, sum), and roundings behave as a random walk; each is a float32 sum of about K
//    products. λ is no bound but a measurement: of what networks amplify, and of how far the worst of many
//    elements strays. data/make_dump_errors.py runs transformers' models in float32, float16 and bfloat16
//    against doubles (data/fixtures/dumps/ERRORS.tsv); λ is the most that any of up to eight layers needed,
//    rounded up, for single elements and, apart, for the norm of a tap.
// An element may be off by rtol times the largest of |ref|, the root mean square of its token's vector, and
// that of the median token (a vector small by cancellation keeps the errors of its terms); the whole tap, in
// the Frobenius norm, by rtol with the norm's λ under rule 3, and by the same limit under the others.
#pragma once

#include <optional>
#include <vector>

#include "core/numeric/element_type.h"
#include "kernels/dumps/dump.h"
#include "kernels/harness/measure_wide.h"

namespace assay::dumps {

struct Limit {
  double element = 0, frobenius = 0;
};
// λ of elements, and of norms.
struct Growth {
  double element = 0, norm = 0;
};
Growth measured_growth(ElementType precision);
Limit derived_limit(ElementType precision, std::uint64_t layer, std::uint64_t width);
Limit given_limit(double rtol);

// The type that the values were rounded to, whatever they are stored in: BF16 or F16 numbers in an F32 dump.
// Of whole numbers, and of too few values to tell, the stored type.
ElementType held_precision(const Activations& values);
// The one with the larger unit roundoff.
ElementType coarser(ElementType a, ElementType b);

struct TapError {
  ErrorMeasure measure;
  double frobenius = 0;  // |out - ref| / |ref|
  double ratio = 0;      // of error to limit: the elements' worst, or the norm's
  std::size_t rows_over = 0, first_row = 0;
  std::vector<float> row_ratio;  // of each token's worst element
};
// Of equal sizes.
TapError tap_error(const Activations& ref, const Activations& test, const Limit& limit);
// Twice the error of `plain`, but no less than one rounding of its type.
Limit yardstick_limit(const Activations& ref, const Activations& plain);

}  // namespace assay::dumps
