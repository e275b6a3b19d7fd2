#include "refimpl/sampling/rejection.h"

#include <algorithm>

#include "core/system/error.h"

namespace assay {
double acceptance(std::span<const double> p, std::span<const double> q, TokenId drafted) {
  if (drafted >= p.size() || drafted >= q.size() || q[drafted] == 0)
    throw Error::internal("a draft that its law could not have drawn");
  return std::min(1.0, p[drafted] / q[drafted]);
}

std::vector<double> residual_law(std::span<const double> p, std::span<const double> q) {
  std::vector<double> left(p.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += left[i] = std::max(p[i] - q[i], 0.0);
  if (sum == 0) return {p.begin(), p.end()};  // every draft is kept; or all but rounding
  for (double& x : left) x /= sum;
  return left;
}

}  // namespace assay
