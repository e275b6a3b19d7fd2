// What the operations of recurrent layers share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/recurrent_calls.h"
#include "refimpl/ops/support.h"

namespace assay {

inline double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}
// ln(1 + exp(x)); as torch has it, x itself above 20, where float64 can still tell the two apart.
inline double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}
inline double gated(double gate, GateForm form) {
  switch (form) {
    case GateForm::sigmoid: return logistic(gate);
    case GateForm::silu: return gate * logistic(gate);
    case GateForm::identity: return gate;
  }
  return 0;
}

// How many tokens the chunked forms take at once.
inline constexpr std::size_t kScanChunk = 64;

// Throws Error::internal where states do not fit: `rows` × `columns` each.
void check_states(std::string_view op, const std::vector<SequenceState>& sequences, std::size_t tokens,
                  std::size_t rows, std::size_t columns);

// Throw Error::internal where matrices do not fit each other, Error::input where the weights do not fit them. Vectors are
// those weights, decoded.
void check_shapes(const ConvolutionCall& call, const std::vector<double>& weight,
                  const std::vector<double>& bias);
void check_shapes(const DeltaRuleCall& call, const std::vector<double>& decay_log,
                  const std::vector<double>& decay_bias);
void check_shapes(const StateSpaceCall& call, const std::vector<double>& decay_log,
                  const std::vector<double>& skip, const std::vector<double>& step_bias);
void check_shapes(const GatedNormCall& call, const std::vector<double>& weight);
void check_shapes(const OutputGateCall& call);

// A run of a state's rows, worked on in memory of its own and put back where it is asked for.
template <class T>
class StateRows {
 public:
  StateRows(const SequenceState& sequence, std::size_t first, std::size_t rows, std::size_t columns)
      : sequence_(sequence), first_(first), rows_(rows), columns_(columns), values_(rows * columns) {
    if (sequence.before.empty()) return;
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(sequence.before.row<T>(first + r), columns, row(r));
  }
  T* row(std::size_t r) { return values_.data() + r * columns_; }

  // Whether the state behind token `t` of the step is asked for; and that it is this one now.
  bool is_kept(std::size_t t) const { return t + sequence_.after.size() >= sequence_.tokens; }
  void keep(std::size_t t) {
    if (!is_kept(t)) return;
    const Matrix& after = sequence_.after[t + sequence_.after.size() - sequence_.tokens];
    for (std::size_t r = 0; r < rows_; ++r) std::copy_n(row(r), columns_, after.row<T>(first_ + r));
  }
  // How many tokens from `t` on may be taken at once: none behind which the state is asked for, but the last.
  std::size_t chunk(std::size_t t) const {
    const std::size_t first_asked = sequence_.tokens - sequence_.after.size();
    const std::size_t end = t > first_asked ? t + 1 : first_asked + 1;
    return std::min(kScanChunk, end - t);
  }

 private:
  const SequenceState& sequence_;
  std::size_t first_, rows_, columns_;
  std::vector<T> values_;
};

}  // namespace assay
