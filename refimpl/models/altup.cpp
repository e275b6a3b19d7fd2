#include "refimpl/models/altup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr double kLeastMeanSquare = 1e-5;  // of what is made as long as another

std::vector<std::vector<double>> downloaded(const Streams& x, Ops& ops) {
  std::vector<std::vector<double>> rows;
  for (const Matrix& stream : x) rows.push_back(ops.download(stream));
  return rows;
}

// Of each row, rounded as PyTorch's mean of a squared tensor is.
std::vector<double> mean_squares(const std::vector<double>& x, std::size_t width, Ops& ops) {
  std::vector<double> means;
  for (std::size_t at = 0; at < x.size(); at += width) {
    double sum = 0;
    for (std::size_t c = at; c < at + width; ++c) sum += ops.arithmetic().stage(x[c] * x[c]);
    means.push_back(ops.arithmetic().stage(sum / static_cast<double>(width)));
  }
  return means;
}

Matrix as_long_as(const Matrix& x, const Matrix& like, Ops& ops) {
  const std::size_t width = x.columns();
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  std::vector<double> values = ops.download(x);
  const std::vector<double> target = mean_squares(ops.download(like), width, ops);
  const std::vector<double> own = mean_squares(values, width, ops);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / width;
    values[i] = stage(values[i] * stage(std::sqrt(target[row]))) /
                stage(std::sqrt(std::max(own[row], stage(kLeastMeanSquare))));
  }
  return ops.upload(values, x.rows(), width);
}

}  // namespace

AltUp AltUp::read(const Weights& weights, const std::string& path, std::size_t active, const NormRule& rule) {
  const auto get = [&](const char* name) {
    const WeightView view = weights.find_named(path + name);
    if (!view) throw Error::input("is missing").tensor(path + name).in(weights.config().source());
    return view;
  };
  AltUp altup;
  altup.router_ = get("modality_router.weight");
  altup.prediction_ = get("prediction_coefs.weight");
  altup.correction_ = get("correction_coefs.weight");
  altup.output_scale_ = decode_vector(get("correct_output_scale"));
  altup.norm_ = Norm(get("router_norm.weight"), {}, rule);
  altup.active_ = active;
  return altup;
}

// [tokens, rows of `of`]
std::vector<double> AltUp::coefficients(const Matrix& x, const WeightView& of, Ops& ops) const {
  const double factor = ops.arithmetic().round(1 / static_cast<double>(x.columns()));
  const Matrix routed = ops.soft_cap(ops.linear(ops.multiply(norm_(x, ops), factor), router_), 1);
  return ops.download(ops.linear(routed, of));
}

Streams AltUp::guess(const Streams& x, Ops& ops) const {
  const std::size_t n = x.size(), width = x[0].columns(), tokens = x[0].rows();
  const std::vector<double> mix = coefficients(x.at(active_), prediction_, ops);  // [tokens, n · n]
  const auto rows = downloaded(x, ops);
  Streams guessed;
  for (std::size_t k = 0; k < n; ++k) {
    std::vector<double> values(tokens * width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += rows[j][i] * mix[i / width * n * n + k * n + j];
      values[i] = ops.arithmetic().stage(sum) + rows[k][i];
    }
    guessed.push_back(ops.upload(values, tokens, width));
  }
  return guessed;
}

Streams AltUp::correct(const Streams& guessed, const Matrix& made, Ops& ops) const {
  const std::size_t n = guessed.size(), width = made.columns();
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const std::vector<double> by = coefficients(made, correction_, ops);  // [tokens, n]
  const std::vector<double> is = ops.download(made);
  const auto rows = downloaded(guessed, ops);
  Streams corrected;
  for (std::size_t k = 0; k < n; ++k) {
    std::vector<double> values(is.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double missed = stage(is[i] - rows[active_][i]);
      values[i] = stage(missed * stage(by[i / width * n + k] + 1)) + rows[k][i];
    }
    corrected.push_back(ops.upload(values, made.rows(), width));
  }
  return corrected;
}

Matrix AltUp::scaled(const Matrix& x, Ops& ops) const {
  std::vector<double> values = ops.download(x);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= output_scale_[i % x.columns()];
  return ops.upload(values, x.rows(), x.columns());
}

std::vector<WeightView> stream_projections(const Weights& weights, const std::string& path) {
  std::vector<WeightView> all;
  while (const WeightView view = weights.find_named(fmt::format("{}.{}.weight", path, all.size())))
    all.push_back(view);
  return all;
}

Streams spread(const Matrix& x, const std::vector<WeightView>& projections, Ops& ops) {
  Streams streams = {x};
  for (const WeightView& projection : projections)
    streams.push_back(as_long_as(ops.linear(x, projection), x, ops));
  return streams;
}

Matrix gathered(const Streams& x, const std::vector<WeightView>& projections, Ops& ops) {
  Streams one = {x.at(0)};
  for (std::size_t i = 0; i < projections.size(); ++i)
    one.push_back(as_long_as(ops.linear(x.at(i + 1), projections[i]), x[0], ops));
  const auto rows = downloaded(one, ops);
  std::vector<double> mean(rows[0].size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (const auto& row : rows) mean[i] += row[i];
    mean[i] /= static_cast<double>(rows.size());
  }
  return ops.upload(mean, x[0].rows(), x[0].columns());
}

}  // namespace assay
