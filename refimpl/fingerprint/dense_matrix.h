// A matrix of float64, column by column.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay {

class DenseMatrix {
 public:
  DenseMatrix() = default;
  DenseMatrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  double& at(std::size_t row, std::size_t column) { return values_[column * rows_ + row]; }
  double at(std::size_t row, std::size_t column) const { return values_[column * rows_ + row]; }
  std::span<double> column(std::size_t j) { return {values_.data() + j * rows_, rows_}; }
  std::span<const double> column(std::size_t j) const { return {values_.data() + j * rows_, rows_}; }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  std::vector<double> values_;
};

// a · b, in eight sums that are added at the end.
double dot(std::span<const double> a, std::span<const double> b);

}  // namespace assay
