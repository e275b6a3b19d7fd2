// Faults planted on purpose, of the kinds that real engines have shipped: does the examination notice?
//
// A mutant is a right kernel with one thing wrong. Where the fault has a size (a factor, a number of terms)
// it is planted at several, the largest first, so that the smallest that is still noticed can be told. A
// fault that the grid does not notice is a hole in the grid.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/harness/cases.h"

namespace assay {

template <class Call>
struct Mutant {
  std::string_view name;
  std::string_view family;     // of faults: what went wrong, in which kind of place
  std::string_view unit = "";  // what a size means: "× (1 + size)"
  std::vector<double> sizes = {1};
  // Of the kernel that has the fault, so that a budget which is too wide for the fault shows.
  Roundoffs roundoffs = {};
  std::function<bool(const Arithmetic&, const Call&)> takes = {};  // empty: all
  // Shows in bits (over memory, threads, batches) and not, or not only, in numbers.
  bool bits = false;
  std::function<ResultOf<Call>(ReferenceOps&, const Call&, double size)> run = {};
};
// The right kernel on a wrong call.
template <class Call>
Mutant<Call> on_wrong_call(std::string_view name, std::string_view family,
                           std::function<void(ReferenceOps&, Call&)> change) {
  return {.name = name,
          .family = family,
          .run = [change = std::move(change)](ReferenceOps& ops, const Call& call, double) {
            Call wrong = call;
            change(ops, wrong);
            return run_reference(ops, wrong);
          }};
}

// Rows are shared out in pieces of so many elements, and a last piece that is not whole is left out.
template <class Call>
Mutant<Call> without_last_piece(std::size_t elements) {
  return {.name = "the last piece of the rows left out",
          .family = "threads",
          .run = [elements](ReferenceOps& ops, const Call& call, double) {
            Matrix y = run_reference(ops, call);
            const std::size_t step =
                std::max<std::size_t>(1, elements / std::max<std::size_t>(1, y.columns()));
            for (std::size_t r = y.rows() / step * step; y.rows() > step && r < y.rows(); ++r)
              std::fill_n(y.row<float>(r), y.columns(), 0.0F);
            return y;
          }};
}

// Subnormal results are zero: a thread's mode was changed for the call, or code was made for such a mode.
template <class Call>
Mutant<Call> without_subnormals() {
  return {.name = "subnormal numbers flushed to zero",
          .family = "subnormals",
          .run = [](ReferenceOps& ops, const Call& call, double) {
            Matrix y = run_reference(ops, call);
            for (std::size_t r = 0; r < y.rows(); ++r) {
              for (std::size_t c = 0; c < y.columns(); ++c) {
                float& value = y.row<float>(r)[c];
                if (std::fpclassify(value) == FP_SUBNORMAL) value = 0;
              }
            }
            return y;
          }};
}

template <class Call>
std::vector<Mutant<Call>> mutants_of() {
  return {};
}
template <>
std::vector<Mutant<EmbeddingCall>> mutants_of();
template <>
std::vector<Mutant<LinearCall>> mutants_of();
template <>
std::vector<Mutant<RmsNormCall>> mutants_of();
template <>
std::vector<Mutant<LayerNormCall>> mutants_of();
template <>
std::vector<Mutant<RotaryCall>> mutants_of();
template <>
std::vector<Mutant<AttentionCall>> mutants_of();
template <>
std::vector<Mutant<MlaCall>> mutants_of();
template <>
std::vector<Mutant<ActivationCall>> mutants_of();
template <>
std::vector<Mutant<GatedActivationCall>> mutants_of();
template <>
std::vector<Mutant<SoftmaxCall>> mutants_of();
template <>
std::vector<Mutant<MoeGateCall>> mutants_of();
template <>
std::vector<Mutant<FusedMoeCall>> mutants_of();
template <>
std::vector<Mutant<QuantizeCall>> mutants_of();
template <>
std::vector<Mutant<DequantizeCall>> mutants_of();
template <>
std::vector<Mutant<ConvolutionCall>> mutants_of();
template <>
std::vector<Mutant<DeltaRuleCall>> mutants_of();
template <>
std::vector<Mutant<StateSpaceCall>> mutants_of();
template <>
std::vector<Mutant<GatedNormCall>> mutants_of();
template <>
std::vector<Mutant<OutputGateCall>> mutants_of();
template <>
std::vector<Mutant<IndexCall>> mutants_of();

// A fault in what the comparator is handed: changes truth, output or both of a right kernel.
struct InputMutant {
  std::string_view name, family;
  std::function<void(Truth&, std::vector<OutputPart>&)> plant;
};
const std::vector<InputMutant>& input_mutants();

struct MutantResult {
  std::string name, op, family;
  bool caught = false;
  std::string by_case, by_check, detail;  // the first case that said no, and by which check
  std::string smallest;                   // "× (1 + 1.2e-07)"; empty where the fault has no size
  bool smallest_missed = false;           // some smaller size went unnoticed
};
// Mutants of the operations whose name matches `op` (a regular expression), and the comparator's own. Throws
// Error::usage where there are none.
std::vector<MutantResult> run_mutants(const std::string& op, int jobs);

}  // namespace assay
