#include "refimpl/models/experts_one_by_one.h"

namespace assay {

Matrix summed_one_by_one(const Matrix& x, const Routing& routing, std::size_t experts, std::size_t columns,
                         const ExpertFunction& expert, Ops& ops) {
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const std::vector<double> weights = ops.download(routing.weights);
  std::vector<double> sums(x.rows() * columns);
  for (std::size_t e = 0; e < experts; ++e) {
    std::vector<std::size_t> places, rows;  // in the routing, and of x
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
      if (static_cast<std::size_t>(routing.experts[i]) != e) continue;
      places.push_back(i);
      rows.push_back(i / routing.top_k);
    }
    if (places.empty()) continue;
    const std::vector<double> y = ops.download(expert(ops.gather(x, rows), e));
    for (std::size_t i = 0; i < y.size(); ++i) {
      double& sum = sums[rows[i / columns] * columns + i % columns];
      sum = stage(sum + stage(y[i] * weights[places[i / columns]]));
    }
  }
  return ops.upload(sums, x.rows(), columns);
}

Matrix experts_one_by_one(const Matrix& x, const Routing& routing, std::size_t experts,
                          const ExpertFunction& expert, Ops& ops) {
  if (auto* apart = dynamic_cast<OpsApart*>(&ops)) return apart->sent_to_experts(x, routing, experts, expert);
  return summed_one_by_one(x, routing, experts, x.columns(), expert, ops);
}

}  // namespace assay
