#include "refimpl/models/head_block.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

HeadBlock HeadBlock::get(const Weights& weights, const std::string& prefix, Activation activation,
                         const NormRule& rule) {
  const auto named = [&](const char* name) { return weights.find_named(prefix + name); };
  HeadBlock block;
  block.dense = {named(".dense.weight"), named(".dense.bias")};
  if (!block.dense)
    throw Error::input("a matrix in front of the head is missing").tensor(prefix + ".dense.weight");
  block.activation = activation;
  block.norm = Norm(named(".norm.weight"), named(".norm.bias"), rule);
  return block;
}

}  // namespace assay
