#include "refimpl/models/activation_name.h"

#include <fmt/format.h>

#include <string>

#include "core/system/error.h"
#include "refimpl/models/settings.h"

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
};

}  // namespace

Activation read_activation(const ModelConfig& config, std::string_view key, std::string_view class_default) {
  const std::string name = key.empty() ? std::string(class_default) : config_text(config, key, class_default);
  for (const Named& known : kNames) {
    if (known.name == name) return known.activation;
  }
  throw Error::input(fmt::format("{} is \"{}\", which no operation here computes", key, name))
      .in(config.source())
      .remedy("known: silu, gelu, gelu_pytorch_tanh (gelu_new, gelu_fast), relu");
}

}  // namespace assay
