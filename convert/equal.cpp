#include "convert/equal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "convert/equal_gguf.h"
#include "convert/roles.h"
#include "core/model/composed_tensor.h"
#include "core/model/published_layout.h"
#include "core/model/stored_checks.h"
#include "core/numeric/float_loops.h"
#include "core/system/error.h"
#include "core/system/finding_error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kElementsAtOnce = 1 << 16;  // decoded twice over, they stay in a core's cache

bool decodes(const LogicalTensor& tensor) {
  return tensor.quantized() || info(tensor.form.codes).is_float;
}

bool agree(double a, double b, const Tolerance& tolerance) {
  if (tolerance.non_finite == NonFinite::differs && !std::isfinite(a)) return false;
  if (a == b) return true;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::max(std::abs(a), std::abs(b));
}

// Finite, and the same to the bit: what is equal mostly is, and this is told much faster.
bool same_numbers(std::span<const float> a, std::span<const float> b) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0 &&
         largest_magnitude_bits(a.data(), a.size()) < kInfinity;
}
bool same_numbers(std::span<const double> a, std::span<const double> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0 &&
         std::all_of(a.begin(), a.end(), [](double value) { return std::isfinite(value); });
}

// Integers, Booleans and complex numbers are compared as they are stored.
std::optional<Difference> compare_bytes(const CheckpointReader& a, const LogicalTensor& in_a,
                                        const CheckpointReader& b, const LogicalTensor& in_b,
                                        Progress& progress) {
  const CheckpointTensor &x = a.checkpoint().tensors[in_a.codes], &y = b.checkpoint().tensors[in_b.codes];
  if (x.type != y.type) {
    return Difference{in_a.name, fmt::format("{} against {}", name(x.type), name(y.type))};
  }
  std::vector<std::byte> left(std::min(x.bytes, kElementsAtOnce)), right(left.size());
  for (std::uint64_t at = 0; at < x.bytes; at += left.size()) {
    const std::uint64_t size = std::min<std::uint64_t>(left.size(), x.bytes - at);
    a.read(x, at, std::span(left).first(size));
    b.read(y, at, std::span(right).first(size));
    progress.add(size);
    const auto differs =
        std::mismatch(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(size), right.begin());
    if (differs.first == left.begin() + static_cast<std::ptrdiff_t>(size)) continue;
    return Difference{in_a.name, fmt::format("stored bytes differ from byte {} on",
                                             at + static_cast<std::uint64_t>(differs.first - left.begin()))};
  }
  return std::nullopt;
}

// What has been seen of one pair of tensors.
class PairTally {
 public:
  explicit PairTally(const Tolerance& tolerance) : tolerance_(tolerance) {}

  template <class Real>
  void add(std::span<const Real> x, std::span<const Real> y, std::uint64_t at) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double by = std::abs(double{x[i]} - double{y[i]});
      if (tolerance_.norm > 0 && std::isfinite(by)) {
        squares_ += double{x[i]} * double{x[i]};
        error_squares_ += by * by;
        continue;
      }
      if (!agree(x[i], y[i], tolerance_)) note(x[i], y[i], at + i, by);
    }
  }

  std::optional<std::string> fault(std::uint64_t elements) const {
    if (differing_ > 0)
      return fmt::format("element {}: {}; {} of {} differ, by {:.3g} at most", first_, first_values_,
                         differing_, elements, largest_);
    if (!(error_squares_ <= tolerance_.norm * tolerance_.norm * squares_))
      return fmt::format("by {:.3g} of its norm", std::sqrt(error_squares_ / squares_));
    return std::nullopt;
  }
  double largest() const { return differing_ > 0 ? largest_ : std::sqrt(error_squares_); }

 private:
  template <class Real>
  void note(Real x, Real y, std::uint64_t at, double by) {
    if (differing_++ == 0) {
      first_ = at;
      first_values_ =
          fmt::format("{} against {}", x, y);  // as many digits as tell one of its kind from others
    }
    if (std::isnan(by) || by > largest_) largest_ = by;  // a NaN stays
  }

  const Tolerance& tolerance_;
  std::uint64_t differing_ = 0, first_ = 0;
  std::string first_values_;
  double largest_ = 0, squares_ = 0, error_squares_ = 0;
};

template <class Real>
using ReadRowsOf = std::function<void(std::uint64_t first, std::uint64_t count, std::span<Real> out)>;

template <class Real>
std::optional<Difference> compare_rows_of(const ComparedMatrix& matrix, const ReadRowsOf<Real>& left,
                                          const ReadRowsOf<Real>& right, const Tolerance& tolerance,
                                          Progress& progress) {
  const std::uint64_t step =
      std::max(matrix.rows_together, kElementsAtOnce / std::max<std::uint64_t>(1, matrix.columns));
  std::vector<Real> x, y;
  PairTally tally(tolerance);
  for (std::uint64_t row = 0; row < matrix.rows; row += step) {
    if (interrupted()) break;
    const std::uint64_t rows = std::min(step, matrix.rows - row);
    x.resize(rows * matrix.columns);
    y.resize(rows * matrix.columns);
    left(row, rows, x);
    right(row, rows, y);
    progress.add(x.size());
    if (tolerance.norm > 0 || !same_numbers(x, y)) tally.add<Real>(x, y, row * matrix.columns);
  }
  const auto fault = tally.fault(matrix.rows * matrix.columns);
  if (!fault) return std::nullopt;
  return Difference{matrix.name, *fault, tally.largest()};
}

bool is_double(const LogicalTensor& tensor) {
  return tensor.form.codes == ElementType::F64;
}

// Rows of a plain F64 tensor as they are stored, of any other as float32, every value of which is a double.
ReadRowsOf<double> double_rows(const CheckpointReader& source, const LogicalTensor& tensor) {
  if (!is_double(tensor)) {
    return [&](std::uint64_t first, std::uint64_t count, std::span<double> out) {
      std::vector<float> rows(out.size());
      StoredReader(source, tensor).decode_rows(first, count, rows);
      std::copy(rows.begin(), rows.end(), out.begin());
    };
  }
  return [&](std::uint64_t first, std::uint64_t, std::span<double> out) {
    source.read(source.checkpoint().tensors[tensor.codes], first * tensor.columns * sizeof(double),
                std::as_writable_bytes(out));
  };
}

// F64 against whatever it is, by the exact values of both.
std::optional<Difference> compare_doubles(const CheckpointReader& a, const LogicalTensor& in_a,
                                          const CheckpointReader& b, const LogicalTensor& in_b,
                                          const Tolerance& tolerance, Progress& progress) {
  const auto is_read_rounded = [](const LogicalTensor& tensor) {
    return is_double(tensor) && (tensor.quantized() || is_put_together(tensor));
  };
  if (is_read_rounded(in_a) || is_read_rounded(in_b))
    return Difference{in_a.name, "not compared: F64, and put together from other tensors"};
  const std::uint64_t together = std::max(rows_read_together(in_a), rows_read_together(in_b));
  return compare_rows_of<double>({in_a.name, in_a.all_rows(), in_a.columns, together}, double_rows(a, in_a),
                                 double_rows(b, in_b), tolerance, progress);
}

}  // namespace

std::optional<Difference> compare_rows(const ComparedMatrix& matrix, const ReadRows& left,
                                       const ReadRows& right, const Tolerance& tolerance,
                                       Progress& progress) {
  return compare_rows_of<float>(matrix, left, right, tolerance, progress);
}

std::optional<Difference> compare_tensor(const CheckpointReader& a, const LogicalTensor& in_a,
                                         const CheckpointReader& b, const LogicalTensor& in_b,
                                         const Tolerance& tolerance, Progress& progress) {
  if (in_a.shape != in_b.shape) {
    return Difference{in_a.name,
                      fmt::format("{} against {}", shape_text(in_a.shape), shape_text(in_b.shape))};
  }
  const bool as_stored = !decodes(in_a) || !decodes(in_b);
  if (as_stored && !is_put_together(in_a) && !is_put_together(in_b))
    return compare_bytes(a, in_a, b, in_b, progress);
  if (is_double(in_a) || is_double(in_b)) return compare_doubles(a, in_a, b, in_b, tolerance, progress);
  const StoredReader left(a, in_a), right(b, in_b);
  const auto rows_of = [](const StoredReader& reader) {
    return [&reader](std::uint64_t first, std::uint64_t count, std::span<float> out) {
      reader.decode_rows(first, count, out);
    };
  };
  const std::uint64_t together = std::max(rows_read_together(in_a), rows_read_together(in_b));
  return compare_rows({in_a.name, in_a.all_rows(), in_a.columns, together}, rows_of(left), rows_of(right),
                      tolerance, progress);
}

namespace {

using Names = std::set<std::string_view>;
Names names_of(const std::vector<LogicalTensor>& tensors) {
  Names names;
  for (const LogicalTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

// A stack of experts that lies [experts, outputs, inputs] on one side and [experts, inputs, outputs] on the other.
bool any_lies_turned(const std::vector<LogicalTensor>& tensors, const std::vector<LogicalTensor>& others) {
  std::unordered_map<std::string_view, const LogicalTensor*> stacks;
  for (const LogicalTensor& tensor : tensors)
    if (tensor.shape.size() == 3) stacks.emplace(tensor.name, &tensor);
  return std::any_of(others.begin(), others.end(), [&](const LogicalTensor& other) {
    const auto found = stacks.find(other.name);
    if (found == stacks.end() || other.shape.size() != 3 || found->second->shape == other.shape) return false;
    const auto& shape = found->second->shape;
    return other.shape == std::vector<std::uint64_t>{shape[0], shape[2], shape[1]};
  });
}

// Experts may lie apart on one side and stacked, or turned, on the other: then both are read under the published names.
std::optional<std::pair<StoredTensors, StoredTensors>> in_one_layout(const Side& a, const Side& b) {
  if (names_of(a.stored.tensors) == names_of(b.stored.tensors) &&
      !any_lies_turned(a.stored.tensors, b.stored.tensors))
    return std::nullopt;
  auto tree = tree_of(a.checkpoint);
  if (!tree) tree = tree_of(b.checkpoint);
  if (!tree) return std::nullopt;
  const auto in_layout = [&](const StoredTensors& stored) {
    const auto all = [](std::string_view) { return true; };
    return with_experts_apart(under_published_names(stored, *tree), *tree, all);
  };
  return std::pair(in_layout(a.stored), in_layout(b.stored));
}

}  // namespace

EqualReport compare_values(const Side& a, const Side& b, const EqualOptions& options, Progress& progress) {
  if (auto across = compare_with_gguf(a, b, options, progress)) return std::move(*across);
  const auto published = in_one_layout(a, b);
  const auto& tensors = published ? published->first.tensors : a.stored.tensors;
  const auto& others = published ? published->second.tensors : b.stored.tensors;
  std::unordered_map<std::string_view, const LogicalTensor*> in_b;
  for (const LogicalTensor& tensor : others) in_b.emplace(tensor.name, &tensor);
  std::vector<std::optional<Difference>> found(tensors.size());
  parallel_for(options.jobs, tensors.size(), [&](std::size_t i) {
    const auto other = in_b.find(tensors[i].name);
    if (other == in_b.end())
      found[i] = Difference{tensors[i].name, "only in the first"};
    else if (!interrupted())
      found[i] = compare_tensor(a.reader, tensors[i], b.reader, *other->second, options.tolerance, progress);
  });
  EqualReport report;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ++report.tensors;
    report.elements += tensors[i].elements();
    in_b.erase(tensors[i].name);
    if (found[i]) report.differences.push_back(std::move(*found[i]));
  }
  for (const LogicalTensor& tensor : others) {
    if (!in_b.contains(tensor.name)) continue;
    ++report.tensors;
    report.differences.push_back({tensor.name, "only in the second"});
  }
  return report;
}

}  // namespace assay
