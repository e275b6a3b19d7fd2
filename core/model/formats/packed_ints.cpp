// compressed-tensors' integers of 1 to 8 bits in weight_packed; INT4 is written, too: eight codes a word along a
// row, q + 8 each; a scale a group of columns or a row; with `asym` also a zero point, packed along the rows. Over a
// group, with s rounded to the type it is stored in before anything is divided by it:
//
//   symmetric    s = max|w| / 7.5                   q = round(w / s)              w ≈ q s
//   asym         s = (max(w, 0) - min(w, 0)) / 15   z = round(-8 - min(w, 0)/s)   q = round(w / s + z)
//                                                                                 w ≈ (q - z) s
//
// all of them within -8 … 7. Source: compressed-tensors `calculate_qparams`, `pack_to_int32`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/model/formats/all.h"
#include "core/model/formats/compressed_tensors.h"
#include "core/model/formats/words.h"
#include "core/model/stored_checks.h"
#include "core/model/weight_encoder.h"
#include "core/numeric/codec.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay::formats {
namespace {

constexpr NameEnding kPackedIntsEndings[] = {
    {".weight_packed", ".weight", StoredPart::codes},
    {".weight_shape", ".weight", StoredPart::table},
    {".weight_g_idx", ".weight", StoredPart::table},
    {".weight_zero_point", ".weight", StoredPart::zero_point},
    {".input_zero_point", ".weight", StoredPart::zero_point, NameEnding::Belief::always, true},
};
constexpr std::string_view kPackedIntsMethods[] = {"compressed-tensors"};

bool claims_packed_int(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.codes_are("weight_packed");
}

// The shape that weight_shape spells out: a number a dimension, I64 or I32.
std::optional<StoredShape> spelled_shape(StoredResolution& resolution, std::uint32_t place) {
  const CheckpointTensor& tensor = resolution.stored(place);
  const bool wide = tensor.type == ElementType::I64;
  if (!wide && tensor.type != ElementType::I32) return std::nullopt;
  const auto bytes = resolution.small_tensor(place, 64);
  if (!bytes) return std::nullopt;
  StoredShape shape;
  const std::size_t size = wide ? 8 : 4;
  for (std::size_t at = 0; at + size <= bytes->size(); at += size) {
    std::int64_t value = 0;
    std::int32_t narrow = 0;
    if (wide)
      std::memcpy(&value, bytes->data() + at, size);
    else
      std::memcpy(&narrow, bytes->data() + at, size);
    if (!wide) value = narrow;
    if (value <= 0) return std::nullopt;
    shape.push_back(static_cast<std::uint64_t>(value));
  }
  return shape;
}

// weight_packed [out, words], weight_scale [out, groups] (or [out, 1], [out]), weight_shape;
// weight_zero_point [words of out, groups], weight_g_idx [in].
void resolve_packed_int(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("weight_scale");
  tensor.zeros = group.place("weight_zero_point");
  tensor.group_index = group.place("weight_g_idx");
  const auto spelled = group.place("weight_shape");
  if (spelled) tensor.auxiliary.push_back(*spelled);
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.zeros ? 1 : 0) +
                            (tensor.group_index ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() < 2)
    return resolution.unknown_form(tensor);
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  if (!resolution.take_scale_type(tensor)) return;

  const MatrixSizes m = as_matrices(codes.shape);
  StoredShape grid = resolution.stored(*tensor.scale).shape;
  if (grid.size() + 1 == codes.shape.size()) grid.push_back(1);
  StoredShape shape = codes.shape;
  const auto bits = configured_bits(resolution);
  if (spelled) {
    const auto read = spelled_shape(resolution, *spelled);
    if (!read || !same_but_last(*read, shape)) return resolution.unknown_form(tensor, "weight_shape");
    shape = *read;
  } else {
    const auto size = configured_group(resolution.quantization());
    if (!bits || !size || !same_but_last(grid, shape))
      return resolution.unknown_form(tensor, "no weight_shape");
    if (__builtin_mul_overflow(grid.back(), *size, &shape.back())) return resolution.unknown_form(tensor);
  }
  auto packing = packing_of(shape.back(), m.columns, bits);
  if (!packing && spelled) packing = packing_of(shape.back(), m.columns);  // one of several config groups
  if (!packing) return resolution.unknown_form(tensor, "bits an element");
  if (!same_but_last(grid, shape)) return resolution.bad_grid(tensor, shape);
  const auto columns = group_columns(shape.back(), grid.back(), resolution.quantization());
  if (!columns) return resolution.bad_grid(tensor, shape);
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = *packing;

  if (tensor.zeros) {
    const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
    const std::uint64_t rows = shape[shape.size() - 2];
    StoredShape wanted = grid;
    wanted[wanted.size() - 2] = packing->words(rows);
    if (!is_word(zeros.type) || zeros.shape != wanted)
      return resolution.unknown_form(tensor, "weight_zero_point");
    tensor.form.packed.zeros = *packing;
    tensor.form.packed.zeros_across = true;
    tensor.form.packed.zero = ZeroPoint::packed;
  }
  if (tensor.group_index && (resolution.stored(*tensor.group_index).shape != StoredShape{shape.back()} ||
                             resolution.stored(*tensor.group_index).type != ElementType::I32))
    return resolution.unknown_form(tensor, "weight_g_idx");
  resolution.finish(tensor, shape);
}

std::vector<WeightFormat> packed_int_sizes() {
  return {grouped_int(4, 128)};
}

// Of four inputs two are zero: the codes of the others, and for each of these two bits of where it stands (Marlin24Compressor
// of compressed-tensors 0.9).
WeightFormat sparse_for_marlin(WeightFormat format) {
  format.title = fmt::format("marlin-24: INT{}, of four inputs two, a scale each {}", format.bits,
                             format.block_columns == 0 ? "row" : std::to_string(format.block_columns));
  format.name = "marlin-24";
  format.bits = format.bits / 2 + 1;
  format.per_matrix_bytes = 0;
  format.marlin = false;
  return format;
}

std::optional<WeightFormat> configured_packed_int(const QuantizationConfig& config) {
  const std::uint64_t bits = said_bits(config);
  const bool few_bits = bits > 0 && bits < 8 && said_group(config) > 0;
  if (says(config, "marlin-24")) return sparse_for_marlin(configured_grouped_int(config));
  if (!few_bits && !says(config, "pack-quantized")) return std::nullopt;
  WeightFormat format = configured_grouped_int(config);
  if (config.groups.empty()) return format;
  const QuantizationConfig::Group& group = config.groups.front();
  if (!group.symmetric.value_or(true)) format.zero_bits = format.bits;
  if (group.group_index) format.input_bytes = 4;
  return format;
}

struct Int4Target {
  bool asymmetric = false;  // with zero points
  std::uint64_t group = 0;  // columns of a group; 0: a row
};

constexpr IntPacking kInt4Packing{4, IntPacking::Fill::dense};
constexpr float kInt4Low = -8, kInt4High = 7;

// The scales' type is that of the weights, as a model loaded in it would have them.
ElementType int4_scale_type(const LogicalTensor& tensor) {
  const ElementType type = tensor.quantized() ? tensor.form.scales : tensor.form.codes;
  if (!tensor.quantized() && (type == ElementType::F32 || type == ElementType::F64)) return ElementType::F32;
  return type == ElementType::F16 ? ElementType::F16 : ElementType::BF16;
}

// What stands for a scale of 0: torch.finfo(type).eps.
float smallest_step(ElementType type) {
  return type == ElementType::F32 ? 0x1p-23F : type == ElementType::F16 ? 0x1p-10F : 0x1p-7F;
}

class Int4Encoder : public WeightEncoder {
 public:
  explicit Int4Encoder(const Int4Target& target) : target_(target) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % group(tensor) == 0) return std::nullopt;
    return fmt::format("rows of {} are not groups of {}", tensor.columns, target_.group);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const std::uint64_t groups = tensor.columns / group(tensor);
    std::vector<EncodedPart> all = {
        {"_packed", ElementType::I32, {tensor.rows, kInt4Packing.words(tensor.columns)}, false},
        {"_scale", int4_scale_type(tensor), {tensor.rows, groups}},
        {"_shape", ElementType::I64, {2}, false}};
    if (target_.asymmetric)
      all.push_back({"_zero_point", ElementType::I32, {kInt4Packing.words(tensor.rows), groups}, false});
    return all;
  }

  std::string form(const LogicalTensor& tensor) const override {
    const char* zero = target_.asymmetric ? ", zero points" : "";
    if (target_.group == 0) return fmt::format("INT4 channel{}", zero);
    return fmt::format("INT4 group {}{}", group(tensor), zero);
  }

  Json quantization_config(const IgnoredModules& ignored) const override {
    const bool channel = target_.group == 0;
    CompressedScheme scheme{"pack-quantized",
                            quantization_arguments(4, "int", channel ? "channel" : "group",
                                                   channel ? Json(nullptr) : Json(target_.group), false),
                            nullptr};
    scheme.weights["symmetric"] = !target_.asymmetric;
    return compressed_tensors_config(scheme, ignored);
  }

  // A word of zero points holds eight rows.
  std::uint64_t rows_together() const override { return target_.asymmetric ? 8 : 1; }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, width = group(in.tensor), groups = columns / width;
    const ElementType type = int4_scale_type(in.tensor);
    thread_local Scratch<float> low_memory, high_memory, scale_memory, zero_memory;
    const auto low = low_memory.take(in.rows * groups), high = high_memory.take(low.size());
    const auto scales = scale_memory.take(low.size()), zeros = zero_memory.take(low.size());
    out.begin(target_.asymmetric ? 4 : 3);
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      group_ranges(in.values.subspan(r * columns, columns), width, low.subspan(r * groups, groups),
                   high.subspan(r * groups, groups));
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      out.error.zero_blocks += low[i] == 0 && high[i] == 0 ? 1 : 0;
      scales[i] = target_.asymmetric ? (high[i] - low[i]) / (kInt4High - kInt4Low)
                                     : std::max(-low[i], high[i]) / ((kInt4High - kInt4Low) / 2);
    }
    const std::uint64_t scale_bytes = info(type).block_bytes;
    round_scales(type, scales, out.put(1, scales.size() * scale_bytes, in.first * groups * scale_bytes));
    std::fill(zeros.begin(), zeros.end(), 0.0F);
    if (target_.asymmetric) {
      for (std::size_t i = 0; i < zeros.size(); ++i)
        zeros[i] = std::nearbyint(std::clamp(kInt4Low - low[i] / scales[i], kInt4Low, kInt4High));
    }

    const std::uint64_t words = kInt4Packing.words(columns);
    std::vector<std::uint32_t> packed(words);
    const auto codes = out.put(0, in.rows * words * 4, in.first * words * 4);
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      encode_row(in.values.subspan(r * columns, columns), scales.subspan(r * groups, groups),
                 zeros.subspan(r * groups, groups), packed, out.error);
      std::memcpy(codes.data() + r * words * 4, packed.data(), words * 4);
    }
    if (in.first == 0) put_elements<std::uint64_t>(out, 2, in.tensor.shape, 0);
    if (target_.asymmetric)
      put_elements<std::uint32_t>(out, 3, pack_zeros(zeros, in.rows, groups),
                                  kInt4Packing.words(in.first) * groups * 4);
  }

 private:
  std::uint64_t group(const LogicalTensor& tensor) const {
    return target_.group == 0 ? tensor.columns : target_.group;
  }

  static void encode_row(std::span<const float> before, std::span<const float> scales,
                         std::span<const float> zeros, std::span<std::uint32_t> packed, ErrorSums& error) {
    thread_local Scratch<std::uint8_t> code_memory;
    thread_local Scratch<float> offset_memory, after_memory;
    const auto q = code_memory.take(before.size());
    const auto offsets = offset_memory.take(scales.size()), after = after_memory.take(before.size());
    const std::uint64_t width = before.size() / scales.size();
    quantize_groups(before, width, scales, zeros, kInt4Low, kInt4High, q);
    pack_line(kInt4Packing, q, packed);
    for (std::size_t g = 0; g < offsets.size(); ++g) offsets[g] = kInt4Low - zeros[g];
    dequantize_groups(q, width, scales, offsets, after);
    error.add(before, after);
  }

  static void round_scales(ElementType type, std::span<float> scales, std::span<std::byte> stored) {
    simd::encode(type, scales, Overflow::special, stored.data());
    simd::decode(type, stored, scales.data());
    for (float& scale : scales) scale = scale == 0 ? smallest_step(type) : scale;
    simd::encode(type, scales, Overflow::special, stored.data());
  }

  static std::vector<std::uint32_t> pack_zeros(std::span<const float> zeros, std::uint64_t rows,
                                               std::uint64_t groups) {
    std::vector<std::uint32_t> packed(kInt4Packing.words(rows) * groups), words(kInt4Packing.words(rows));
    std::vector<std::uint8_t> line(rows);
    for (std::uint64_t g = 0; g < groups; ++g) {
      for (std::uint64_t r = 0; r < rows; ++r)
        line[r] = static_cast<std::uint8_t>(zeros[r * groups + g] - kInt4Low);
      pack_line(kInt4Packing, line, words);
      for (std::uint64_t w = 0; w < words.size(); ++w) packed[w * groups + g] = words[w];
    }
    return packed;
  }

  const Int4Target target_;
};

// int4:group=128 | int4:channel, with ,asym
std::shared_ptr<const WeightEncoder> int4_target(const TargetText& text) {
  if (!text.text.starts_with("int4:")) return nullptr;
  Int4Target target;
  bool grain_given = false;
  text.for_each(text.text.substr(5), [&](std::string_view option) {
    if (option == "asym") {
      target.asymmetric = true;
    } else if (option == "channel" && !grain_given) {
      grain_given = true;
    } else if (option.starts_with("group=") && !grain_given) {
      const auto group = parse_u64(option.substr(6));
      if (!group || (*group != 32 && *group != 64 && *group != 128))
        text.refuse("a group has 32, 64 or 128 columns");
      target.group = *group;
      grain_given = true;
    } else {
      return false;
    }
    return true;
  });
  if (!grain_given) text.refuse("group=128 or channel is needed");
  return std::make_shared<Int4Encoder>(target);
}

}  // namespace

const StoredFormat kPackedInts = {.name = "compressed-tensors integers",
                                  .endings = kPackedIntsEndings,
                                  .methods = kPackedIntsMethods,
                                  .claims = claims_packed_int,
                                  .resolve = resolve_packed_int,
                                  .sizes = packed_int_sizes,
                                  .configured = configured_packed_int,
                                  .target = int4_target,
                                  .target_names = "int4:…",
                                  .target_usage = "int4:group=N | int4:channel [,asym]"};

}  // namespace assay::formats
