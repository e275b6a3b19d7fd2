#include "refimpl/step/stored_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

StoredRows::StoredRows(Ops& ops, std::size_t rows, std::size_t columns)
    : ops_(&ops), rows_(rows), columns_(columns), full_(ops.allocate(rows, columns)) {}

StoredRows::StoredRows(Ops& ops, std::size_t rows, std::size_t columns, const RowPart& part)
    : ops_(&ops), rows_(rows), columns_(columns), full_(ops.allocate(0, columns)) {
  std::size_t numbers = 0;
  if (__builtin_mul_overflow(rows, columns, &numbers)) throw Error::input("a cache beyond all memory");
  codes_ = std::make_shared<Codes>(Codes{part, std::vector<std::int8_t>(rows * part.columns()),
                                         std::vector<float>(rows * part.heads),
                                         ops.allocate(rows, columns - part.columns())});
}

void StoredRows::put(std::span<const std::size_t> places, const Matrix& rows) const {
  Codes& c = *codes_;
  const std::size_t columns = c.part.columns();
  const QuantizedMatrix q =
      ops_->quantize(rows.part(0, columns), {.codes = ElementType::I8, .block_columns = c.part.width});
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::memcpy(&c.codes[places[i] * columns], &q.codes[i * columns], columns);
    std::copy_n(&q.scales[i * c.part.heads], c.part.heads, &c.scales[places[i] * c.part.heads]);
    if (!c.rest.empty())
      ops_->store({.base = c.rest}, places[i], rows.part(columns, c.rest.columns()).row_range(i, 1));
  }
}

Matrix StoredRows::get(std::span<const std::size_t> places) const {
  const Codes& c = *codes_;
  const std::size_t columns = c.part.columns();
  QuantizedMatrix q = {
      {.codes = ElementType::I8, .block_columns = c.part.width}, places.size(), columns, {}, {}};
  q.codes.resize(places.size() * columns);
  q.scales.resize(places.size() * c.part.heads);
  std::vector<std::size_t> known(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == kNowhere) {
      known[i] = 0;  // of which nobody looks at anything
      continue;
    }
    std::memcpy(&q.codes[i * columns], &c.codes[places[i] * columns], columns);
    std::copy_n(&c.scales[places[i] * c.part.heads], c.part.heads, &q.scales[i * c.part.heads]);
  }
  const Matrix decoded = ops_->dequantize(q);
  return c.rest.empty() ? decoded : ops_->concatenate(decoded, ops_->gather(c.rest, known));
}

void StoredRows::copy(std::size_t from, std::size_t to, std::size_t count) const {
  if (!coded()) return ops_->store({.base = full_.row_range(to, count)}, 0, full_.row_range(from, count));
  Codes& c = *codes_;
  const std::size_t columns = c.part.columns();
  std::memmove(&c.codes[to * columns], &c.codes[from * columns], count * columns);
  std::copy_n(&c.scales[from * c.part.heads], count * c.part.heads, &c.scales[to * c.part.heads]);
  if (!c.rest.empty()) ops_->store({.base = c.rest.row_range(to, count)}, 0, c.rest.row_range(from, count));
}

void StoredRows::poison(std::size_t first, std::size_t count) const {
  write(first, count, std::vector<double>(count * numbers_a_row(), kNothing));
}

std::size_t StoredRows::numbers_a_row() const {
  return coded() ? columns_ + codes_->part.heads : columns_;
}

std::vector<double> StoredRows::read(std::size_t first, std::size_t count) const {
  if (!coded()) return ops_->download(full_.row_range(first, count));
  const Codes& c = *codes_;
  const std::size_t columns = c.part.columns();
  std::vector<double> numbers;
  numbers.reserve(count * numbers_a_row());
  const auto append = [&](const auto& from, std::size_t each) {
    for (std::size_t i = first * each; i < (first + count) * each; ++i)
      numbers.push_back(static_cast<double>(from[i]));
  };
  append(c.codes, columns);
  append(c.scales, c.part.heads);
  if (c.rest.empty()) return numbers;
  const std::vector<double> rest = ops_->download(c.rest.row_range(first, count));
  numbers.insert(numbers.end(), rest.begin(), rest.end());
  return numbers;
}

void StoredRows::write(std::size_t first, std::size_t count, std::span<const double> numbers) const {
  if (!coded())
    return ops_->store({.base = full_.row_range(first, count)}, 0, ops_->upload(numbers, count, columns_));
  Codes& c = *codes_;
  const std::size_t codes = count * c.part.columns(), scales = count * c.part.heads;
  for (std::size_t i = 0; i < codes; ++i)  // NaN: the scale says so
    c.codes[first * c.part.columns() + i] =
        numbers[i] == numbers[i] ? static_cast<std::int8_t>(numbers[i]) : std::int8_t{1};
  for (std::size_t i = 0; i < scales; ++i)
    c.scales[first * c.part.heads + i] = static_cast<float>(numbers[codes + i]);
  if (!c.rest.empty())
    ops_->store({.base = c.rest.row_range(first, count)}, 0,
                ops_->upload(numbers.subspan(codes + scales), count, c.rest.columns()));
}

std::uint64_t StoredRows::bytes() const {
  const std::size_t each = full_.real() == Real::f64 ? sizeof(double) : sizeof(float);
  if (!coded()) return static_cast<std::uint64_t>(rows_) * columns_ * each;
  return codes_->codes.size() + codes_->scales.size() * sizeof(float) +
         static_cast<std::uint64_t>(rows_) * codes_->rest.columns() * each;
}

}  // namespace assay
