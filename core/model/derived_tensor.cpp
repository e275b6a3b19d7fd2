#include "core/model/derived_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/model/stored_columns.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t columns_taken(const DerivedTensor::Piece& piece, const LogicalTensor& source) {
  return piece.columns == 0 ? source.columns : piece.columns;
}

std::uint64_t rows_of(const DerivedTensor::Piece& piece, const LogicalTensor& source) {
  return piece.transposed ? columns_taken(piece, source) : piece.rows;
}

std::uint64_t width_of(const DerivedTensor::Piece& piece, const LogicalTensor& source) {
  return piece.transposed ? piece.rows : columns_taken(piece, source);
}

bool is_part_of_rows(const DerivedTensor::Piece& piece) {
  return piece.columns != 0 || piece.first_column != 0 || piece.column_step != 1;
}

bool within_rows(const DerivedTensor::Piece& piece, const LogicalTensor& source) {
  if (!is_part_of_rows(piece)) return true;
  return piece.columns != 0 && piece.column_step != 0 &&
         piece.first_column + (piece.columns - 1) * piece.column_step < source.columns;
}

// The row of the other order that stands at `row` of this one.
std::uint64_t source_row(const DerivedTensor& tensor, std::uint64_t row) {
  const std::uint64_t turning = tensor.turning_rows == 0 ? tensor.head_rows : tensor.turning_rows;
  const std::uint64_t half = turning / 2, at = row % tensor.head_rows, head = row - at;
  if (at >= turning) return row;
  if (tensor.order == HeadRows::pairs_from_halves) return head + at % 2 * half + at / 2;
  return head + at % half * 2 + at / half;
}

void regroup(const DerivedTensor& tensor, std::span<float> values) {
  const auto [groups, members, width] = tensor.regrouped;
  std::vector<float> row(tensor.columns());
  for (std::size_t begin = 0; begin < values.size(); begin += row.size()) {
    const std::span<float> made = values.subspan(begin, row.size());
    std::copy(made.begin(), made.end(), row.begin());
    for (std::uint64_t member = 0; member < members; ++member) {
      for (std::uint64_t group = 0; group < groups; ++group)
        std::copy_n(&row[(group * members + member) * width], width,
                    &made[(member * groups + group) * width]);
    }
  }
}

// `value` rounded to so many bits.
float of_bits(double value, int bits) {
  int exponent = 0;
  const double part = std::frexp(value, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(part, bits)), exponent - bits));
}

// A number y of which float32(times · exp(y)) is `value`, or of which it is the next float, as another library's exp
// may have it: the one of the fewest bits.
float roundest_log(float value, float times) {
  constexpr int kFloatBits = 24;
  const double exact = std::log(static_cast<double>(value) / static_cast<double>(times));
  if (!std::isfinite(exact)) return static_cast<float>(exact);
  const float below = std::nextafter(value, -INFINITY), above = std::nextafter(value, INFINITY);
  std::optional<float> near;
  for (int bits = 1; bits <= kFloatBits; ++bits) {
    const float y = of_bits(exact, bits);
    const auto made = static_cast<float>(times * std::exp(static_cast<double>(y)));
    if (made == value) return y;
    const bool is_short = bits <= kFloatBits / 2;  // of more, floats that lie side by side would be mixed up
    if (is_short && !near && made >= below && made <= above) near = y;
  }
  return near.value_or(static_cast<float>(exact));
}

// As torch does: the mean, and what is left of each value, are rounded to the type of the values.
void centre(std::span<float> row, ElementType type) {
  const auto rounded = [&](double value) {
    const auto single = static_cast<float>(value);
    if (type == ElementType::BF16) return decode(kBF16, encode(kBF16, single, Overflow::special));
    if (type == ElementType::F16) return decode(kF16, encode(kF16, single, Overflow::special));
    return single;
  };
  double sum = 0;
  for (const float value : row) sum += static_cast<double>(value);
  const float mean = rounded(sum / static_cast<double>(row.size()));
  for (float& value : row) value = rounded(static_cast<double>(value) - static_cast<double>(mean));
}

}  // namespace

std::uint64_t DerivedTensor::rows() const {
  if (shape.empty()) return 1;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
  return product;
}

DerivedTensor::Row DerivedTensor::source_of(std::uint64_t row) const {
  if (order != HeadRows::kept) row = source_row(*this, row);
  std::uint64_t left = row;
  for (const Piece& piece : pieces) {
    if (left < piece.rows) return {piece.source, piece.first_row + left};
    left -= piece.rows;
  }
  throw Error::internal(fmt::format("row {} of a derived tensor of {}", row, row - left)).tensor(name);
}

std::optional<std::uint32_t> DerivedTensor::same_as(const StoredTensors& stored) const {
  const bool changed = pieces.size() != 1 || pieces[0].transposed || pieces[0].is_scaled() ||
                       order != HeadRows::kept || offset != 0 || centred || times_exp != 0 || log_of != 0 ||
                       regrouped.groups != 0 || times || zero_rows != 0;
  if (changed || pieces[0].first_row != 0 || is_part_of_rows(pieces[0])) return std::nullopt;
  const LogicalTensor& source = stored.tensors[pieces[0].source];
  if (source.composed || source.all_rows() != pieces[0].rows || source.columns != columns())
    return std::nullopt;
  return pieces[0].source;
}

void DerivedTensor::check(const StoredTensors& stored) const {
  if (!computed.empty()) {
    if (computed.size() != rows() * columns())
      throw Error::internal(fmt::format("{} values of {} × {}", computed.size(), rows(), columns()))
          .tensor(name);
    return;
  }
  std::uint64_t held = zero_rows;
  bool fits = abreast > 0 && pieces.size() % abreast == 0;
  for (std::size_t i = 0; fits && i < pieces.size(); i += abreast) {
    std::uint64_t width = 0;
    const std::uint64_t high = rows_of(pieces[i], stored.tensors.at(pieces[i].source));
    for (std::size_t j = i; j < i + abreast; ++j) {
      const LogicalTensor& source = stored.tensors.at(pieces[j].source);
      width += width_of(pieces[j], source);
      fits = fits && pieces[j].first_row + pieces[j].rows <= source.all_rows() &&
             within_rows(pieces[j], source) && rows_of(pieces[j], source) == high;
    }
    held += high;
    fits = fits && width == columns();
  }
  const std::uint64_t ordered = shape.size() <= 1 ? columns() : rows();
  const bool whole_heads =
      order == HeadRows::kept || (head_rows >= 2 && ordered % head_rows == 0 && turning_rows <= head_rows);
  const bool whole_groups =
      regrouped.groups == 0 || regrouped.groups * regrouped.members * regrouped.width == columns();
  const bool one_row_times = !times || (rows() == 1 && stored.tensors.at(*times).all_rows() == 1 &&
                                        stored.tensors[*times].columns == columns());
  if (!fits || held != rows() || !whole_heads || !whole_groups || !one_row_times)
    throw Error::internal(
        fmt::format("{} × {} is put together of {} rows, by heads of {}", rows(), columns(), held, head_rows))
        .tensor(name);
}

DerivedTensor whole(std::string name, const StoredTensors& stored, std::uint32_t source) {
  DerivedTensor tensor;
  tensor.name = std::move(name);
  tensor.shape = stored.tensors[source].shape;
  tensor.pieces = {{source, 0, stored.tensors[source].all_rows()}};
  return tensor;
}

DerivedTensor transposed(std::string name, const StoredTensors& stored, std::uint32_t source) {
  DerivedTensor tensor = whole(std::move(name), stored, source);
  std::swap(tensor.shape[tensor.shape.size() - 2], tensor.shape.back());
  tensor.pieces.front().transposed = true;
  return tensor;
}

void DerivedReader::read(const DerivedTensor& tensor, std::uint64_t first, std::uint64_t count,
                         std::span<float> out) const {
  const std::uint64_t columns = tensor.columns();
  if (!tensor.computed.empty()) {
    std::copy_n(tensor.computed.begin() + static_cast<std::ptrdiff_t>(first * columns), count * columns,
                out.begin());
  } else if (tensor.order == HeadRows::kept) {
    read_in_order(tensor, first, count, out);
  } else if (tensor.shape.size() <= 1) {  // a bias: its values are ordered as the matrix's rows are
    std::vector<float> heads(columns);
    read_in_order(tensor, first, count, heads);
    for (std::uint64_t i = 0; i < columns; ++i) out[i] = heads[source_row(tensor, i)];
  } else {
    const std::uint64_t head = tensor.head_rows;
    const std::uint64_t begin = first / head * head, end = (first + count + head - 1) / head * head;
    std::vector<float> heads((end - begin) * columns);
    read_in_order(tensor, begin, end - begin, heads);
    for (std::uint64_t row = 0; row < count; ++row) {
      const std::uint64_t from = source_row(tensor, first + row) - begin;
      std::copy_n(heads.begin() + static_cast<std::ptrdiff_t>(from * columns), columns,
                  out.begin() + static_cast<std::ptrdiff_t>(row * columns));
    }
  }
  if (tensor.regrouped.groups != 0) regroup(tensor, out.first(count * columns));
  if (tensor.times_exp != 0) {
    for (float& value : out.first(count * columns))
      value = static_cast<float>(tensor.times_exp * std::exp(static_cast<double>(value)));
  }
  if (tensor.log_of != 0) {
    for (float& value : out.first(count * columns)) value = roundest_log(value, tensor.log_of);
  }
  if (tensor.times) {
    std::vector<float> factors(columns);
    StoredReader(source_, stored_.tensors[*tensor.times]).decode_rows(0, 1, factors);
    for (std::uint64_t i = 0; i < columns; ++i) out[i] *= factors[i];
  }
  if (tensor.centred) {
    const ElementType type = stored_.tensors[tensor.pieces.front().source].form.codes;
    for (std::uint64_t row = 0; row < count; ++row) centre(out.subspan(row * columns, columns), type);
  }
  if (tensor.offset == 0) return;
  for (float& value : out.first(count * columns)) value += tensor.offset;
}

void DerivedReader::read_in_order(const DerivedTensor& tensor, std::uint64_t first, std::uint64_t count,
                                  std::span<float> out) const {
  std::uint64_t begin = 0, done = 0;
  for (std::size_t i = 0; i < tensor.pieces.size(); i += tensor.abreast) {
    const DerivedTensor::Piece& piece = tensor.pieces[i];
    const std::uint64_t rows = rows_of(piece, stored_.tensors[piece.source]), end = begin + rows;
    const std::uint64_t from = std::max(first, begin), to = std::min(first + count, end);
    if (from < to) {
      const std::span<float> here = out.subspan(done * tensor.columns());
      if (tensor.abreast == 1)
        read_piece(piece, from - begin, to - from, here);
      else
        read_abreast(tensor, i, from - begin, to - from, here);
      done += to - from;
    }
    begin = end;
    if (begin >= first + count) break;
  }
  if (tensor.zero_rows > 0) {
    const auto zeros = out.subspan(done * tensor.columns(), (count - done) * tensor.columns());
    std::fill(zeros.begin(), zeros.end(), 0.0F);
    done = count;
  }
  if (done != count)
    throw Error::internal(fmt::format("rows {} to {} of a derived tensor: its pieces have {} of them", first,
                                      first + count, done))
        .tensor(tensor.name);
}

void DerivedReader::read_abreast(const DerivedTensor& tensor, std::size_t begin, std::uint64_t first,
                                 std::uint64_t count, std::span<float> out) const {
  std::uint64_t column = 0;
  std::vector<float> values;
  for (std::size_t i = begin; i < begin + tensor.abreast; ++i) {
    const DerivedTensor::Piece& piece = tensor.pieces[i];
    const std::uint64_t width = width_of(piece, stored_.tensors[piece.source]);
    const std::uint64_t step = tensor.woven ? tensor.abreast : 1, at = tensor.woven ? i - begin : column;
    values.resize(count * width);
    read_piece(piece, first, count, values);
    for (std::uint64_t row = 0; row < count; ++row) {
      for (std::uint64_t c = 0; c < width; ++c)
        out[row * tensor.columns() + at + c * step] = values[row * width + c];
    }
    column += width;
  }
}

void DerivedReader::read_piece(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                               std::span<float> out) const {
  read_values(piece, first, count, out);
  if (!piece.is_scaled()) return;
  const LogicalTensor& source = stored_.tensors[piece.source];
  const std::uint64_t columns = piece.transposed ? piece.rows : columns_taken(piece, source);
  for (float& value : out.first(count * columns)) {
    value *= piece.factors[0];
    value *= piece.factors[1];
  }
}

void DerivedReader::read_values(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                                std::span<float> out) const {
  const LogicalTensor& source = stored_.tensors[piece.source];
  if (piece.transposed) return read_columns(piece, first, count, out);
  const StoredReader reader(source_, source);
  if (!is_part_of_rows(piece)) return reader.decode_rows(piece.first_row + first, count, out);
  std::vector<float> values(count * source.columns);
  reader.decode_rows(piece.first_row + first, count, values);
  for (std::uint64_t row = 0; row < count; ++row) {
    const float* from = &values[row * source.columns + piece.first_column];
    for (std::uint64_t i = 0; i < piece.columns; ++i)
      out[row * piece.columns + i] = from[i * piece.column_step];
  }
}

// Columns of the source, each of them a row of what is made: a strip that holds them all.
void DerivedReader::read_columns(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                                 std::span<float> out) const {
  const std::uint64_t begin = piece.first_column + first * piece.column_step;
  const std::uint64_t width = (count - 1) * piece.column_step + 1;
  std::vector<float> strip(width == count ? 0 : width * piece.rows);
  const std::span<float> columns = strip.empty() ? out.first(width * piece.rows) : std::span(strip);
  decode_columns(source_, stored_.tensors[piece.source], {piece.first_row, piece.rows, begin, width},
                 columns);
  if (strip.empty()) return;
  for (std::uint64_t row = 0; row < count; ++row)
    std::copy_n(&strip[row * piece.column_step * piece.rows], piece.rows, &out[row * piece.rows]);
}

}  // namespace assay
