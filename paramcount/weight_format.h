// How many bytes a weight takes in the forms releases come in, scales included. Only what such releases do
// quantize is: TensorSpec::quantizable says which matrices; embeddings, norms, routers and heads stay.
//
//   WeightFormat fp8 = *weight_format("fp8-block");
//   weight_bytes(tree, fp8).total      688,574,839,360 for DeepSeek-V3, as its files hold
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/gguf_mix.h"
#include "core/model/gguf_tree_types.h"
#include "core/model/module_tree.h"
#include "core/numeric/element_type.h"

namespace assay {

struct WeightFormat {
  enum class Kind {
    plain,   // plain_bytes an element
    blocks,  // codes, and a scale for each block of rows × columns; rows 0: the whole column, likewise
             // columns
    gguf,    // a mix of block types, by llama.cpp's rules (core/model/gguf_mix)
  };
  std::string name, title;
  Kind kind = Kind::plain;
  std::uint64_t bits = 16;  // of one code
  std::uint64_t block_rows = 0, block_columns = 0;
  std::uint64_t scale_bytes = 0;       // of one block's scale
  std::uint64_t per_matrix_bytes = 0;  // global scales, stored shapes
  std::uint64_t word_bytes = 1;        // codes of a row fill whole words of so many bytes
  std::uint64_t plain_bytes = 2;       // an element of what is not quantized
  bool routed_experts_only = false;
  std::vector<std::string> ignored;            // modules_to_not_convert, as the config writes them
  GgufFileType file_type = GgufFileType::F16;  // gguf
};

// "bf16", "fp8-block", "fp8-channel", "int8-channel", "int4-g128", "nvfp4", "mxfp4", "q8_0", "q6_k",
// "q5_k_m", "q4_k_m".
std::span<const WeightFormat> weight_formats();
std::optional<WeightFormat> weight_format(std::string_view name);
// What config.json says the checkpoint holds: its dtype, or its quantization_config.
WeightFormat configured_format(const ModelConfig& config);
// A block size other than the format's own ("64x64"); nothing changes where the format has no blocks.
void set_block(WeightFormat& format, std::uint64_t rows, std::uint64_t columns);

// Whether this form quantizes `spec` in `layer`.
bool quantizes(const WeightFormat& format, const TensorSpec& spec, std::uint64_t layer);

// Sizes of a tree's tensors in a format. Both outlive this.
class WeightSizes {
 public:
  WeightSizes(const ModuleTree& tree, const WeightFormat& format);
  // Bytes of one tensor of `shape`: spec.shape, or the part of it that one rank holds.
  std::uint64_t of_tensor(const TensorSpec& spec, std::span<const std::uint64_t> shape,
                          std::uint64_t layer) const;
  // Of one spec, all its copies.
  std::uint64_t of_spec(const TensorSpec& spec, const Occurrence& where) const;

 private:
  const ModuleTree& tree_;
  const WeightFormat& format_;
  std::optional<GgufTreeTypes> gguf_;
};

struct WeightBytes {
  std::uint64_t main = 0;    // tied weights once
  std::uint64_t mtp = 0;     // own and duplicated, as published checkpoints store them
  std::uint64_t active = 0;  // of main, what one token reads
  std::uint64_t total = 0;   // main + mtp
};
WeightBytes weight_bytes(const ModuleTree& tree, const WeightFormat& format);
// The layers an occurrence repeats over; {0} where it stands outside layers.
std::vector<std::uint64_t> layers_of(const Occurrence& where);

}  // namespace assay
