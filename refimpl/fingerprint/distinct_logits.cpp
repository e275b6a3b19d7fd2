#include "refimpl/fingerprint/distinct_logits.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace assay {
namespace {

// Which columns differ from all before them.
std::vector<std::size_t> distinct_columns(const DenseMatrix& table) {
  std::vector<std::size_t> order(table.columns()), kept;
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less = [&](std::size_t a, std::size_t b) {
    const auto left = table.column(a), right = table.column(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  };
  std::stable_sort(order.begin(), order.end(), less);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i == 0 || less(order[i - 1], order[i])) kept.push_back(order[i]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

DenseMatrix transposed(const DenseMatrix& table, const std::vector<std::size_t>& columns) {
  DenseMatrix result(columns.size(), table.rows());
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < table.rows(); ++i) result.at(j, i) = table.at(i, columns[j]);
  return result;
}

}  // namespace

DenseMatrix distinct_logits(const DenseMatrix& table) {
  const DenseMatrix tokens = transposed(table, distinct_columns(table));
  return transposed(tokens, distinct_columns(tokens));
}

}  // namespace assay
