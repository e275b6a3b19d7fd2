// What part of a weight one scale covers, told from the shapes of both and from quantization_config. Whoever
// asks gets the answer here, so that no command takes a checkpoint that another refuses.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/attention_sizes.h"
#include "core/model/config.h"

namespace assay {

struct TensorSpec;

using StoredShape = std::vector<std::uint64_t>;

// What FP8 and INT8 weights, and FP4 ones, keep their scales under.
inline constexpr std::array<std::string_view, 8> kWeightScales = {
    "weight_scale_inv",  "weight_scale",   "scale",      "proj_weight_scale_inv",
    "proj_weight_scale", "proj_scale_inv", "proj_scale", "qscale_weight"};

// A shape as `slices` matrices: stacked experts are slices, of what has one dimension there is one row.
struct MatrixSizes {
  std::uint64_t slices = 1, rows = 1, columns = 1;
};
MatrixSizes as_matrices(const StoredShape& shape);

// A weight as a matrix [out, in], whatever the stored order; leading dimensions (stacked experts) apart.
struct WeightMatrix {
  StoredShape leading;
  std::uint64_t out = 1, in = 1;
  std::uint64_t elements = 0;
  // `shape` is `rest` behind the leading dimensions.
  bool stacks(const StoredShape& shape, std::initializer_list<std::uint64_t> rest) const;
};
WeightMatrix weight_matrix(const TensorSpec& spec);

struct ScaleBlock {
  std::uint64_t rows = 1, columns = 1;
  bool operator==(const ScaleBlock&) const = default;
};

// The one size that the config gives for all weights; nullopt where it is silent.
std::optional<ScaleBlock> configured_block(const std::optional<QuantizationConfig>& quantization);
// Columns that share a scale, as the config says for all weights but those it names apart.
std::optional<std::uint64_t> configured_group(const std::optional<QuantizationConfig>& quantization);

// The block of one scale over codes of one element each (FP8, INT8): the configured one; one scale for all,
// or a row; where the config is silent, the usual square that explains the grid. nullopt: no grid over this
// weight, or not the config's. Where config.json gives one size for all, a grid of other blocks is none, and
// …_scale_inv no other.
std::optional<ScaleBlock> scale_block(const MatrixSizes& weight, const CheckpointTensor& scale,
                                      const std::optional<QuantizationConfig>& quantization);

// Rows of query, keys and values in a fused matrix for which `scale` holds one each (Phi-3's qkv_proj, DBRX's
// Wqkv: one under the other); empty where it is nothing of the kind, or the config does not tell the heads.
std::vector<std::uint64_t> fused_rows(const MatrixSizes& weight, const CheckpointTensor& scale,
                                      const std::optional<AttentionSizes>& attention);
// Whether `scale` is one for each of query, keys and values by its name and shape.
bool is_scale_of_parts(const CheckpointTensor& scale);

// True where engines would take another block than the grid's, since config.json names none: theirs is
// 128x128 (transformers' FineGrainedFP8Config, vLLM's and SGLang's Fp8Config).
bool needs_a_block_size(const ScaleBlock& block, const std::optional<QuantizationConfig>& quantization);

// Columns of a group where a row of `columns` packed integers has `groups` scales: equal ones, but for a
// shorter last. nullopt: these are not the groups of the config, which may give some modules others.
std::optional<std::uint64_t> group_columns(std::uint64_t columns, std::uint64_t groups,
                                           const std::optional<QuantizationConfig>& quantization);

}  // namespace assay
