// reconcile() for GGUF, whose tensors have other names, hold all experts of a layer at once, and have the shapes that
// the plans of its family make (gguf_shapes.h): llama.cpp loads no tensor of another shape, even of as many elements.
#pragma once

#include "core/model/reconcile.h"

namespace assay {

Reconciliation reconcile_gguf(const ModuleTree& tree, const ModelConfig& config,
                              const Checkpoint& checkpoint);

}  // namespace assay
