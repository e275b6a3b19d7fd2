// Cases of an operation: which there are, what they are computed on, what is right, and how far from it a
// kernel may be.
//
// Every operation brings one OpCases<Call>: its grid, and from a case's name its operands. Operands are made
// of the name alone, so that the name reproduces the case anywhere.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/harness/case_id.h"
#include "kernels/harness/every_call.h"
#include "kernels/harness/measure.h"
#include "kernels/operands/rounded_operands.h"
#include "kernels/registry/calling_ops.h"
#include "kernels/registry/registry.h"

namespace assay {

// What exponentials in float32 may flush to zero: σ(x) below the smallest normal number, so that x σ(x) is off
// by |x| of them.
inline constexpr double kFlushed = 0x1p-126;

// A part of a result: a matrix of numbers, row by row.
struct OutputPart {
  std::string_view name;
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;
  bool of_tokens = true;  // a row of it is a token's; false: it is what all of them leave behind
};
std::vector<OutputPart> parts_of(Ops& ops, const Matrix& result);           // "y"
std::vector<OutputPart> parts_of(Ops& ops, const Routing& result);          // "experts", "weights"
std::vector<OutputPart> parts_of(Ops& ops, const QuantizedMatrix& result);  // "scales", "values"
std::vector<OutputPart> parts_of(Ops& ops, const KeyChoice& result);        // "keys"

// The states that a call leaves behind its tokens, one above the other; empty: its operation keeps none.
template <class Call>
std::vector<Matrix> states_after(const Call& call) {
  std::vector<Matrix> states;
  if constexpr (requires { call.sequences.front().after; }) {
    for (const auto& sequence : call.sequences)
      states.insert(states.end(), sequence.after.begin(), sequence.after.end());
  }
  return states;
}
OutputPart part_of_states(Ops& ops, const std::vector<Matrix>& states);  // "states"
// All that comes of a call: parts_of() its result, and its states.
template <class Call>
std::vector<OutputPart> parts_of_call(Ops& ops, const Call& call, const ResultOf<Call>& result) {
  std::vector<OutputPart> parts = parts_of(ops, result);
  if (const std::vector<Matrix> states = states_after(call); !states.empty())
    parts.push_back(part_of_states(ops, states));
  return parts;
}
// "keys", and "scores": in float64, of the keys that were chosen, the best first.
std::vector<OutputPart> parts_of_call(Ops& ops, const IndexCall& call, const KeyChoice& result);

// What came of the numbers before they were rounded to what is multiplied: the whole error of a kernel that
// quantizes, by rules of its own (kernels/operands) or those of the arithmetic.
struct Unrounded {
  std::vector<double> values;
  std::vector<double> allowed;  // on top of the budget
};

// What a part ought to be. The budget of element i is
//   u(type)·|values[i]| + u_acc·per_roundoff[i] + u_operands·products[i] + floor(type),
// both u being the kernel's; without per_roundoff only equality will do. A kernel that sums p terms at a time
// with u_acc and their sums in float32 has 2^-24·per_roundoff[i] + λ(p)·u_acc·products[i] in the second
// place.
struct TruthPart {
  std::string_view name = "y";
  ElementType type = ElementType::F32;  // results are stored so
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  std::vector<double> per_roundoff;
  std::vector<double> products;  // |x|·|W|: sums of the sizes of all products, if not empty
  std::vector<double> absolute;  // on top of the above, if not empty
  // Elements that may be anything: where the inputs leave the answer open (a tie between experts).
  std::vector<bool> open;
  // No computation in floating point could give just these digits: where an output agrees in all of them,
  // truth was made from the output.
  bool fine_digits = false;
  std::optional<Unrounded> unrounded = {};

  std::vector<double> budget(const Roundoffs& u) const;
};
using Truth = std::vector<TruthPart>;

template <class Call>
class Operands {
 public:
  virtual ~Operands() = default;
  Arithmetic arithmetic{Precision::f32};
  // The call, with its matrices in the memory of `ops` (which may compute in float64: then without rounding).
  virtual Call call(Ops& ops) const = 0;
  virtual Truth truth(int jobs) const = 0;
  // For a kernel that rounds operands like this: of what they become, with the truth of what they were as
  // `unrounded`. Of products alone.
  virtual Truth truth_of(const RoundedOperands&, int jobs) const { return truth(jobs); }
  // The same call for the first token only (in attention, for the first sequence); nullopt where there is
  // but one, or where results depend on all tokens by their meaning.
  virtual std::optional<Call> first_token(const Call& call) const = 0;
  // In attention: the first token of a prompt, before the others have come.
  virtual std::optional<Call> first_chunk(const Call&) const { return std::nullopt; }
  // Makes the last token NaN, which must change no other; false where that cannot be said.
  virtual bool spoil_last_token(Call&) const { return false; }
  virtual double flops() const = 0;
  // What has to be read and written at the least.
  virtual double bytes() const = 0;
};

template <class Call>
class OpCases {
 public:
  virtual ~OpCases() = default;
  virtual std::vector<CaseId> grid() const = 0;
  // What the gate never thins: each ratio, count and option that the known families have, and what a kernel
  // does for a shape of its own.
  virtual std::vector<CaseId> always() const { return {}; }
  // Small cases whose size of this name is `value` (kernels/edges.h); none where there is no such size.
  virtual std::vector<CaseId> at(std::string_view, std::size_t) const { return {}; }
  // Shapes worth timing.
  virtual std::vector<CaseId> perf_grid() const { return {}; }
  // Throws Error::usage on settings that cannot be.
  virtual std::unique_ptr<Operands<Call>> make(const CaseId& id) const = 0;
};

template <class Call>
const OpCases<Call>& cases_of();  // the operation's own, in its file
#define ASSAY_DECLARE_CASES(Call) \
  template <>                     \
  const OpCases<Call>& cases_of<Call>()
ASSAY_FOR_EVERY_CALL(ASSAY_DECLARE_CASES);
#undef ASSAY_DECLARE_CASES

// --- what operations share

struct Filled {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
};
// Random numbers, rounded to what `arithmetic` stores.
Filled filled(const Arithmetic& arithmetic, InputKind kind, const FillOptions& options);
Matrix upload(Ops& ops, const Filled& values);
void fill_row_with_nan(const Matrix& x, std::size_t row);
// ReferenceOps in float64.
ReferenceOps truth_ops(int jobs);
ElementType output_type(const Arithmetic& arithmetic);
// Relative error of a number that went through so many roundings to bfloat16 within an operation.
double stage_error(int roundings);
// act=f32, or bf16; Error::usage for others.
Arithmetic narrow_arithmetic(const CaseId& id);
// Truth rounded to the type it is stored in, and nothing allowed: for exact inputs.
void demand_equality(TruthPart& part);

}  // namespace assay
