// Sequences for the operations that keep a state: how many tokens each has, what it comes with, and behind how many
// of its tokens the state is asked for.
//
//   m=9        tokens of the first sequence; 0: there is none
//   seqs=3     so many sequences; those behind the first have 1, 2, 3 … tokens
//   past=1     the first, the third … go on from a state; the others begin
//   kept=4     the states behind the last four tokens are asked for, not the last one alone
#pragma once

#include <optional>
#include <vector>

#include "kernels/harness/cases.h"

namespace assay {

class MadeStates {
 public:
  MadeStates(const CaseId& id, const Arithmetic& arithmetic, std::size_t rows, std::size_t columns);
  std::size_t tokens() const { return tokens_; }
  std::vector<SequenceState> states(Ops& ops) const;  // with fresh memory for those behind the tokens

  struct Sequence {
    std::size_t first = 0, tokens = 0, kept = 1;
    std::optional<Filled> before;
  };
  const std::vector<Sequence>& sequences() const { return sequences_; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  double elements() const;  // of the states read and written

 private:
  std::size_t rows_, columns_, tokens_ = 0;
  std::vector<Sequence> sequences_;
};

// Cases of a recurrent operation, with what MadeStates reads of them.
inline CaseId stateful_case(std::string_view op, std::uint64_t tokens, std::uint64_t sequences = 1,
                            bool past = false, std::uint64_t kept = 1) {
  CaseId id(std::string(op), "F32");
  id.with("m", tokens);
  if (sequences != 1) id.with("seqs", sequences);
  if (past) id.with("past", 1);
  if (kept != 1) id.with("kept", kept);
  return id;
}

// visit(each matrix of the call that has a row for each token).
template <class Visitor>
void for_each_input(ConvolutionCall& call, Visitor&& visit) {
  visit(call.x);
}
template <class Visitor>
void for_each_input(DeltaRuleCall& call, Visitor&& visit) {
  for (Matrix* x : {&call.q, &call.k, &call.v, &call.decay, &call.beta}) visit(*x);
}
template <class Visitor>
void for_each_input(StateSpaceCall& call, Visitor&& visit) {
  for (Matrix* x : {&call.x, &call.b, &call.c, &call.step}) visit(*x);
}

// The first sequence alone; of it, the first `tokens`, behind the last of which the state is asked for.
template <class Call>
std::optional<Call> first_sequence_of(const Call& call) {
  if (call.sequences.size() < 2) return std::nullopt;
  Call first = call;
  first.sequences.resize(1);
  for_each_input(first, [&](Matrix& x) { x = x.row_range(0, first.sequences[0].tokens); });
  return first;
}
template <class Call>
std::optional<Call> first_tokens_of(const Call& call, std::size_t tokens) {
  if (call.sequences.empty() || call.sequences[0].tokens <= tokens) return std::nullopt;
  Call first = call;
  first.sequences.resize(1);
  SequenceState& sequence = first.sequences[0];
  sequence.tokens = tokens;
  sequence.after = {sequence.after.back()};
  for_each_input(first, [&](Matrix& x) { x = x.row_range(0, tokens); });
  return first;
}

}  // namespace assay
