#include "kernels/harness/made_weight.h"
#include "kernels/harness/mutants_linear.h"

namespace assay {

Matrix changed(ReferenceOps& ops, const LinearCall& call, const ChangeElement& change) {
  Matrix y = run_reference(ops, call);
  for (std::size_t r = 0; r < y.rows(); ++r) {
    for (std::size_t c = 0; c < y.columns(); ++c) y.row<float>(r)[c] = change(r, c, y.row<float>(r)[c]);
  }
  return y;
}

Matrix over_terms(ReferenceOps& ops, const LinearCall& call, std::size_t first, std::size_t count) {
  if (call.weight.input_major)
    return run_reference(
        ops, LinearCall{call.x.part(first, count), call.weight.row_range(first, count), {}, call.rounding});
  std::vector<float> w(call.weight.rows * call.weight.columns), cut;
  decode_rows(call.weight, 0, call.weight.rows, w.data());
  for (std::size_t r = 0; r < call.weight.rows; ++r) {
    const auto row = w.begin() + static_cast<std::ptrdiff_t>(r * call.weight.columns + first);
    cut.insert(cut.end(), row, row + static_cast<std::ptrdiff_t>(count));
  }
  const MadeWeight weight(std::move(cut), call.weight.rows, count);
  return run_reference(ops, LinearCall{call.x.part(first, count), weight.view(), {}, call.rounding});
}

Matrix in_pieces(ReferenceOps& ops, const LinearCall& call, std::size_t piece,
                 const std::function<float(float, float)>& join) {
  const std::size_t inputs = call.weight.inputs();
  Matrix sum = over_terms(ops, call, 0, std::min(piece, inputs));
  for (std::size_t first = piece; first < inputs; first += piece) {
    const Matrix part = over_terms(ops, call, first, std::min(piece, inputs - first));
    for (std::size_t r = 0; r < sum.rows(); ++r) {
      for (std::size_t c = 0; c < sum.columns(); ++c)
        sum.row<float>(r)[c] = join(sum.row<float>(r)[c], part.row<float>(r)[c]);
    }
  }
  return sum;
}

Matrix with_weights(ReferenceOps& ops, const LinearCall& call,
                    const std::function<void(std::vector<float>&)>& change) {
  std::vector<float> w(call.weight.rows * call.weight.columns);
  decode_rows(call.weight, 0, call.weight.rows, w.data());
  change(w);
  const MadeWeight weight(std::move(w), call.weight.rows, call.weight.columns);
  WeightView view = weight.view();
  view.input_major = call.weight.input_major;
  return run_reference(ops, LinearCall{call.x, view, call.bias, call.rounding});
}

void rescale(const WeightView& view, const ScaleOf& scale_of, std::vector<float>& w) {
  std::vector<float> grid(view.rows * view.scale_columns);
  for (std::size_t r = 0; r < view.rows; ++r) decode_scales(view, r, &grid[r * view.scale_columns]);
  decode_codes(view, 0, view.rows, w.data());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] *= scale_of(grid, i / view.columns, i % view.columns);
}

Matrix with_scales(ReferenceOps& ops, const LinearCall& call, const ScaleOf& scale_of) {
  const WeightView& view = call.weight;
  if (view.kind != FormKind::scaled) return run_reference(ops, call);
  return with_weights(ops, call, [&](std::vector<float>& w) { rescale(view, scale_of, w); });
}

}  // namespace assay
