#include "kernels/harness/made_states.h"

#include <algorithm>

namespace assay {

MadeStates::MadeStates(const CaseId& id, const Arithmetic& arithmetic, std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns) {
  const std::uint64_t first = id.number("m", 1), count = first == 0 ? 0 : id.number("seqs", 1);
  const std::uint64_t kept = std::max<std::uint64_t>(1, id.number("kept", 1));
  for (std::uint64_t i = 0; i < count; ++i) {
    Sequence sequence = {.first = tokens_, .tokens = i == 0 ? first : i, .kept = 1, .before = {}};
    sequence.kept = std::min<std::size_t>(kept, sequence.tokens);
    if (id.number("past", 0) != 0 && i % 2 == 0)
      sequence.before = filled(arithmetic, id.input(),
                               {.rows = rows, .columns = columns, .terms = 8, .seed = id.seed() + 300 + i});
    tokens_ += sequence.tokens;
    sequences_.push_back(std::move(sequence));
  }
}

std::vector<SequenceState> MadeStates::states(Ops& ops) const {
  std::vector<SequenceState> states;
  for (const Sequence& s : sequences_) {
    SequenceState state = {.first = s.first, .tokens = s.tokens, .before = {}, .after = {}};
    if (s.before) state.before = upload(ops, *s.before);
    for (std::size_t i = 0; i < s.kept; ++i) state.after.push_back(ops.allocate(rows_, columns_));
    states.push_back(std::move(state));
  }
  return states;
}

double MadeStates::elements() const {
  std::size_t count = 0;
  for (const Sequence& s : sequences_) count += s.kept + (s.before ? 1 : 0);
  return static_cast<double>(count * rows_ * columns_);
}

}  // namespace assay
