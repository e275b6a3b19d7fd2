// y[t] = Σₑ w[t, e] · FFNₑ(x[t])      FFNₑ(x) = downₑ(gated(gateₑ(x), upₑ(x)))
//
// The sum runs over a token's experts by their number, as transformers' loop over experts has it; under bf16
// each product and each partial sum is rounded there. Where a token did not choose an expert (dense form)
// the product is 0 · FFNₑ(x): the same sum, as long as everything is finite.
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

const WeightView kNone;

const WeightView& bias_of(const std::vector<WeightView>& biases, std::size_t expert) {
  return biases.empty() ? kNone : biases[expert];
}

// Every second column, from `first` on.
Matrix every_second(Ops& ops, const Matrix& x, std::size_t first) {
  Matrix y = ops.allocate(x.rows(), x.columns() / 2);
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      for (std::size_t i = 0; i < y.columns(); ++i) y.row<T>(r)[i] = x.row<T>(r)[2 * i + first];
    }
  });
  return y;
}

Matrix expert(Ops& ops, const Matrix& x, const ExpertWeights& w, std::size_t e) {
  Matrix gate, up;  // [tokens, width]
  if (w.gate_up.empty()) {
    gate = ops.linear(x, w.gate[e], bias_of(w.gate_bias, e));
    up = ops.linear(x, w.up[e], bias_of(w.up_bias, e));
  } else {
    const Matrix both = ops.linear(x, w.gate_up[e], bias_of(w.gate_up_bias, e));  // [tokens, 2 · width]
    const std::size_t width = both.columns() / 2;
    gate = w.interleaved ? every_second(ops, both, 0) : both.part(0, width);
    up = w.interleaved ? every_second(ops, both, 1) : both.part(width, width);
  }
  return ops.linear(ops.gated(gate, up, w.form), w.down[e], bias_of(w.down_bias, e));  // [tokens, hidden]
}

// The tokens an expert works on, and where in Routing::weights each one's weight is; kNotChosen: it has none.
constexpr std::size_t kNotChosen = static_cast<std::size_t>(-1);
struct Share {
  std::vector<std::size_t> tokens, places;
};

Share share_of(const Routing& routing, std::size_t tokens, std::size_t expert, MoeForm form) {
  Share share;
  for (std::size_t t = 0; t < tokens; ++t) {
    std::size_t place = kNotChosen;
    for (std::size_t k = 0; k < routing.top_k; ++k) {
      if (static_cast<std::size_t>(routing.experts[t * routing.top_k + k]) == expert) place = k;
    }
    if (place == kNotChosen && form == MoeForm::sparse) continue;
    share.tokens.push_back(t);
    share.places.push_back(place);
  }
  return share;
}

}  // namespace

Matrix ReferenceOps::moe_mix(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                             MoeForm form) {
  const std::size_t count = experts.down.size();
  if (form == MoeForm::soft && routing.top_k != count)
    throw Error::internal("a soft mixture wants a weight for every expert");
  Matrix y = allocate(x.rows(), count == 0 ? 0 : experts.down[0].outputs());  // [tokens, hidden]
  for (std::size_t e = 0; e < count; ++e) {
    const Share share = share_of(routing, x.rows(), e, form);
    if (share.tokens.empty()) continue;
    const Matrix out = expert(*this, gather(x, share.tokens), experts, e);  // [its tokens, hidden]
    with_elements(y.real(), [&](auto element) {
      using T = decltype(element);
      for (std::size_t i = 0; i < share.tokens.size(); ++i) {
        const std::size_t t = share.tokens[i], k = share.places[i];
        const double w = k == kNotChosen ? 0 : static_cast<double>(routing.weights.row<T>(t)[k]);
        for (std::size_t c = 0; c < y.columns(); ++c) {
          const double product = arithmetic().stage(w * static_cast<double>(out.row<T>(i)[c]));
          T& sum = y.row<T>(t)[c];
          sum = static_cast<T>(arithmetic().round(static_cast<double>(sum) + product));
        }
      }
    });
  }
  return y;
}

}  // namespace assay
