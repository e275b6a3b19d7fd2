// Activations, alone and gated: gated(g, u) = act(g) · u (Shazeer 2020: SwiGLU, GeGLU). gpt-oss clamps first
// and adds one: min(g, l) σ(1.702 min(g, l)) (clamp(u, -l, l) + 1).
#include "refimpl/ops/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}
double gelu_by_tanh(double x, double root) {
  return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
}
}  // namespace

double activate(double x, Activation kind) {
  switch (kind) {
    case Activation::silu: return x * sigmoid(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_by_tanh(x, std::sqrt(2 / std::numbers::pi));
    case Activation::gelu_cut: return gelu_by_tanh(x, 0.7978845608);
    case Activation::gelu_clipped: return std::clamp(gelu(x), -10.0, 10.0);
    case Activation::gelu_logistic: return x * sigmoid(1.702 * x);
    case Activation::tanh: return std::tanh(x);
    case Activation::identity: return x;
    case Activation::relu6: return std::clamp(x, 0.0, 6.0);
    case Activation::leaky_relu: return x > 0 ? x : 0.01 * x;
    case Activation::hard_silu: return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case Activation::mish: return x * std::tanh(softplus(x));
    case Activation::laplace: return 0.5 * (1 + std::erf((x - 0.707107) / (0.282095 * std::numbers::sqrt2)));
    case Activation::softplus_root: return std::sqrt(softplus(x));
    case Activation::relu: return std::max(x, 0.0);
    case Activation::relu_squared: return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::gpt_oss: break;
  }
  throw Error::internal("an activation that exists only gated");
}

namespace {

double gpt_oss(double gate, double up, double limit, const Arithmetic& arithmetic) {
  constexpr double kSharpness = 1.702;  // σ(1.702 x) ≈ Φ(x)
  const auto stage = [&](double x) { return arithmetic.stage(x); };
  const double g = std::min(gate, limit), u = std::clamp(up, -limit, limit);
  const double glu = stage(g * stage(sigmoid(stage(g * kSharpness))));
  return stage(u + 1) * glu;
}

}  // namespace

Matrix ReferenceOps::run(const ActivationCall& call) {
  const Matrix& x = call.x;
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t i = 0; i < x.columns(); ++i)
        y.row<T>(r)[i] = static_cast<T>(arithmetic().round(activate(x.row<T>(r)[i], call.kind)));
    }
  });
  return y;
}

Matrix ReferenceOps::run(const GatedActivationCall& call) {
  const GatedActivation& form = call.form;
  Matrix y = allocate(call.gate.rows(), call.gate.columns());
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      for (std::size_t i = 0; i < y.columns(); ++i) {
        const double g = call.gate.row<T>(r)[i], u = call.up.row<T>(r)[i];
        const double value = form.activation == Activation::gpt_oss
                                 ? gpt_oss(g, u, form.limit, arithmetic())
                                 : arithmetic().stage(activate(g, form.activation)) * u;
        y.row<T>(r)[i] = static_cast<T>(arithmetic().round(value));
      }
    }
  });
  return y;
}

}  // namespace assay
