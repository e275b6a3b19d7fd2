#include "core/model/tower_blocks.h"

namespace assay::blocks {

Tower& Tower::add(std::string name, const std::vector<Quantity>& shape, bool bias) {
  module_.tensors.push_back(parameter(std::move(name), shape, Role::tower, part_));
  module_.tensors.back().bias = bias;
  return *this;
}

Tower& Tower::matrix(const std::string& name, const Quantity& in, const Quantity& out, bool bias) {
  add(name + ".weight", {out, in}, false);
  module_.tensors.back().tower_linear = true;
  return bias ? add(name + ".bias", {out}, true) : *this;
}

Tower& Tower::norm(const std::string& name, const Quantity& width, bool bias) {
  add(name + ".weight", {width}, false);
  return bias ? add(name + ".bias", {width}, true) : *this;
}

Tower& Tower::tensor(const std::string& name, const std::vector<Quantity>& shape) {
  return add(name, shape, name.ends_with(".bias"));
}

Module encoder_blocks(std::string path, const Quantity& depth, const EncoderBlock& b, Part part) {
  Module module = layers(std::move(path), "blocks", all_layers(depth));
  Tower tower(module, part);
  const Quantity width = b.attention_width.value_or(b.hidden);
  tower.norm(b.norm1, b.hidden, b.norm_bias);
  if (b.qkv.empty()) {
    for (const std::string& name : {b.q, b.k, b.v}) tower.matrix(name, b.hidden, width, b.attention_bias);
  } else {
    tower.matrix(b.qkv, b.hidden, Quantity(3) * width, b.attention_bias);
  }
  tower.matrix(b.o, width, b.hidden, b.attention_bias);
  tower.norm(b.norm2, b.hidden, b.norm_bias);
  if (!b.gate.empty()) tower.matrix(b.gate, b.hidden, b.intermediate, b.mlp_bias);
  tower.matrix(b.up, b.hidden, b.intermediate, b.mlp_bias);
  tower.matrix(b.down, b.intermediate, b.hidden, b.mlp_bias);
  return module;
}

}  // namespace assay::blocks
