// reconcile() for GGUF, whose tensors have other names and hold all experts of a layer at once.
#pragma once

#include "core/model/reconcile.h"

namespace assay {

Reconciliation reconcile_gguf(const ModuleTree& tree, const Checkpoint& checkpoint);

}  // namespace assay
