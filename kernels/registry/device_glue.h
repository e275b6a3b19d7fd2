// What lies between kernels: sums, factors of rows and copies, too small to be kernels of the registry. On a device they
// are computed where the matrices lie, behind the kernels under way, so that the host waits for nothing within a layer.
// Their bits are the reference's: a sum or a product of two float32 is rounded once, and of bfloat16 (8 bits, exact in
// float32 before it is rounded) likewise.
#pragma once

#include <cstddef>
#include <span>

#include "refimpl/ops/matrix.h"

namespace assay {

// to[to_rows[i], g · count + c] = from[from_rows[i], g · width + first + c], for c < count and every whole run g of
// `width` columns.
struct RowCopy {
  Matrix from = {}, to = {};
  std::span<const std::size_t> from_rows = {}, to_rows = {};  // none: row i
  std::size_t rows = 0;
  std::size_t width = 0, first = 0, count = 0;

  std::size_t columns() const { return width == 0 ? 0 : from.columns() / width * count; }  // that are written
};
// So many rows as they are.
inline RowCopy whole_rows(const Matrix& from, std::size_t rows) {
  return {.from = from, .rows = rows, .width = from.columns(), .count = from.columns()};
}

// All matrices are float32, in a model's memory (model_memory.h).
class DeviceGlue {
 public:
  virtual ~DeviceGlue() = default;
  // y = a + b, rounded to bfloat16 if so asked.
  virtual void add(const Matrix& a, const Matrix& b, bool bfloat16, const Matrix& y) = 0;
  // Columns in as many equal groups as `factors` has, each times its factor of the row (Ops::scale).
  virtual void scale(const Matrix& x, const Matrix& factors, bool bfloat16, const Matrix& y) = 0;
  virtual void copy(const RowCopy& copy) = 0;
};

}  // namespace assay
