// Sums, factors and caps, element by element; two matrices side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

template <class Function>
Matrix each(ReferenceOps& ops, const Matrix& x, Function function) {
  Matrix y = ops.allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t i = 0; i < x.columns(); ++i)
        y.row<T>(r)[i] = static_cast<T>(ops.arithmetic().round(function(x.row<T>(r)[i], r, i)));
    }
  });
  return y;
}

}  // namespace

Matrix ReferenceOps::add(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.columns() != b.columns())
    throw Error::internal(
        fmt::format("add: [{}, {}] and [{}, {}]", a.rows(), a.columns(), b.rows(), b.columns()));
  return each(*this, a, [&](auto x, std::size_t r, std::size_t i) -> double {
    return static_cast<double>(x) + static_cast<double>(b.row<decltype(x)>(r)[i]);
  });
}

Matrix ReferenceOps::multiply(const Matrix& x, double factor) {
  return each(*this, x, [&](double value, std::size_t, std::size_t) { return value * factor; });
}

Matrix ReferenceOps::soft_cap(const Matrix& x, double cap) {
  return each(*this, x, [&](double value, std::size_t, std::size_t) {
    return arithmetic().stage(std::tanh(arithmetic().stage(value / cap))) * cap;
  });
}

Matrix ReferenceOps::scale(const Matrix& x, const Matrix& factors) {
  if (x.rows() != factors.rows() || factors.columns() == 0 || x.columns() % factors.columns() != 0)
    throw Error::internal(
        fmt::format("scale: [{}, {}] by [{}, {}]", x.rows(), x.columns(), factors.rows(), factors.columns()));
  const std::size_t width = x.columns() / factors.columns();
  return each(*this, x, [&](auto value, std::size_t r, std::size_t i) -> double {
    return static_cast<double>(value) * static_cast<double>(factors.row<decltype(value)>(r)[i / width]);
  });
}

Matrix ReferenceOps::clamp(const Matrix& x, double limit) {
  return each(*this, x, [&](double value, std::size_t, std::size_t) {
    return std::isnan(value) ? value : std::clamp(value, -limit, limit);
  });
}

Matrix ReferenceOps::concatenate(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows())
    throw Error::internal(fmt::format("concatenate: {} and {} rows", a.rows(), b.rows()));
  Matrix y = allocate(a.rows(), a.columns() + b.columns());
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      T* end = std::copy_n(a.row<T>(r), a.columns(), y.row<T>(r));
      std::copy_n(b.row<T>(r), b.columns(), end);
    }
  });
  return y;
}

Matrix ReferenceOps::of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) {
  if (width == 0 || x.columns() % width != 0 || first > width || count > width - first)
    throw Error::internal(
        fmt::format("columns {} to {} of every {} of {}", first, first + count, width, x.columns()));
  const std::size_t runs = x.columns() / width;
  Matrix y = allocate(x.rows(), runs * count);
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < y.rows(); ++r) {
      for (std::size_t i = 0; i < runs; ++i)
        std::copy_n(x.row<T>(r) + i * width + first, count, y.row<T>(r) + i * count);
    }
  });
  return y;
}

}  // namespace assay
