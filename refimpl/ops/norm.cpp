// rms_norm     y = x / √(mean(x²) + ε) · w            (Zhang & Sennrich 2019; Gemma: · (1 + w))
// layer_norm   y = (x - mean(x)) / √(var(x) + ε) · w + b
//
// Means are over groups of as many columns as w has: the row, or each head of it.
#include <cmath>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

double normalized(double x, double factor, double w, NormForm form, const Arithmetic& arithmetic) {
  switch (form) {
    case NormForm::weight_last: return arithmetic.stage(x * factor) * w;
    case NormForm::weight_inside: return x * factor * w;
    case NormForm::one_plus_weight: return x * factor * (1 + w);
  }
  return 0;
}

void check_groups(const Matrix& x, std::size_t group) {
  if (group == 0 || x.columns() % group != 0)
    throw Error::input("a norm's weight does not divide what it scales: the tensors are not of one model");
}

}  // namespace

Matrix ReferenceOps::run(const RmsNormCall& call) {
  const Matrix& x = call.x;
  const std::vector<double> w = vector_of(call.weight, arithmetic());
  check_groups(x, w.size());
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t first = 0; first < x.columns(); first += w.size()) {
        const T* in = x.row<T>(r) + first;
        T* out = y.row<T>(r) + first;
        const double mean_square = dot(in, in, w.size()) / static_cast<double>(w.size());
        const double factor = 1 / std::sqrt(mean_square + call.epsilon);
        for (std::size_t i = 0; i < w.size(); ++i)
          out[i] =
              static_cast<T>(arithmetic().round(normalized(in[i], factor, w[i], call.form, arithmetic())));
      }
    }
  });
  return y;
}

Matrix ReferenceOps::run(const LayerNormCall& call) {
  const Matrix& x = call.x;
  const std::vector<double> w = vector_of(call.weight, arithmetic()), b = vector_of(call.bias, arithmetic());
  check_groups(x, w.size());
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t first = 0; first < x.columns(); first += w.size()) {
        const T* in = x.row<T>(r) + first;
        T* out = y.row<T>(r) + first;
        double sum = 0, square = 0;
        for (std::size_t i = 0; i < w.size(); ++i) sum += in[i];
        const double mean = sum / static_cast<double>(w.size());
        for (std::size_t i = 0; i < w.size(); ++i) square += (in[i] - mean) * (in[i] - mean);
        const double factor = 1 / std::sqrt(square / static_cast<double>(w.size()) + call.epsilon);
        for (std::size_t i = 0; i < w.size(); ++i)
          out[i] =
              static_cast<T>(arithmetic().round((in[i] - mean) * factor * w[i] + (b.empty() ? 0.0 : b[i])));
      }
    }
  });
  return y;
}

}  // namespace assay
