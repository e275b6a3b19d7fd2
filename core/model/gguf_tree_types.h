// The types that a GGUF made of a model would hold, without its weights: llama.cpp's mix (gguf_mix) over the
// tensors that its converter makes of the module tree. Sizes that are foretold are those of the file that is
// written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/gguf_mix.h"
#include "core/model/module_tree.h"

namespace assay {

class GgufTreeTypes {
 public:
  // `tree` must outlive this. Multi-token prediction is no part of the mix: conversions leave it out.
  GgufTreeTypes(const ModuleTree& tree, GgufFileType file);

  // Bytes of `elements` of a spec's tensor in `layer`: all of them, or what one rank holds. What stands
  // outside the mix is of its default type.
  std::uint64_t bytes(const TensorSpec& spec, std::uint64_t layer, std::uint64_t elements) const;

  // The types of what it becomes: "Q4_K", "Q8_0 Q6_K" where that is two tensors.
  std::string types_of(const TensorSpec& spec, std::uint64_t layer) const;

  // What the mix was asked about and said, for tests: a name, and its type.
  const std::vector<MixTensor>& tensors() const { return tensors_; }
  const std::vector<ElementType>& types() const { return types_; }

 private:
  // Tensors of the file that one spec becomes, in one layer: kv_b_proj is two, fused experts are two.
  struct Range {
    std::size_t first = 0, count = 0;
  };
  void take(const TensorSpec& spec, std::uint64_t layer);
  void add(std::string name, std::vector<std::uint64_t> dimensions);

  const ModuleTree& tree_;
  GgufFileType file_;
  std::vector<MixTensor> tensors_;
  std::vector<ElementType> types_;
  std::map<std::pair<const TensorSpec*, std::uint64_t>, Range> ranges_;
};

}  // namespace assay
