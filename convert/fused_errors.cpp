#include "convert/fused_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/model/fused_sets.h"
#include "core/model/stored_checks.h"
#include "core/numeric/codec.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kCodesAtOnce = 1 << 20;

bool is_float8(ElementType type) {
  return needs_scale(type) && float_format(type) != nullptr;
}

// The place of the scale that a whole matrix shares.
std::optional<std::uint32_t> whole_scale(const LogicalTensor& tensor) {
  const StoredForm& form = tensor.form;
  if (form.kind == FormKind::fp4) return tensor.global_scale;
  const bool one = form.kind == FormKind::scaled && is_float8(form.codes) && form.block_rows == tensor.rows &&
                   form.block_columns == tensor.columns && tensor.slices == 1;
  return one ? tensor.scale : std::nullopt;
}

bool is_block_scale(const CheckpointReader& source, std::uint32_t place) {  // of a matrix of one block
  return source.checkpoint().tensors[place].name.ends_with("_scale_inv");
}

bool shares_one_scale(const CheckpointReader& source, const LogicalTensor& tensor) {
  const auto scale = whole_scale(tensor);
  return scale && !is_block_scale(source, *scale);
}

float read_scale(const CheckpointReader& source, const LogicalTensor& tensor) {
  if (tensor.form.kind == FormKind::scaled) {
    float scale = 0;
    StoredReader(source, tensor).decode_scales(0, 1, std::span(&scale, 1));
    return scale;
  }
  float scale = 0;
  source.read(source.checkpoint().tensors[*tensor.global_scale], 0,
              std::as_writable_bytes(std::span(&scale, 1)));
  return scale;
}

// How often each code occurs.
std::array<std::uint64_t, 256> count_codes(const CheckpointReader& source, const LogicalTensor& tensor) {
  const CheckpointTensor& codes = source.checkpoint().tensors[tensor.codes];
  std::array<std::uint64_t, 256> counts{};
  std::vector<std::byte> bytes(std::min(codes.bytes, kCodesAtOnce));
  for (std::uint64_t at = 0; at < codes.bytes && !interrupted(); at += bytes.size()) {
    const auto part = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), codes.bytes - at));
    source.read(codes, at, part);
    for (const std::byte code : part) ++counts[std::to_integer<std::size_t>(code)];
  }
  return counts;
}

// Every value of one code moves alike, so that counts of codes are all that is needed.
double error_of_rounding(const CheckpointReader& source, const LogicalTensor& tensor, float own,
                         float largest) {
  const FloatFormat& format = *float_format(tensor.form.codes);
  const auto counts = count_codes(source, tensor);
  double error = 0, squares = 0;
  for (std::uint32_t code = 0; code < counts.size(); ++code) {
    const float decoded = decode(format, code) * own;
    if (counts[code] == 0 || !std::isfinite(decoded)) continue;
    const float again = decode(format, encode(format, decoded / largest, Overflow::saturate)) * largest;
    const double by = double{again} - double{decoded};
    error += static_cast<double>(counts[code]) * by * by;
    squares += static_cast<double>(counts[code]) * double{decoded} * double{decoded};
  }
  return squares == 0 ? 0 : std::sqrt(error / squares);
}

double error_of(const CheckpointReader& source, const LogicalTensor& tensor, float own, float largest) {
  if (own == largest) return 0;
  if (!(own > 0) || !std::isfinite(largest)) return kInfinite;
  if (tensor.form.kind == FormKind::scaled) return error_of_rounding(source, tensor, own, largest);
  const double factor = tensor.form.global == GlobalScale::divide ? double{own} / double{largest}
                                                                  : double{largest} / double{own};
  return std::abs(factor - 1);
}

std::optional<FusedError> error_of_set(const CheckpointReader& source, const StoredTensors& stored,
                                       const FusedSet& set) {
  std::vector<float> scales;
  for (const std::uint32_t member : set.members) scales.push_back(read_scale(source, stored.tensors[member]));
  float largest = scales.front();
  for (const float scale : scales) {
    if (!(scale <= largest)) largest = scale;
  }
  if (std::all_of(scales.begin(), scales.end(), [&](float scale) { return scale == largest; }))
    return std::nullopt;
  FusedError worst{.set = set.name, .tensor = {}, .error = -1, .rounded_again = false};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const LogicalTensor& tensor = stored.tensors[set.members[i]];
    const double error = error_of(source, tensor, scales[i], largest);
    if (error <= worst.error) continue;
    worst.tensor = tensor.name;
    worst.error = error;
    worst.rounded_again = tensor.form.kind == FormKind::scaled && std::isfinite(error);
  }
  return worst;
}

// MLX and llama.cpp fuse nothing, and may hold each member in a form of its own.
bool is_engines_form(const LogicalTensor& tensor) {
  return tensor.form.kind == FormKind::fp4 || tensor.form.kind == FormKind::scaled;
}

std::optional<Finding> mixed_forms(const StoredTensors& stored, const FusedSet& set) {
  const LogicalTensor& first = stored.tensors[set.members.front()];
  for (const std::uint32_t member : set.members) {
    const LogicalTensor& other = stored.tensors[member];
    const bool one_is_engines = is_engines_form(first) || is_engines_form(other);
    const StoredForm &a = first.form, &b = other.form;
    if (!one_is_engines || (a.kind == b.kind && a.codes == b.codes && a.global == b.global)) continue;
    return Finding{.severity = Severity::warning,
                   .code = "fused.forms_differ",
                   .message = fmt::format("{}: {} beside {}; engines that fuse them refuse to load this",
                                          set.name, form_name(first), form_name(other)),
                   .file = {},
                   .tensor = other.name,
                   .offset = {},
                   .remedy = "quantize all of them alike, or none"};
  }
  return std::nullopt;
}

}  // namespace

FusedReport find_fused_errors(const CheckpointReader& source, const StoredTensors& stored, int jobs) {
  FusedReport report;
  std::vector<FusedSet> sets;
  for (FusedSet& set : find_fused_sets(stored.tensors)) {
    if (auto mixed = mixed_forms(stored, set)) {
      report.mixed.push_back(std::move(*mixed));
    } else if (std::all_of(set.members.begin(), set.members.end(), [&](std::uint32_t member) {
                 return shares_one_scale(source, stored.tensors[member]);
               })) {
      sets.push_back(std::move(set));
    }
  }
  report.sets = sets.size();
  std::vector<std::optional<FusedError>> found(sets.size());
  parallel_for(jobs, sets.size(), [&](std::size_t i) {
    if (!interrupted()) found[i] = error_of_set(source, stored, sets[i]);
  });
  for (auto& error : found) {
    if (error) report.errors.push_back(std::move(*error));
  }
  return report;
}

Finding to_finding(const FusedError& error) {
  return {.severity = error.rounded_again ? Severity::warning : Severity::error,
          .code = "fused.scales_differ",
          .message = fmt::format(
              "{}: engines fuse these under the largest of their scales, which differ: {} "
              "by {:.3g} (relative error)",
              error.set, error.rounded_again ? "it is rounded again, and moves" : "it is off", error.error),
          .file = {},
          .tensor = error.tensor,
          .offset = {},
          .remedy = "quantize them under one scale: assay convert does"};
}

}  // namespace assay
