// y[t] = table[token t]
#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {

Matrix ReferenceOps::run(const EmbeddingCall& call) {
  const std::vector<TokenId>& tokens = call.tokens;
  const WeightView& table = call.table;
  Matrix y = allocate(tokens.size(), table.columns);  // [tokens, hidden]
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      if (tokens[t] >= table.rows)
        throw Error::input(fmt::format("token {} is outside the vocabulary of {}", tokens[t], table.rows));
      T* row = y.row<T>(t);
      decode_rows(table, tokens[t], 1, row);
      for (std::size_t i = 0; i < table.columns; ++i) row[i] = static_cast<T>(arithmetic().round(row[i]));
    }
  });
  return y;
}

}  // namespace assay
