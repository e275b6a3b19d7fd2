#include "convert/equal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "convert/equal_gguf.h"
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

bool agree(float a, float b, double rtol, NonFinite non_finite) {
  if (non_finite == NonFinite::differs && !std::isfinite(a)) return false;
  if (a == b) return true;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return rtol > 0 &&
         std::abs(double{a} - double{b}) <= rtol * std::max(std::abs(double{a}), std::abs(double{b}));
}

// Finite, and the same to the bit: what is equal mostly is, and this is told much faster.
bool same_numbers(std::span<const float> a, std::span<const float> b) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0 &&
         largest_magnitude_bits(a.data(), a.size()) < kInfinity;
}

// Integers, Booleans and what float32 cannot hold are compared as they are stored.
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

}  // namespace

Side::Side(const fs::path& path, int jobs)
    : checkpoint(open_checkpoint(path, jobs)),
      stored(find_stored(checkpoint, read_quantization(checkpoint))),
      reader(checkpoint) {
  throw_first_error(checkpoint.findings, path);
  throw_first_error(stored.findings, path);
}

std::optional<Difference> compare_tensor(const CheckpointReader& a, const LogicalTensor& in_a,
                                         const CheckpointReader& b, const LogicalTensor& in_b, double rtol,
                                         Progress& progress, NonFinite non_finite) {
  if (in_a.shape != in_b.shape) {
    return Difference{in_a.name,
                      fmt::format("{} against {}", shape_text(in_a.shape), shape_text(in_b.shape))};
  }
  if (!decodes(in_a) || !decodes(in_b) || in_a.form.codes == ElementType::F64)
    return compare_bytes(a, in_a, b, in_b, progress);
  const StoredReader left(a, in_a), right(b, in_b);
  const auto rows_of = [](const StoredReader& reader) {
    return [&reader](std::uint64_t first, std::uint64_t count, std::span<float> out) {
      reader.decode_rows(first, count, out);
    };
  };
  const std::uint64_t together = std::max(in_a.rows_together(), in_b.rows_together());
  return compare_rows({in_a.name, in_a.all_rows(), in_a.columns, together}, rows_of(left), rows_of(right),
                      rtol, progress, non_finite);
}

std::optional<Difference> compare_rows(const ComparedMatrix& matrix, const ReadRows& left,
                                       const ReadRows& right, double rtol, Progress& progress,
                                       NonFinite non_finite) {
  const std::uint64_t step =
      std::max(matrix.rows_together, kElementsAtOnce / std::max<std::uint64_t>(1, matrix.columns));
  std::vector<float> x, y;
  std::uint64_t differing = 0, first = 0;
  float first_x = 0, first_y = 0;
  double largest = 0;
  for (std::uint64_t row = 0; row < matrix.rows; row += step) {
    if (interrupted()) break;
    const std::uint64_t rows = std::min(step, matrix.rows - row);
    x.resize(rows * matrix.columns);
    y.resize(rows * matrix.columns);
    left(row, rows, x);
    right(row, rows, y);
    progress.add(x.size());
    if (same_numbers(x, y)) continue;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (agree(x[i], y[i], rtol, non_finite)) continue;
      if (differing++ == 0) {
        first = row * matrix.columns + i;
        first_x = x[i];
        first_y = y[i];
      }
      const double by = std::abs(double{x[i]} - double{y[i]});
      if (std::isnan(by) || by > largest) largest = by;  // a NaN stays
    }
  }
  if (differing == 0) return std::nullopt;
  return Difference{matrix.name,
                    fmt::format("element {}: {} against {}; {} of {} differ, by {:.3g} at most", first,
                                first_x, first_y, differing, matrix.rows * matrix.columns, largest),
                    largest};
}

EqualReport compare_values(const Side& a, const Side& b, double rtol, int jobs, Progress& progress) {
  if (auto across = compare_with_gguf(a, b, rtol, jobs, progress)) return std::move(*across);
  std::unordered_map<std::string_view, const LogicalTensor*> in_b;
  for (const LogicalTensor& tensor : b.stored.tensors) in_b.emplace(tensor.name, &tensor);
  const auto& tensors = a.stored.tensors;
  std::vector<std::optional<Difference>> found(tensors.size());
  parallel_for(jobs, tensors.size(), [&](std::size_t i) {
    const auto other = in_b.find(tensors[i].name);
    if (other == in_b.end())
      found[i] = Difference{tensors[i].name, "only in the first"};
    else if (!interrupted())
      found[i] = compare_tensor(a.reader, tensors[i], b.reader, *other->second, rtol, progress);
  });
  EqualReport report;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ++report.tensors;
    report.elements += tensors[i].elements();
    in_b.erase(tensors[i].name);
    if (found[i]) report.differences.push_back(std::move(*found[i]));
  }
  for (const LogicalTensor& tensor : b.stored.tensors) {
    if (in_b.contains(tensor.name)) report.differences.push_back({tensor.name, "only in the second"});
  }
  return report;
}

}  // namespace assay
