#include "refimpl/ranks/leaf_sums.h"

#include <cmath>
#include <numeric>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/decoded_rows.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

constexpr std::size_t kLeavesOfAll = 24;  // the least that 1, 2, 3, 4, 6 and 8 divide

// visit(t · outputs + o, x[t], W[o])
template <class Visit>
void for_each_row(const Matrix& x, const WeightView& weight, const Arithmetic& arithmetic, int jobs,
                  const Visit& visit) {
  const std::size_t outputs = weight.outputs();
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    const DecodedRows<T> rows(weight, arithmetic);
    parallel_for(jobs, outputs, [&](std::size_t o) {
      std::vector<T> w;
      rows.read(o, 1, w);
      for (std::size_t t = 0; t < x.rows(); ++t) visit(t * outputs + o, x.row<T>(t), w.data());
    });
  });
}

}  // namespace

std::size_t leaves_of(std::size_t units) {
  return std::gcd(units, kLeavesOfAll);
}

std::vector<std::vector<double>> leaf_products(const Matrix& x, const WeightView& weight, std::size_t leaves,
                                               const Arithmetic& arithmetic, int jobs) {
  if (leaves == 0 || weight.inputs() % leaves != 0)
    throw Error::internal("inputs that are no whole number of leaves");
  const std::size_t width = weight.inputs() / leaves;
  std::vector<std::vector<double>> sums(leaves, std::vector<double>(x.rows() * weight.outputs()));
  for_each_row(x, weight, arithmetic, jobs, [&](std::size_t at, const auto* row, const auto* w) {
    for (std::size_t leaf = 0; leaf < leaves; ++leaf)
      sums[leaf][at] = dot(row + leaf * width, w + leaf * width, width);
  });
  return sums;
}

std::vector<double> leaf_magnitudes(const Matrix& x, const WeightView& weight, const Arithmetic& arithmetic,
                                    int jobs) {
  std::vector<double> sums(x.rows() * weight.outputs());
  for_each_row(x, weight, arithmetic, jobs, [&](std::size_t at, const auto* row, const auto* w) {
    for (std::size_t i = 0; i < weight.inputs(); ++i)
      sums[at] += std::abs(static_cast<double>(row[i]) * static_cast<double>(w[i]));
  });
  return sums;
}

std::vector<double> tree_sum(std::span<const std::vector<double>> leaves) {
  if (leaves.size() == 1) return leaves.front();
  const std::size_t half = (leaves.size() + 1) / 2;
  std::vector<double> sum = tree_sum(leaves.first(half));
  const std::vector<double> other = tree_sum(leaves.subspan(half));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  return sum;
}

}  // namespace assay
