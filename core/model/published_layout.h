// Checkpoints that hold a known model under other names, brought back to those of the architecture:
//
//   transformers 5, saved as it computes   …mlp.experts.gate_up_proj [experts, gate and up, in], .down_proj
//   transformers 5, Qwen3-VL's mixtures    …mlp.experts.gate_up_proj [experts, out, in] for [experts, in, out]
//   MLX                                    …mlp.switch_mlp.gate_proj.weight [experts, out, in] and its kin
//   MLX, latent attention                  …self_attn.embed_q.weight [heads, rank, nope], unembed_out.weight
//
// In whatever form they are stored. What the tree knows by its own name stays as it is: gpt-oss and Llama 4
// publish stacks.
#pragma once

#include <functional>
#include <string_view>

#include "core/model/module_tree.h"
#include "core/model/stored_form.h"

namespace assay {

// Replaces such tensors by composed ones (core/model/composed_tensor.h) under the published names, each in
// the place of the first that it is made of. Where none is, `stored` comes back as it was.
StoredTensors under_published_names(StoredTensors stored, const ModuleTree& tree);

// The other way: stacks that the tree knows by their own names become composed tensors, one an expert, with
// the names that with_experts_apart(tree) has (core/model/expert_layout.h), biases with their matrices. Of a
// layer all or none: those of which `wanted` takes the name of a matrix.
using NameWanted = std::function<bool(std::string_view)>;
StoredTensors with_experts_apart(StoredTensors stored, const ModuleTree& tree, const NameWanted& wanted);

}  // namespace assay
