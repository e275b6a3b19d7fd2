#include "refimpl/ops/recurrence.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

void check_states(std::string_view op, const std::vector<SequenceState>& sequences, std::size_t tokens,
                  std::size_t rows, std::size_t columns) {
  const auto fits = [&](const Matrix& state) { return state.rows() == rows && state.columns() == columns; };
  for (const SequenceState& s : sequences) {
    const bool within = s.first <= tokens && s.tokens <= tokens - s.first;
    const bool behind = !s.after.empty() && s.after.size() <= s.tokens;
    if (within && behind && (s.before.empty() || fits(s.before)) &&
        std::all_of(s.after.begin(), s.after.end(), fits))
      continue;
    throw Error::internal(
        fmt::format("{}: states of {} tokens do not fit [{}, {}]", op, s.tokens, rows, columns));
  }
}

}  // namespace assay
