#include "core/model/value_error.h"
#include "core/model/composed_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/numeric/ceil_div.h"
#include "core/numeric/codec.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kElementsAtOnce = 1 << 20;
constexpr std::uint64_t kTileSide = 128;  // where no scale says how wide a tile is
// Scales that are rounded themselves, and powers of two, which exceed amax / largest code by up to 2.
constexpr double kSlack = 1.5;

// What rounding to nearest leaves at most: rel·|b| + step·amax (of what shares a scale) + fixed.
struct Rounding {
  double relative = 0, step = 0, fixed = 0;
};

Rounding of_floats(const FloatFormat& format) {
  return {std::exp2(-(format.mantissa_bits + 1)),
          static_cast<double>(decode(format, 1)) / decode(format, format.max_code()), 0};
}

Rounding of_integers(double bits) {
  return {0, 0.5 / std::max(1.0, std::exp2(bits - 1) - 1), 0};
}

Rounding plain_rounding(ElementType type) {
  if (type == ElementType::F64) return {};
  if (type == ElementType::F32) return {std::exp2(-24), 0, std::exp2(-150)};
  if (const FloatFormat* format = float_format(type))
    return {of_floats(*format).relative, 0, decode(*format, 1) / 2};
  const ElementInfo& of = info(type);  // GGUF's blocks: a scale of their own, sub-blocks' of 6 bits
  return of_integers(8.0 * of.block_bytes / of.block_elements - 0.5);
}

Rounding rounding_of(const LogicalTensor& tensor) {
  switch (tensor.form.kind) {
    case FormKind::plain: return plain_rounding(tensor.form.codes);
    case FormKind::fp4: return of_floats(kE2M1);
    case FormKind::packed: return of_integers(tensor.form.packed.codes.bits);
    case FormKind::codebook: return {0, 0.16, 0};  // NF4's widest gap, from -1 to -0.696, halved
    case FormKind::scaled: break;
  }
  const FloatFormat* format = float_format(tensor.form.codes);
  return format == nullptr ? of_integers(8) : of_floats(*format);
}

// Rows and columns that share a scale; a matrix without any: {1, 1}.
struct Extent {
  std::uint64_t rows = 1, columns = 1;
};
Extent scale_extent(const LogicalTensor& tensor) {
  switch (tensor.form.kind) {
    case FormKind::plain: return {1, info(tensor.form.codes).block_elements};
    case FormKind::codebook: return {1, tensor.form.codebook.block};
    default: return {tensor.form.block_rows, tensor.form.block_columns};
  }
}

// A tile is what one scale covers, cut to kTileSide where that is a whole row or a whole matrix.
Extent tile_of(const LogicalTensor& a, const LogicalTensor& b) {
  Extent tile = {kTileSide, kTileSide};
  for (const LogicalTensor* side : {&b, &a}) {
    const Extent extent = scale_extent(*side);
    if (extent.rows * extent.columns == 1) continue;
    tile = {extent.rows >= side->rows ? kTileSide : extent.rows,
            extent.columns >= side->columns ? kTileSide : extent.columns};
  }
  return {std::clamp<std::uint64_t>(tile.rows, 1, std::max<std::uint64_t>(1, a.rows)),
          std::clamp<std::uint64_t>(tile.columns, 1, std::max<std::uint64_t>(1, a.columns))};
}

// The median of many relative errors, within a sixteenth of an octave.
class Median {
 public:
  void add(double relative) {
    ++count_;
    if (!(relative > 0)) {
      ++bins_[0];
      return;
    }
    const double bin = std::isfinite(relative) ? (std::log2(relative) - kLowest) * kBinsAnOctave : 1e9;
    ++bins_[static_cast<std::size_t>(std::clamp(bin, 1.0, static_cast<double>(bins_.size() - 1)))];
  }
  std::uint64_t count() const { return count_; }
  double value() const {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      seen += bins_[i];
      if (2 * seen >= count_)
        return i == 0 ? 0 : std::exp2(kLowest + (static_cast<double>(i) + 0.5) / kBinsAnOctave);
    }
    return 0;
  }

 private:
  static constexpr double kLowest = -40, kBinsAnOctave = 16;
  std::array<std::uint64_t, std::size_t{44} * 16> bins_{};
  std::uint64_t count_ = 0;
};

struct ErrorPart {
  ValueError error;
  double amax = 0;  // of b
  std::uint64_t elements = 0;
};

double largest(std::span<const float> values) {
  double amax = 0;
  for (const float v : values)
    amax = std::isfinite(v) ? std::max(amax, static_cast<double>(std::abs(v))) : amax;
  return amax;
}

// Errors of few elements scatter.
bool exceeds(const PartError& part, double usual) {
  const double scatter = 1 + 4 / std::sqrt(static_cast<double>(part.rows * part.columns));
  return !(part.error.relative() <= kTimesTheMedian * scatter * usual);
}

class PartJudge {
 public:
  PartJudge(const LogicalTensor& a, const LogicalTensor& b)
      : matrix_(a), tile_(tile_of(a, b)), across_(ceil_div(a.columns, tile_.columns)), tiles_(across_) {
    for (const LogicalTensor* side : {&a, &b}) {
      const Extent extent = scale_extent(*side);
      sides_.push_back({rounding_of(*side), extent.columns > tile_.columns, extent.rows > tile_.rows});
    }
  }

  // Whether some scale covers the whole matrix: then its largest value must be known before any tile is
  // judged.
  bool wants_the_largest() const {
    return std::any_of(sides_.begin(), sides_.end(), [](const Side& s) { return s.beyond_rows; });
  }
  void set_largest(double amax) { matrix_amax_ = amax; }

  void add_row(std::uint64_t row, std::span<const float> a, std::span<const float> b) {
    ErrorPart whole;
    for (std::uint64_t t = 0; t < across_; ++t) {
      const std::uint64_t first = t * tile_.columns, count = std::min(tile_.columns, matrix_.columns - first);
      ValueError error;
      error.add(a.subspan(first, count), b.subspan(first, count));
      const double amax = largest(b.subspan(first, count));
      for (ErrorPart* part : {&tiles_[t], &whole}) {
        part->error.add(error);
        part->amax = std::max(part->amax, amax);
        part->elements += count;
      }
    }
    band_.push_back(whole);
    const std::uint64_t in_slice = row % matrix_.rows;
    if ((in_slice + 1) % tile_.rows == 0 || in_slice + 1 == matrix_.rows) end_band(row + 1 - band_.size());
  }

  void finish(ValueComparison& result) {
    result.tiles = {tile_median_.count(), tile_median_.value()};
    result.rows = {row_median_.count(), row_median_.value()};
    std::sort(suspects_.begin(), suspects_.end(), worse);
    result.suspects = std::move(suspects_);
    // Those that no median excuses are few; a matrix quantized by other methods has nothing but suspects.
    std::erase_if(result.suspects, [&](const PartError& part) {
      const ValueComparison::Kind& kind = part.is_row ? result.rows : result.tiles;
      return kind.parts >= kEnoughForAMedian && !exceeds(part, kind.median);
    });
    result.suspects.shrink_to_fit();
  }

 private:
  struct Side {
    Rounding rounding;
    bool beyond_columns, beyond_rows;  // a scale covers more than one tile
  };

  static double size(const PartError& part) {
    const double relative = part.error.relative();
    return std::isnan(relative) ? INFINITY : relative;
  }
  static bool worse(const PartError& x, const PartError& y) { return size(x) > size(y); }

  // Σ (rel·b)² + n·abs², of both sides.
  double explained(const ErrorPart& tile, double band_amax) const {
    double squares = 0;
    for (const Side& side : sides_) {
      const double amax = side.beyond_rows ? matrix_amax_ : side.beyond_columns ? band_amax : tile.amax;
      const double absolute = side.rounding.step * amax + side.rounding.fixed;
      squares += side.rounding.relative * side.rounding.relative * tile.error.squares +
                 static_cast<double>(tile.elements) * absolute * absolute;
    }
    return kSlack * kSlack * squares;
  }

  void end_band(std::uint64_t first_row) {
    double band_amax = 0;
    for (const ErrorPart& tile : tiles_) band_amax = std::max(band_amax, tile.amax);
    double a_row = 0;  // what is explained of one row of the band, at most
    for (std::uint64_t t = 0; t < across_; ++t) {
      const double most = explained(tiles_[t], band_amax);
      // Of a row only the part that does not depend on its own values is known here.
      ErrorPart empty{{}, tiles_[t].amax, tiles_[t].elements};
      a_row += explained(empty, band_amax) / static_cast<double>(band_.size());
      judge({false, first_row, band_.size(), t * tile_.columns,
             std::min(tile_.columns, matrix_.columns - t * tile_.columns), tiles_[t].error, 0},
            most, tile_median_);
    }
    double relative = 0;
    for (const Side& side : sides_) relative += side.rounding.relative * side.rounding.relative;
    for (std::size_t i = 0; i < band_.size(); ++i) {
      judge({true, first_row + i, 1, 0, matrix_.columns, band_[i].error, 0},
            a_row + kSlack * kSlack * relative * band_[i].error.squares, row_median_);
    }
    std::fill(tiles_.begin(), tiles_.end(), ErrorPart{});
    band_.clear();
  }

  void judge(const PartError& part, double most, Median& median) {
    if (part.error.squares == 0 && part.error.error == 0) return;  // zeros on both sides
    median.add(part.error.relative());
    if (part.error.error <= most) return;
    suspects_.push_back(part);
    std::push_heap(suspects_.begin(), suspects_.end(), worse);  // the least bad on top
    if (suspects_.size() <= ValueComparison::kMostSuspects) return;
    std::pop_heap(suspects_.begin(), suspects_.end(), worse);
    suspects_.pop_back();
  }

  const LogicalTensor& matrix_;
  Extent tile_;
  std::uint64_t across_;
  std::vector<ErrorPart> tiles_, band_;
  std::vector<Side> sides_;
  double matrix_amax_ = 0;
  Median tile_median_, row_median_;
  std::vector<PartError> suspects_;
};

}  // namespace

void ValueError::add(std::span<const float> a, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(x)) {
        squares += y * y;
        own += x * x;
        product += x * y;
      }
      continue;
    }
    squares += y * y;
    own += x * x;
    product += x * y;
    error += (x - y) * (x - y);
  }
}

void ValueError::add(const ValueError& other) {
  squares += other.squares;
  error += other.error;
  product += other.product;
  own += other.own;
}

double ValueError::relative() const {
  return squares > 0 ? std::sqrt(error / squares) : error > 0 ? INFINITY : 0;
}

double ValueError::cosine() const {
  const double norm = std::sqrt(squares) * std::sqrt(own);
  return norm > 0 ? product / norm : squares == own ? 1 : 0;
}

std::string describe(const PartError& part) {
  const auto range = [](const char* what, std::uint64_t first, std::uint64_t count) {
    return count == 1 ? fmt::format("{} {}", what, first)
                      : fmt::format("{}s {}-{}", what, first, first + count - 1);
  };
  std::string text = range("row", part.row, part.rows);
  if (!part.is_row) text += ", " + range("column", part.column, part.columns);
  text += fmt::format(": off by {:.2g} of {} norm (the median {}: {:.2g})", part.error.relative(),
                      part.rows == 1 ? "its" : "their", part.is_row ? "row" : "tile", part.usual);
  if (part.error.own == 0) return text + ", all zero here";
  const double factor = part.error.squares > 0 ? part.error.product / part.error.squares : 1;
  if (part.error.cosine() > 0.95 && std::abs(factor - 1) > 0.02)
    text += fmt::format(", {:.3g} × what it should be", factor);
  return text;
}

std::vector<PartError> ValueComparison::faults(std::optional<double> usual) const {
  std::vector<PartError> found;
  for (PartError part : suspects) {
    const Kind& kind = part.is_row ? rows : tiles;
    const bool enough = kind.parts >= kEnoughForAMedian;
    if (!enough && !usual) continue;
    part.usual = enough ? kind.median : *usual;
    if (exceeds(part, part.usual)) found.push_back(part);
  }
  return found;
}

ValueComparison compare_by_parts(const CheckpointReader& a, const LogicalTensor& in_a,
                                 const CheckpointReader& b, const LogicalTensor& in_b, Progress& progress) {
  const StoredReader left(a, in_a), right(b, in_b);
  const std::uint64_t together = std::max(rows_read_together(in_a), rows_read_together(in_b));
  const std::uint64_t step = std::max(together, kElementsAtOnce / std::max<std::uint64_t>(1, in_a.columns));
  std::vector<float> x, y;
  ValueComparison result;
  PartJudge judge(in_a, in_b);
  const auto each_step = [&](auto&& work) {
    for (std::uint64_t row = 0; row < in_a.all_rows() && !interrupted(); row += step)
      work(row, std::min(step, in_a.all_rows() - row));
  };
  if (judge.wants_the_largest()) {
    double amax = 0;
    each_step([&](std::uint64_t row, std::uint64_t rows) {
      y.resize(rows * in_a.columns);
      right.decode_rows(row, rows, y);
      amax = std::max(amax, largest(y));
    });
    judge.set_largest(amax);
  }
  each_step([&](std::uint64_t row, std::uint64_t rows) {
    x.resize(rows * in_a.columns);
    y.resize(rows * in_a.columns);
    left.decode_rows(row, rows, x);
    right.decode_rows(row, rows, y);
    result.whole.add(x, y);
    for (std::uint64_t i = 0; i < rows; ++i)
      judge.add_row(row + i, std::span(x).subspan(i * in_a.columns, in_a.columns),
                    std::span(y).subspan(i * in_a.columns, in_a.columns));
    progress.add(x.size());
  });
  judge.finish(result);
  return result;
}

bool is_decodable(const LogicalTensor& tensor) {
  return tensor.quantized() || info(tensor.form.codes).is_float;
}

}  // namespace assay
