// Keys or values of one layer of many sequences, a row a token: in full, or as INT8 codes that stand for what a cache method
// that rounds single rows makes of them (caches/quantized_rows.cpp), in a quarter of the memory. A handle, as Matrix is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/step/row_parts.h"

namespace assay {

class StoredRows {
 public:
  StoredRows(Ops& ops, std::size_t rows, std::size_t columns);
  // Columns of `part` as codes, x ≈ code · s with s = max|x| / 127 of each token and head; those behind it in full.
  StoredRows(Ops& ops, std::size_t rows, std::size_t columns, const RowPart& part);

  bool empty() const { return rows_ == 0 || columns_ == 0; }
  bool coded() const { return codes_ != nullptr; }
  const Matrix& in_full() const { return full_; }  // of coded ones no rows

  // Of coded ones alone: rows to be read are decoded, kNowhere's are zeros. Throws Error::input for NaN.
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  void put(std::span<const std::size_t> places, const Matrix& rows) const;
  Matrix get(std::span<const std::size_t> places) const;

  void copy(std::size_t from, std::size_t to, std::size_t count) const;
  void poison(std::size_t first, std::size_t count) const;  // NaN
  // As they lie: numbers_a_row() each, of coded ones codes, scales, and what is in full.
  std::size_t numbers_a_row() const;
  std::vector<double> read(std::size_t first, std::size_t count) const;
  void write(std::size_t first, std::size_t count, std::span<const double> numbers) const;

  std::uint64_t bytes() const;

 private:
  struct Codes {
    RowPart part;
    std::vector<std::int8_t> codes;  // [rows, part.columns()]
    std::vector<float> scales;       // [rows, part.heads]
    Matrix rest;                     // [rows, columns behind the part]
  };
  Ops* ops_;
  std::size_t rows_, columns_;
  Matrix full_;
  std::shared_ptr<Codes> codes_;
};

}  // namespace assay
