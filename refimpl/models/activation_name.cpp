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
// gelu_new, gelu_fast, gelu_accurate and gelu_python_tanh write the tanh form in other words.
constexpr Named kNames[] = {
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_python", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
    {"relu", Activation::relu},
    {"relu2", Activation::relu_squared},
    {"sigmoid", Activation::sigmoid},
};

}  // namespace

Activation activation_of(const Hyperparameters& h, const ModelConfig& config) {
  for (const Named& known : kNames) {
    if (known.name == h.activation) return known.activation;
  }
  throw Error::input(
      fmt::format("{} is \"{}\", which no operation here computes", h.activation_key, h.activation))
      .in(config.source())
      .remedy("known: silu, gelu, gelu_pytorch_tanh (gelu_new, gelu_fast), relu, relu2, sigmoid");
}

}  // namespace assay
