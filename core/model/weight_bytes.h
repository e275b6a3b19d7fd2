// How many bytes the weights of a model take in the forms releases come in, scales included. Only what such
// releases do quantize is: TensorSpec::quantizable says which matrices; embeddings, norms, routers and heads stay.
//
//   WeightFormat fp8 = *weight_format("fp8-block");
//   weight_bytes(tree, fp8).total      688,574,839,360 for DeepSeek-V3, as its files hold
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model/gguf_tree_types.h"
#include "core/model/module_tree.h"
#include "core/model/weight_format.h"

namespace assay {

// Whether this form quantizes `spec` in `layer`.
bool quantizes(const WeightFormat& format, const TensorSpec& spec, std::uint64_t layer);

// Sizes of a tree's tensors in a format. Both outlive this.
class WeightSizes {
 public:
  WeightSizes(const ModuleTree& tree, const WeightFormat& format);
  // Bytes of one tensor of `shape`: spec.shape, or the part of it that one rank holds.
  std::uint64_t of_tensor(const TensorSpec& spec, std::span<const std::uint64_t> shape,
                          std::uint64_t layer) const;
  // The type of its elements, or of the blocks they are in: "BF16", "fp8-block", "Q4_K".
  std::string type_of(const TensorSpec& spec, std::uint64_t layer) const;
  // Of one spec, all its copies.
  std::uint64_t of_spec(const TensorSpec& spec, const Occurrence& where) const;
  // The form it is quantized in; nullptr: none.
  const WeightFormat* form_of(const TensorSpec& spec, std::uint64_t layer) const;

 private:
  const ModuleTree& tree_;
  const WeightFormat& format_;
  std::optional<GgufTreeTypes> gguf_;
};

// The bytes of each spec that is stored, all its copies. The tree must outlive it.
using SpecBytes = std::unordered_map<const TensorSpec*, std::uint64_t>;
SpecBytes spec_bytes(const ModuleTree& tree, const WeightFormat& format);

struct WeightBytes {
  std::uint64_t main = 0;    // tied weights once
  std::uint64_t mtp = 0;     // own and duplicated, as published checkpoints store them
  std::uint64_t active = 0;  // of main, what one token reads
  std::uint64_t towers = 0;  // vision, audio, projectors
  std::uint64_t total = 0;   // main + mtp + towers
};
WeightBytes weight_bytes(const ModuleTree& tree, const WeightFormat& format);

}  // namespace assay
