#include "core/model/families/gemma_blocks.h"

namespace assay::families {

using namespace blocks;

void add_whole_linear(Module& module, const std::string& name, const Quantity& in, const Quantity& out,
                      Role role, Part part) {
  add_linear(module, {.name = name, .in = in, .out = out, .role = role, .part = part});
}

Module per_layer_inputs(const std::string& path, ConfigReader& config, const Decoder& d,
                        const Quantity& width) {
  Module module{path, "embeddings of the layers", {}, {}, {}};
  const Quantity rows = config.size("vocab_size_per_layer_input", 262144), all = d.layers * width;
  module.tensors.push_back(
      parameter("embed_tokens_per_layer.weight", {rows, all}, Role::per_layer_embedding, Part::embedding));
  add_whole_linear(module, "per_layer_model_projection", d.hidden, all, Role::per_layer_embedding);
  add_norm(module, "per_layer_projection_norm", width, Role::per_layer_embedding);
  return module;
}

Module per_layer_step(const Quantity& hidden, const Quantity& width) {
  Module own{"", "input of the layer's own", {}, {}, {}};
  add_whole_linear(own, "per_layer_input_gate", hidden, width, Role::latent_down);
  add_whole_linear(own, "per_layer_projection", width, hidden, Role::latent_up);
  add_norm(own, "post_per_layer_input_norm", hidden, Role::latent_norm);
  return own;
}

}  // namespace assay::families
