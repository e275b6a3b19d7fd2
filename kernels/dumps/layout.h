// Which axes of a tensor are tokens and which make up a token's vector, found from the shapes of the two
// tensors that are held against each other: [1, T, H, D] and [T, H·D] are the same thing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dumps/name_map.h"

namespace assay::dumps {

using Shape = std::vector<std::uint64_t>;

// The tensor's axes in `order`; the first `row_axes` of them count tokens.
struct AxisPlan {
  std::vector<std::size_t> order;
  std::size_t row_axes = 0;
  bool swapped = false;  // heads stood before tokens
};

struct Extent {
  std::uint64_t rows = 0, width = 0;
};
// Of all steps together; nullopt where the steps' widths differ.
std::optional<Extent> extent(const std::vector<Shape>& steps, const AxisPlan& plan);

// Every way to read the steps' tensors, or the one that the map file asks for. Throws Error::input where it
// does not fit.
std::vector<AxisPlan> axis_plans(const std::vector<Shape>& steps, const TapLayout& layout);

// The readings under which both have vectors of one width: of equally many tokens if there are such, `tokens`
// of them rather than another number.
using PlanPair = std::pair<AxisPlan, AxisPlan>;
std::optional<PlanPair> agree(const std::vector<Shape>& ref, const std::vector<AxisPlan>& ref_plans,
                              const std::vector<Shape>& test, const std::vector<AxisPlan>& test_plans,
                              std::uint64_t tokens);

// Values of `shape` with their axes in another order.
std::vector<double> permuted(const std::vector<double>& values, const Shape& shape,
                             const std::vector<std::size_t>& order);
Shape permuted(const Shape& shape, const std::vector<std::size_t>& order);

}  // namespace assay::dumps
