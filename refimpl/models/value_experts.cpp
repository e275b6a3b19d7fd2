#include "refimpl/models/value_experts.h"

#include "refimpl/models/experts_one_by_one.h"

namespace assay {

std::optional<ValueExperts> ValueExperts::find(const Weights& weights, std::size_t layer,
                                               const GateRule& rule) {
  ValueExperts values;
  values.router = weights.find({.role = Role::router, .part = Part::attention, .layer = layer});
  if (!values.router) return std::nullopt;
  values.correction =
      weights.find({.role = Role::router, .part = Part::attention, .layer = layer, .bias = true});
  values.rule = rule;
  for (std::size_t e = 0; e < values.router.outputs(); ++e)
    values.experts.push_back(
        weights.get({.role = Role::v, .part = Part::attention, .layer = layer, .expert = e}));
  return values;
}

Matrix ValueExperts::operator()(const Matrix& x, Ops& ops, const TapScope& at) const {
  const Matrix logits = ops.linear(x, router);  // [tokens, experts]
  at("v_router_logits", logits);
  const Routing routing = ops.moe_gate(logits, correction, rule);
  const ExpertFunction expert = [&](const Matrix& rows, std::size_t e) {
    return ops.activation(ops.linear(rows, experts[e]), Activation::silu);
  };
  return summed_one_by_one(x, routing, experts.size(), experts.front().outputs(), expert, ops);
}

}  // namespace assay
