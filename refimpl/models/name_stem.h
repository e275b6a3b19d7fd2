// What names of a checkpoint begin with.
#pragma once

#include <string>

#include "refimpl/models/weights.h"

namespace assay {

// "model." of "model.embed_tokens.weight".
inline std::string name_stem(const Weights& weights) {
  const std::string& name = *weights.get({.role = Role::token_embedding}).name;
  return name.substr(0, name.rfind("embed_tokens"));
}

}  // namespace assay
