#include "kernels/dumps/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/numeric/element_type.h"
#include "core/system/error.h"

namespace assay::dumps {
namespace {

std::vector<std::size_t> in_order(std::size_t axes) {
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// "batch" and "token" first, in this order, then the others as they stand.
AxisPlan named_plan(const std::vector<std::string>& axes) {
  AxisPlan plan;
  for (const std::string_view row : {"batch", "token"}) {
    const auto it = std::find(axes.begin(), axes.end(), row);
    if (it != axes.end()) plan.order.push_back(static_cast<std::size_t>(it - axes.begin()));
  }
  plan.row_axes = plan.order.size();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != "batch" && axes[i] != "token") plan.order.push_back(i);
  }
  return plan;
}

std::uint64_t product(const Shape& shape, const std::vector<std::size_t>& order, std::size_t from,
                      std::size_t to) {
  std::uint64_t result = 1;
  for (std::size_t i = from; i < to; ++i) result *= shape[order[i]];
  return result;
}

}  // namespace

std::optional<Extent> extent(const std::vector<Shape>& steps, const AxisPlan& plan) {
  Extent all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].size() != plan.order.size()) return std::nullopt;
    const std::uint64_t width = product(steps[i], plan.order, plan.row_axes, plan.order.size());
    if (i > 0 && width != all.width) return std::nullopt;
    all.width = width;
    all.rows += product(steps[i], plan.order, 0, plan.row_axes);
  }
  return all;
}

std::vector<AxisPlan> axis_plans(const std::vector<Shape>& steps, const TapLayout& layout) {
  const std::size_t axes = steps.front().size();
  if (!layout.axes.empty()) {
    if (layout.axes.size() != axes)
      throw Error::input(
          fmt::format("the map names {} axes of a tensor that has {}", layout.axes.size(), axes));
    return {named_plan(layout.axes)};
  }
  std::vector<AxisPlan> plans;
  if (axes <= 1) {  // numbers of tokens, or one vector
    plans.push_back({in_order(axes), axes, false});
    plans.push_back({in_order(axes), 0, false});
    return plans;
  }
  // Tokens are never within a vector: the first axis longer than 1 counts them, unless it is the only one.
  std::size_t least = 1;
  while (least + 1 < axes &&
         std::all_of(steps.begin(), steps.end(), [&](const Shape& s) { return s[least - 1] == 1; }))
    ++least;
  for (std::size_t rows = least; rows < axes; ++rows) plans.push_back({in_order(axes), rows, false});
  // Heads before tokens, as attention kernels keep them: [.., H, T, D].
  if (axes >= 3 && layout.transpose.empty()) {
    AxisPlan plan = {in_order(axes), axes - 2, true};
    std::swap(plan.order[axes - 3], plan.order[axes - 2]);
    plans.push_back(plan);
  }
  return plans;
}

std::optional<PlanPair> agree(const std::vector<Shape>& ref, const std::vector<AxisPlan>& ref_plans,
                              const std::vector<Shape>& test, const std::vector<AxisPlan>& test_plans,
                              std::uint64_t tokens) {
  using Rank = std::tuple<bool, bool, bool, bool, bool, std::size_t>;
  std::optional<PlanPair> best;
  Rank best_rank;
  for (const AxisPlan& r : ref_plans) {
    const auto a = extent(ref, r);
    if (!a) continue;
    for (const AxisPlan& t : test_plans) {
      const auto b = extent(test, t);
      if (!b || a->width != b->width) continue;
      const Rank rank = {
          a->rows != b->rows,           r.swapped || t.swapped, a->rows != tokens && b->rows != tokens,
          a->rows == 1 && b->rows == 1, a->width == 1,          r.row_axes + t.row_axes};
      if (best && !(rank < best_rank)) continue;
      best = {r, t};
      best_rank = rank;
    }
  }
  return best;
}

Shape permuted(const Shape& shape, const std::vector<std::size_t>& order) {
  Shape result;
  for (const std::size_t axis : order) result.push_back(shape[axis]);
  return result;
}

std::vector<double> permuted(const std::vector<double>& values, const Shape& shape,
                             const std::vector<std::size_t>& order) {
  if (std::is_sorted(order.begin(), order.end()) || values.empty()) return values;
  const std::size_t axes = shape.size();
  std::vector<std::uint64_t> stored_stride(axes, 1), stride(axes), index(axes);
  for (std::size_t a = axes; a-- > 1;) stored_stride[a - 1] = stored_stride[a] * shape[a];
  for (std::size_t a = 0; a < axes; ++a) stride[a] = stored_stride[order[a]];
  const Shape extents = permuted(shape, order);
  std::vector<double> result(values.size());
  std::uint64_t from = 0;
  for (double& value : result) {
    value = values[from];
    for (std::size_t a = axes; a-- > 0;) {
      from += stride[a];
      if (++index[a] < extents[a]) break;
      from -= stride[a] * extents[a];
      index[a] = 0;
    }
  }
  return result;
}

}  // namespace assay::dumps
