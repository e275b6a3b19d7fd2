// A GGUF as the checkpoint of transformers that it would become (gguf_import.h), without writing one: whatever
// computes from safetensors computes from it. Weights that lie in the file as a checkpoint has them are read where they
// lie, in the type they are stored in; what was transformed is transformed back as it is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/module_tree.h"
#include "core/model/stored_form.h"

namespace assay {

struct GgufAsCheckpoint {
  // Of a weight that is read where it lies though a checkpoint has it otherwise: stacks of experts with gate and up
  // apart, or with inputs and outputs the other way round, which need not be undone to be multiplied by.
  struct Seen {
    Role role;
    bool input_major;
  };

  ModelConfig config;
  ModuleTree tree;
  StoredTensors stored;                   // by transformers' names
  std::vector<std::optional<Seen>> seen;  // of each of them
};

// Appends to `checkpoint`, which it is of, places of what lies within its tensors. Throws Error::input where the file is
// of no family that is read back, or lacks something.
GgufAsCheckpoint gguf_as_checkpoint(Checkpoint& checkpoint);

}  // namespace assay
