#include "convert/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/config.h"
#include "core/system/error.h"

namespace assay {
namespace {

// What no engine loads quantized, by the parts of its name.
bool stays_by_name(std::string_view weight) {
  static constexpr std::array<std::string_view, 15> kParts = {"embed",
                                                              "lm_head",
                                                              "wte",
                                                              "wpe",
                                                              "norm",
                                                              "router",
                                                              "eh_proj",
                                                              "shared_head",
                                                              ".ln_",
                                                              "mlp.gate.weight",
                                                              "output.weight",
                                                              "score",
                                                              "moe.gate.weight",
                                                              "gate.wg",
                                                              "vision"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return weight.find(part) != std::string_view::npos; });
}

}  // namespace

std::unique_ptr<ModuleTree> tree_of(const Checkpoint& checkpoint) {
  if (checkpoint.config.empty()) return nullptr;
  try {
    return std::make_unique<ModuleTree>(describe(ModelConfig::read(checkpoint.config)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return nullptr;  // an architecture nobody has described: names and shapes must do
  }
}

Roles::Roles(const Checkpoint& checkpoint) : tree_(tree_of(checkpoint)) {
  if (tree_) lookup_ = std::make_unique<TensorLookup>(*tree_);
}

bool Roles::quantizable(const LogicalTensor& tensor) const {
  if (tensor.shape.size() != 2 || !tensor.name.ends_with(".weight")) return false;
  if (lookup_) {
    if (const auto found = lookup_->find(tensor.name))
      return found->spec->quantizable && !found->spec->input_major;
  }
  return tensor.rows > 1 && tensor.columns > 1 && !stays_by_name(tensor.name);
}

std::string Roles::source() const {
  return tree_ ? fmt::format("the module tree of {}", tree_->family) : "names and shapes";
}

}  // namespace assay
