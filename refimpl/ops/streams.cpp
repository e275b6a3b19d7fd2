// Hyper-connections: the weights by which m residual streams are read, written and mixed, and the reading and writing
// (stream_calls.h has the formulas). Under bf16 weights are float32, and rounded before they write.
#include <fmt/format.h>

#include <cmath>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/softmax.h"
#include "refimpl/ops/stream_calls.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

double squashed(double x) {
  return 1 / (1 + std::exp(-x));
}

// Of a square matrix by rows: each column divided by its sum + ε, then rows and columns in turn.
void sinkhorn(std::span<double> matrix, std::size_t m, std::size_t iterations, double epsilon) {
  const auto divide = [&](std::size_t step, std::size_t stride) {
    for (std::size_t line = 0; line < m; ++line) {
      double sum = epsilon;
      for (std::size_t i = 0; i < m; ++i) sum += matrix[line * step + i * stride];
      for (std::size_t i = 0; i < m; ++i) matrix[line * step + i * stride] /= sum;
    }
  };
  divide(1, m);  // columns
  for (std::size_t i = 1; i < iterations; ++i) {
    divide(m, 1);
    divide(1, m);
  }
}

// From c = fn(x / rms(x)) of one token to its weights, in place.
void finish_weights(std::span<double> c, const std::vector<double>& scale, const std::vector<double>& base,
                    const StreamWeightsCall& call) {
  const std::size_t m = call.count;
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = c[i] * scale[std::min<std::size_t>(i / m, 2)] + base[i];
  for (std::size_t i = 0; i < m; ++i) c[i] = squashed(c[i]) + call.epsilon;
  if (c.size() == m) return;
  for (std::size_t i = m; i < 2 * m; ++i) c[i] = call.magnitude * squashed(c[i]) + call.write_epsilon;
  if (c.size() == 2 * m) return;
  const std::span mix = c.subspan(2 * m);
  for (std::size_t row = 0; row < m; ++row) {
    softmax_three_pass(mix.subspan(row * m, m));
    for (double& value : mix.subspan(row * m, m)) value += call.epsilon;
  }
  sinkhorn(mix, m, call.iterations, call.epsilon);
}

void check(const StreamWeightsCall& call, std::size_t bases, std::size_t scales) {
  const std::size_t m = call.count, rows = call.fn.rows;
  const std::size_t parts = rows == m ? 1 : rows == 2 * m ? 2 : 3;
  if (m == 0 || (parts == 3 && rows != (2 + m) * m) || call.fn.columns != call.streams.columns() ||
      bases != rows || scales != parts)
    throw Error::internal(
        fmt::format("stream_weights: fn [{}, {}], {} bases and {} scales for {} streams of {}", rows,
                    call.fn.columns, bases, scales, m, call.streams.columns()));
}

}  // namespace

StreamWeights stream_weights(Ops& ops, const StreamWeightsCall& call) {
  const std::vector<double> base = decode_vector(call.base), scale = decode_vector(call.scale);
  check(call, base.size(), scale.size());
  const std::size_t rows = call.fn.rows, columns = call.fn.columns, m = call.count;
  std::vector<double> fn(rows * columns);
  decode_rows(call.fn, 0, rows, fn.data());
  const std::vector<double> streams = ops.download(call.streams);
  const std::size_t tokens = call.streams.rows();
  std::vector<double> all(tokens * rows);
  parallel_for(ops.jobs(), tokens, [&](std::size_t t) {
    const double* x = &streams[t * columns];
    const double mean_square = dot(x, x, columns) / static_cast<double>(columns);
    const double factor = 1 / std::sqrt(mean_square + call.norm_epsilon);
    const std::span c = std::span(all).subspan(t * rows, rows);
    for (std::size_t i = 0; i < rows; ++i) c[i] = dot(x, &fn[i * columns], columns) * factor;
    finish_weights(c, scale, base, call);
  });
  StreamWeights weights;
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(t * rows);
    const auto part = [&](std::vector<double>& to, std::size_t first, std::size_t count) {
      to.insert(to.end(), row + static_cast<std::ptrdiff_t>(first),
                row + static_cast<std::ptrdiff_t>(first + count));
    };
    part(weights.read, 0, m);
    if (rows == m) continue;
    part(weights.write, m, m);
    if (rows != 2 * m) part(weights.mix, 2 * m, m * m);
  }
  return weights;
}

Matrix read_streams(Ops& ops, const Matrix& streams, const StreamWeights& weights) {
  const std::size_t tokens = streams.rows(), m = tokens == 0 ? 1 : weights.read.size() / tokens;
  const std::size_t width = streams.columns() / m;
  const std::vector<double> x = ops.download(streams);
  std::vector<double> y(tokens * width);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t i = 0; i < width; ++i)
        y[t * width + i] += weights.read[t * m + j] * x[(t * m + j) * width + i];
    }
  }
  return ops.upload(y, tokens, width);
}

Matrix write_streams(Ops& ops, const Matrix& streams, const Matrix& y, const StreamWeights& weights) {
  const std::size_t tokens = streams.rows(), width = y.columns(), m = streams.columns() / width;
  const std::vector<double> x = ops.download(streams), given = ops.download(y);
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  std::vector<double> out(x.size());
  for (std::size_t place = 0; place < out.size(); ++place) {
    const std::size_t i = place % width, k = place / width % m, t = place / (width * m);
    if (weights.mix.empty()) {
      out[place] = weights.write[t * m + k] * given[t * width + i] + x[place];
      continue;
    }
    double sum = 0;
    for (std::size_t j = 0; j < m; ++j)
      sum += stage(weights.mix[(t * m + j) * m + k]) * x[(t * m + j) * width + i];
    out[place] = stage(stage(weights.write[t * m + k]) * given[t * width + i]) + stage(sum);
  }
  return ops.upload(out, tokens, m * width);
}

}  // namespace assay
