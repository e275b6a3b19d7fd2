// Whether a stored tensor can be what its name says: codes that hold a weight's elements, scales that form
// its grid.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay {

std::string shape_text(const std::vector<std::uint64_t>& shape);  // "[18432, 7168]"

// True for the types that hold several values in one element, or a value in 8 bits that a scale must
// complete.
bool needs_scale(ElementType type);
// The types that parameters come in without any quantization.
bool is_plain_float(ElementType type);

// The elements of `spec` packed into `stored`, in any layout of docs/formats: rows or columns first, whole
// words, as many bits an element as codes of the type may have.
bool codes_fit(const TensorSpec& spec, const CheckpointTensor& stored);

bool is_one_byte_float(ElementType type);

// Two E2M1 codes a byte (DeepSeek-V4 keeps them in an I8), a power of two for every 32: told from INT8 by the
// scale.
bool packs_two(const CheckpointTensor& codes, const CheckpointTensor& scale);

// Of codes of one element each (FP8, INT8). nullopt: the scale's shape is right; otherwise the sentence.
// Other forms are find_stored()'s to judge. `codes`: what is stored of the weight; nullptr where that is not
// here.
std::optional<std::string> scale_grid_fault(const TensorSpec& spec, const CheckpointTensor* codes,
                                            const CheckpointTensor& scale, std::string_view suffix,
                                            const std::optional<QuantizationConfig>& quantization);

// The scales are right, but of blocks that config.json does not name and that loaders will not guess: the
// sentence.
std::optional<std::string> undeclared_blocks(const TensorSpec& spec, const CheckpointTensor* codes,
                                             const CheckpointTensor& scale,
                                             const std::optional<QuantizationConfig>& quantization);

}  // namespace assay
