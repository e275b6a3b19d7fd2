// Where matrices live, and how rows of them are moved.
#include <algorithm>
#include <limits>

#include "core/system/error.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {

Matrix ReferenceOps::allocate(std::size_t rows, std::size_t columns) {
  const Real real = arithmetic().storage();
  const std::size_t size = real == Real::f64 ? sizeof(double) : sizeof(float);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, size, &bytes) ||
      bytes > std::numeric_limits<std::size_t>::max() / 2)
    throw Error::input("a matrix beyond all memory");
  return {std::shared_ptr<std::byte[]>(new std::byte[bytes]()), real, rows, columns};
}

Matrix ReferenceOps::upload(std::span<const double> values, std::size_t rows, std::size_t columns) {
  Matrix x = allocate(rows, columns);
  const Arithmetic rounding = arithmetic();
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<const double> from = values.subspan(r * columns, columns);
      std::transform(from.begin(), from.end(), x.row<T>(r),
                     [rounding](double value) { return static_cast<T>(rounding.round(value)); });
    }
  });
  return x;
}

std::vector<double> ReferenceOps::download(const Matrix& x) {
  std::vector<double> values;
  values.reserve(x.rows() * x.columns());
  with_elements(x.real(), [&](auto element) {
    for (std::size_t r = 0; r < x.rows(); ++r) {
      const auto* row = x.row<decltype(element)>(r);
      values.insert(values.end(), row, row + x.columns());
    }
  });
  return values;
}

void ReferenceOps::store(const PagedKvView& cache, std::size_t position, const Matrix& source) {
  with_elements(source.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < source.rows(); ++r)
      std::copy_n(source.row<T>(r), source.columns(), cache.base.row<T>(cache.row(position + r)));
  });
}

Matrix ReferenceOps::gather(const Matrix& x, std::span<const std::size_t> rows) {
  Matrix y = allocate(rows.size(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(x.row<T>(rows[r]), x.columns(), y.row<T>(r));
  });
  return y;
}

}  // namespace assay
