#include "refimpl/ranks/rank_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "refimpl/ops/run_expert.h"
#include "refimpl/ops/support.h"
#include "refimpl/ranks/leaf_sums.h"

namespace assay {
namespace {

// A list of vectors of one length, on end and apart again.
std::vector<double> on_end(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const std::vector<double>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
void take_apart(const std::vector<double>& all, std::size_t count, std::vector<std::vector<double>>& parts) {
  const auto each = static_cast<std::ptrdiff_t>(all.size() / count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * each;
    parts.emplace_back(begin, begin + each);
  }
}

}  // namespace

double unit_of(const Arithmetic& arithmetic) {
  if (arithmetic.precision == Precision::f64) return 0x1p-53;
  return arithmetic.bfloat16() ? 0x1p-8 : 0x1p-24;
}

RankOps::RankOps(const Arithmetic& arithmetic, int jobs, const RankCut& cut, RankGroups& groups,
                 const RankOptions& options, std::unique_ptr<Ops> kernels)
    : ReferenceOps(arithmetic, jobs),
      cut_(cut),
      groups_(groups),
      options_(options),
      kernels_(std::move(kernels)) {
  if (kernels_ && options.sum == RankSum::tree) throw Error::internal("kernels have no tree of sums");
  const Precision p = arithmetic.precision;
  if (p != Precision::f64 && p != Precision::f32 && p != Precision::bf16)
    throw Error::usage("ranks compute in f64, f32 or bf16")
        .remedy("where activations are quantized, a scale is one rank's or all ranks', and engines differ");
}

// ---------------------------------------------------------------------------------------------- vocabulary

Matrix RankOps::run(const EmbeddingCall& call) {
  const WeightCut& cut = cut_.cut_of(call.table);
  if (cut.partition != Partition::vocabulary || groups_.tensor.size() == 1) return own(call);
  EmbeddingCall found = {{}, call.table};
  std::vector<std::size_t> places;
  for (std::size_t t = 0; t < call.tokens.size(); ++t) {
    const std::uint64_t id = call.tokens[t];
    if (id < cut.first || id >= cut.first + call.table.rows) continue;
    found.tokens.push_back(static_cast<TokenId>(id - cut.first));
    places.push_back(t);
  }
  const std::size_t width = call.table.columns;
  std::vector<double> mine(call.tokens.size() * width);
  if (!places.empty()) {
    const std::vector<double> rows = download(own(found));
    for (std::size_t i = 0; i < places.size(); ++i)
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  mine.begin() + static_cast<std::ptrdiff_t>(places[i] * width));
  }
  // Not added up: 0 + -0 is another number than -0.
  const auto all = groups_.tensor.all_gather(mine);
  for (std::size_t t = 0; t < call.tokens.size(); ++t) {
    const std::size_t owner = call.tokens[t] / cut.each;
    if (owner >= all.size()) throw Error::input("a token outside the vocabulary").tensor(*call.table.name);
    std::copy_n(all[owner].begin() + static_cast<std::ptrdiff_t>(t * width), width,
                mine.begin() + static_cast<std::ptrdiff_t>(t * width));
  }
  return as_it_is(*this, mine, call.tokens.size(), width);
}

// Every rank has the columns [rank · each, …); of `width` in all.
Matrix RankOps::all_columns(const Matrix& mine, std::size_t each, std::size_t width) {
  const auto all = groups_.tensor.all_gather(download(mine));
  Matrix y = allocate(mine.rows(), width);
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t c = 0; c < width; ++c) {
      const std::vector<double>& from = all.at(c / each);
      const std::size_t columns = mine.rows() == 0 ? 0 : from.size() / mine.rows();
      for (std::size_t t = 0; t < mine.rows(); ++t)
        y.row<T>(t)[c] = static_cast<T>(from.at(t * columns + c % each));
    }
  });
  return y;
}

// ---------------------------------------------------------------------------------------------- sums over inputs

Matrix RankOps::run(const LinearCall& call) {
  if (cut_.is_elsewhere(call.weight))
    throw Error::internal("is needed where it is not").tensor(*call.weight.name);
  const WeightCut& cut = cut_.cut_of(call.weight);
  if (cut.partition == Partition::rows) return summed(call, cut);
  const Matrix y = own(call);
  if (cut.partition != Partition::vocabulary || groups_.tensor.size() == 1) return y;
  return all_columns(y, cut.each, cut.size);
}

Matrix RankOps::summed(const LinearCall& call, const WeightCut& cut) {
  const RankGrid& grid = groups_.place.grid;
  if (cut.of_expert && !exchanging_ && (grid.ep > 1 || grid.dp > 1))
    throw Error::input("experts that are computed one by one are not shared with other copies")
        .tensor(*call.weight.name);
  if (call.x.columns() != call.weight.inputs())
    throw Error::internal("a rank's inputs are not those of its weight").tensor(*call.weight.name);
  RankGroup& group = cut.of_expert ? groups_.expert : groups_.tensor;
  ++sums_;
  if (options_.sum == RankSum::tree) return stored(tree_of(call, cut, group), call, call.weight.outputs());
  if (group.size() == 1) return own(call);
  const std::vector<double> sums = ordered_sum(call, group);
  if (options_.measured) measure(call, cut, group, sums);
  return as_it_is(*this, sums, call.x.rows(), call.weight.outputs());
}

std::vector<double> RankOps::tree_of(const LinearCall& call, const WeightCut& cut, RankGroup& group) {
  const std::size_t leaves = leaves_of(cut.units);
  if (leaves % group.size() != 0)
    throw Error::input(fmt::format("its {} inputs lie in {} leaves, which {} ranks do not divide", cut.size,
                                   leaves, group.size()))
        .tensor(*call.weight.name)
        .remedy("take --rank-sum order, or 1, 2, 3, 4, 6 or 8 ranks");
  std::vector<std::vector<double>> parts =
      leaf_products(call.x, call.weight, leaves / group.size(), arithmetic(), jobs());
  if (group.size() > 1) {
    const std::size_t each = parts.size();
    const auto all = group.all_gather(on_end(parts));
    parts.clear();
    for (const std::vector<double>& of_rank : all) take_apart(of_rank, each, parts);
  }
  return added(parts);
}

// In the tree; RankFault::reduction_order: of leaves that came in another order.
std::vector<double> RankOps::added(const std::vector<std::vector<double>>& parts) {
  if (options_.fault != RankFault::reduction_order) return tree_sum(parts);
  std::vector<std::vector<double>> moved = parts;
  std::rotate(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(options_.run % moved.size()),
              moved.end());
  return tree_sum(moved);
}

// Each rank's part is stored as activations are; the first one adds the bias.
std::vector<double> RankOps::ordered_sum(const LinearCall& call, RankGroup& group) {
  const bool wide = call.rounding == ResultRounding::float32 && arithmetic().bfloat16();
  const auto kept = [&](double x) { return wide ? static_cast<float>(x) : arithmetic().round(x); };
  LinearCall part = call;
  if (group.rank() != 0) part.bias = {};
  const std::vector<double> mine = download(own(part));
  auto all = group.all_gather(mine);
  if (options_.fault == RankFault::reduction_order)
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(options_.run % all.size()), all.end());
  std::vector<double> sum = all.front();
  for (std::size_t r = 1; r < all.size(); ++r)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = kept(sum[i] + all[r][i]);
  return sum;
}

void RankOps::measure(const LinearCall& call, const WeightCut& cut, RankGroup& group,
                      const std::vector<double>& ordered) {
  LinearCall plain = call;
  plain.rounding = ResultRounding::as_arithmetic;
  const std::vector<double> bias = vector_of(call.bias, arithmetic());
  const std::vector<double> tree = tree_of(plain, cut, group);
  const auto magnitudes = group.all_gather(leaf_magnitudes(call.x, call.weight, arithmetic(), jobs()));
  const double budget = 4 * std::sqrt(static_cast<double>(cut.size)) * unit_of(arithmetic());
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const double b = bias.empty() ? 0.0 : bias[i % bias.size()];
    double magnitude = std::abs(b);
    for (const std::vector<double>& of_rank : magnitudes) magnitude += of_rank[i];
    if (magnitude == 0) continue;
    const double ratio = std::abs(ordered[i] - (tree[i] + b)) / (budget * magnitude);
    if (!(ratio <= worst_ratio_)) worst_ratio_ = ratio;
  }
}

// With the bias, rounded once, as the reference rounds a product.
Matrix RankOps::stored(const std::vector<double>& sums, const LinearCall& call, std::size_t outputs) {
  const std::vector<double> bias = vector_of(call.bias, arithmetic());
  const bool keep = call.rounding == ResultRounding::float32;
  Matrix y = allocate(call.x.rows(), outputs);
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < y.rows(); ++t) {
      for (std::size_t o = 0; o < outputs; ++o) {
        const double sum = sums[t * outputs + o] + (bias.empty() ? 0.0 : bias[o]);
        y.row<T>(t)[o] = static_cast<T>(keep ? sum : arithmetic().round(sum));
      }
    }
  });
  return y;
}

// ---------------------------------------------------------------------------------------------- norms of shared rows

// Of `width` columns in all each rank has as many as `mine`; of fewer parts than ranks, neighbours have the same one.
Matrix RankOps::whole_row(const Matrix& mine, std::size_t width) {
  RankGroup& group = groups_.tensor;
  const auto all = group.all_gather(download(mine));
  const std::size_t columns = mine.columns(), parts = width / columns;
  std::vector<double> whole(mine.rows() * width);
  for (std::size_t p = 0; p < parts; ++p) {
    const std::vector<double>& from = all.at((p * group.size() + parts - 1) / parts);
    for (std::size_t t = 0; t < mine.rows(); ++t)
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(t * columns), columns,
                  whole.begin() + static_cast<std::ptrdiff_t>(t * width + p * columns));
  }
  return as_it_is(*this, whole, mine.rows(), width);
}

Matrix RankOps::own_part(const Matrix& whole, std::size_t width) {
  const std::size_t parts = whole.columns() / width;
  return whole.part(groups_.tensor.rank() * parts / groups_.tensor.size() * width, width);
}

Matrix RankOps::run(const RmsNormCall& call) {
  if (call.x.columns() >= call.weight.columns) return own(call);
  RmsNormCall whole = call;
  whole.x = whole_row(call.x, call.weight.columns);
  return own_part(own(whole), call.x.columns());
}

Matrix RankOps::run(const LayerNormCall& call) {
  if (call.x.columns() >= call.weight.columns) return own(call);
  LayerNormCall whole = call;
  whole.x = whole_row(call.x, call.weight.columns);
  return own_part(own(whole), call.x.columns());
}

Matrix RankOps::run(const GatedNormCall& call) {
  const std::size_t group = cut_.whole_norm_group(call.weight);
  if (group == 0 || call.x.columns() >= call.weight.columns) return own(call);
  GatedNormCall whole = call;
  whole.x = whole_row(call.x, call.weight.columns);
  whole.gate = whole_row(call.gate, call.weight.columns);
  whole.group = group;
  return own_part(own(whole), call.x.columns());
}

Matrix RankOps::on_whole_rows(const Matrix& mine, const std::function<Matrix(const Matrix&)>& of) {
  if (groups_.tensor.size() == 1) return of(mine);
  return own_part(of(whole_row(mine, mine.columns() * groups_.tensor.size())), mine.columns());
}

// ---------------------------------------------------------------------------------------------- heads and experts

// Of slopes there is one a head of the whole model.
Matrix RankOps::run(const AttentionCall& call) {
  if (call.slopes.size() <= call.heads) return own(call);
  AttentionCall part = call;
  const auto first = call.slopes.begin() + static_cast<std::ptrdiff_t>(groups_.tensor.rank() * call.heads);
  part.slopes.assign(first, first + static_cast<std::ptrdiff_t>(call.heads));
  return own(part);
}

std::size_t RankOps::first_key_head(std::size_t whole) const {
  return groups_.tensor.rank() * whole / groups_.tensor.size();
}

Matrix RankOps::run(const FusedMoeCall& call) {
  const RankGrid& grid = groups_.place.grid;
  if (grid.ep == 1 && grid.dp == 1) return ReferenceOps::run(call);
  const ExpertFunction expert = [&](const Matrix& rows, std::size_t e) {
    return run_expert(*this, rows, call.experts, e);
  };
  return sent_to_experts(call.x, call.routing, call.experts.down.size(), expert);
}

}  // namespace assay
