#include "refimpl/models/activation_name.h"

#include <fmt/format.h>

#include <string_view>

#include "core/system/error.h"

namespace assay {
namespace {

struct Named {
  std::string_view name;
  Activation activation;
};
// gelu_new, gelu_accurate and gelu_python_tanh write the tanh form in other words.
constexpr Named kNames[] = {
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_python", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_cut},
    {"gelu_accurate", Activation::gelu_tanh},
    {"gelu_10", Activation::gelu_clipped},
    {"quick_gelu", Activation::gelu_logistic},
    {"relu", Activation::relu},
    {"relu2", Activation::relu_squared},
    {"relu6", Activation::relu6},
    {"leaky_relu", Activation::leaky_relu},
    {"sigmoid", Activation::sigmoid},
    {"tanh", Activation::tanh},
    {"linear", Activation::identity},
    {"hardswish", Activation::hard_silu},
    {"mish", Activation::mish},
    {"laplace", Activation::laplace},
    {"sqrtsoftplus", Activation::softplus_root},
};

}  // namespace

Activation activation_of(const Hyperparameters& h, const ModelConfig& config) {
  for (const Named& known : kNames) {
    if (known.name == h.activation) return known.activation;
  }
  throw Error::input(
      fmt::format("{} is \"{}\", which no operation here computes", h.activation_key, h.activation))
      .in(config.source())
      .remedy("known: those of transformers that have no weights (silu, gelu, gelu_pytorch_tanh, relu2, …)");
}

Activation activation_of(const Weights& weights) {
  return activation_of(hyperparameters(weights.tree()), weights.config());
}

}  // namespace assay
