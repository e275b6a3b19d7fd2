// A checkpoint whose names all differ from those of the config's model by what stands in front: saved out of
// DataParallel ("module."), torch.compile ("_orig_mod."), a model that sees ("language_model."), or without its head
// ("layers.0…" where "model.layers.0…" is looked for). One cause, and not a fault for each tensor.
#pragma once

#include <optional>
#include <string>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

struct PrefixFault {
  std::string stored, wanted;  // "module." where "" is looked for; "" where "model." is
  std::uint64_t tensors = 0;   // so many are named so
  std::string name(std::string_view stored_name,
                   const TensorLookup& lookup) const;  // as the config's model has it
  Finding finding() const;                             // model.names_prefixed
};

// Nullopt where most names are those looked for, or no single prefix makes nearly all of them so.
std::optional<PrefixFault> find_prefix_fault(const ModuleTree& tree, const Checkpoint& checkpoint);

// The same checkpoint with the names that are looked for.
Checkpoint with_names(Checkpoint checkpoint, const PrefixFault& fault, const TensorLookup& lookup);

}  // namespace assay
