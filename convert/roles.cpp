#include "convert/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/config.h"
#include "core/model/open_model.h"
#include "core/system/error.h"

namespace assay {
namespace {

// The last name of a linear layer's module, as decoders and encoders call them; gates that choose experts,
// embeddings and heads have others.
bool is_linear_name(std::string_view own) {
  static constexpr std::array<std::string_view, 34> kNames = {
      "q",       "k",     "v",    "o",     "wq",    "wk",      "wv",       "wo",      "wqkv",
      "w1",      "w2",    "w3",   "wi",    "wi_0",  "wi_1",    "fc1",      "fc2",     "fc_in",
      "qkv",     "query", "key",  "value", "dense", "gate_up", "out_proj", "in_proj", "linear1",
      "linear2", "lin1",  "lin2", "up",    "down",  "to_q",    "to_out"};
  if (own.ends_with("_proj") || own.starts_with("dense_") || own.starts_with("query_key_value") ||
      own.find("_proj_") != std::string_view::npos)
    return true;
  return std::find(kNames.begin(), kNames.end(), own) != kNames.end();
}

// Parts of a name that make it something else, whatever its end: towers that other precisions are meant for,
// prediction heads, tables that are looked up, convolutions and recurrences.
bool is_something_else(std::string_view weight) {
  static constexpr std::array<std::string_view, 22> kParts = {
      "embed",  "head",  "norm",   "router",  "eh_proj",  "score",    "vision", "visual",
      "image",  "audio", "tower",  "conv",    "relative", "position", "bias",   "classifier",
      "pooler", "time_", "x_proj", "dt_proj", "lora",     "codebook"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return weight.find(part) != std::string_view::npos; });
}

// "….17.…": of many layers that are alike.
bool is_in_a_layer(std::string_view weight) {
  for (auto dot = weight.find('.'); dot != std::string_view::npos; dot = weight.find('.', dot + 1)) {
    const std::string_view rest = weight.substr(dot + 1);
    const auto digits = rest.find_first_not_of("0123456789");
    if (digits != 0 && digits != std::string_view::npos && rest[digits] == '.') return true;
  }
  return false;
}

// Of an architecture nobody has described: a linear layer beyond doubt. What is left plain costs bytes, what
// is quantized and is looked up, gates or biases attention costs the model.
bool is_surely_linear(const LogicalTensor& tensor) {
  const std::string_view name = tensor.name;
  const std::string_view module = name.substr(0, name.size() - std::string_view(".weight").size());
  const auto dot = module.rfind('.');
  const std::string_view own = dot == std::string_view::npos ? module : module.substr(dot + 1);
  return tensor.rows > 1 && tensor.columns > 1 && is_linear_name(own) && !is_something_else(name) &&
         is_in_a_layer(name);
}

}  // namespace

std::unique_ptr<ModuleTree> tree_of(const Checkpoint& checkpoint) {
  auto said = try_describe(checkpoint);  // of an architecture nobody has described names and shapes must do
  return said ? std::make_unique<ModuleTree>(std::move(said->tree)) : nullptr;
}

Roles::Roles(const Checkpoint& checkpoint) : tree_(tree_of(checkpoint)) {
  if (tree_) lookup_ = std::make_unique<TensorLookup>(*tree_);
  const auto& tensors = checkpoint.tensors;
  no_model_ = checkpoint.config.empty() &&
              std::none_of(tensors.begin(), tensors.end(),
                           [](const auto& tensor) { return is_in_a_layer(tensor.name); });
}

bool Roles::quantizable(const LogicalTensor& tensor) const {
  if (tensor.shape.size() != 2 || !tensor.name.ends_with(".weight")) return false;
  if (lookup_) {
    if (const auto found = lookup_->find(tensor.name))
      return found->spec->quantizable && !found->spec->input_major;
  }
  if (no_model_) return tensor.rows > 1 && tensor.columns > 1 && !is_something_else(tensor.name);
  return is_surely_linear(tensor);
}

std::string Roles::source() const {
  return tree_ ? fmt::format("the module tree of {}", tree_->family) : "names and shapes";
}

}  // namespace assay
