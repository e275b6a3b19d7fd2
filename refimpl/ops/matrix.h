// Activations: rows × columns numbers, row-major, one row a token. A Matrix is a handle: copies and parts
// share the memory they were cut from.
//
//   Matrix qkv = ops.linear(x, w);              // [tokens, q + k + v]
//   Matrix q = qkv.part(0, heads * head_dim);   // [tokens, q], the same memory
//
// The memory belongs to whoever allocated it (Ops::allocate): ordinary memory for everything but a GPU, so
// that only an implementation of Ops looks at elements; everybody else asks Ops::download().
#pragma once

#include <cstddef>
#include <memory>

#include "core/system/error.h"
#include "refimpl/ops/arithmetic.h"

namespace assay {

class Matrix {
 public:
  Matrix() = default;
  Matrix(std::shared_ptr<void> memory, Real real, std::size_t rows, std::size_t columns)
      : memory_(std::move(memory)), real_(real), rows_(rows), columns_(columns), stride_(columns) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  std::size_t stride() const { return stride_; }  // elements from one row to the next
  Real real() const { return real_; }
  bool empty() const { return rows_ == 0 || columns_ == 0; }

  // Columns [first, first + count) of every row; rows [first, first + count).
  Matrix part(std::size_t first, std::size_t count) const {
    require(first <= columns_ && count <= columns_ - first);
    Matrix cut = *this;
    cut.columns_ = count;
    cut.offset_ += first;
    return cut;
  }
  Matrix row_range(std::size_t first, std::size_t count) const {
    require(first <= rows_ && count <= rows_ - first);
    Matrix cut = *this;
    cut.rows_ = count;
    cut.offset_ += first * stride_;
    return cut;
  }

  // T is float for Real::f32, double for Real::f64.
  template <class T>
  T* row(std::size_t r) const {
    require(real_ == (sizeof(T) == sizeof(float) ? Real::f32 : Real::f64) && r < rows_);
    return static_cast<T*>(memory_.get()) + offset_ + r * stride_;
  }

 private:
  static void require(bool holds) {
    if (!holds) throw Error::internal("a matrix used beyond its bounds or as what it is not");
  }
  std::shared_ptr<void> memory_;
  Real real_ = Real::f32;
  std::size_t offset_ = 0, rows_ = 0, columns_ = 0, stride_ = 0;
};

}  // namespace assay
