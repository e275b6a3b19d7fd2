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
// words, 1 to 8 bits an element.
bool codes_fit(const TensorSpec& spec, const CheckpointTensor& stored);

// nullopt: the scale's shape is right, or its name promises none in particular. Otherwise the sentence.
std::optional<std::string> scale_grid_fault(const TensorSpec& spec, const CheckpointTensor& scale,
                                            std::string_view suffix,
                                            const std::optional<QuantizationConfig>& quantization);

}  // namespace assay
