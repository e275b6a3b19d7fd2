// INT4 as compressed-tensors packs it: eight codes a word along a row, q + 8 each; a scale a group of columns
// or a row; with `asym` also a zero point, packed along the rows. Over a group, with s rounded to the type it
// is stored in before anything is divided by it:
//
//   symmetric    s = max|w| / 7.5                   q = round(w / s)              w ≈ q s
//   asym         s = (max(w, 0) - min(w, 0)) / 15   z = round(-8 - min(w, 0)/s)   q = round(w / s + z)
//                                                                                 w ≈ (q - z) s
//
// all of them within -8 … 7. Source: compressed-tensors `calculate_qparams`, `pack_to_int32`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convert/encoder.h"
#include "core/numeric/codec.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"

namespace assay {
namespace {

constexpr IntPacking kPacking{4, IntPacking::Fill::dense};
constexpr float kLow = -8, kHigh = 7;

// The scales' type is that of the weights, as a model loaded in it would have them.
ElementType scale_type(const LogicalTensor& tensor) {
  const ElementType type = tensor.quantized() ? tensor.form.scales : tensor.form.codes;
  if (!tensor.quantized() && (type == ElementType::F32 || type == ElementType::F64)) return ElementType::F32;
  return type == ElementType::F16 ? ElementType::F16 : ElementType::BF16;
}

// What stands for a scale of 0: torch.finfo(type).eps.
float smallest_step(ElementType type) {
  return type == ElementType::F32 ? 0x1p-23F : type == ElementType::F16 ? 0x1p-10F : 0x1p-7F;
}

class Int4Encoder : public Encoder {
 public:
  explicit Int4Encoder(const Spec& spec) : spec_(spec) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % group(tensor) == 0) return std::nullopt;
    return fmt::format("rows of {} are not groups of {}", tensor.columns, spec_.group);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const std::uint64_t groups = tensor.columns / group(tensor);
    std::vector<EncodedPart> all = {
        {"_packed", ElementType::I32, {tensor.rows, kPacking.words(tensor.columns)}, false},
        {"_scale", scale_type(tensor), {tensor.rows, groups}},
        {"_shape", ElementType::I64, {2}, false}};
    if (spec_.asymmetric)
      all.push_back({"_zero_point", ElementType::I32, {kPacking.words(tensor.rows), groups}, false});
    return all;
  }

  std::string form(const LogicalTensor& tensor) const override {
    const char* zero = spec_.asymmetric ? ", zero points" : "";
    if (spec_.group == 0) return fmt::format("INT4 channel{}", zero);
    return fmt::format("INT4 group {}{}", group(tensor), zero);
  }

  // A word of zero points holds eight rows.
  std::uint64_t rows_together() const override { return spec_.asymmetric ? 8 : 1; }

  EncodedRows encode(const RowsToEncode& in) const override {
    const std::uint64_t columns = in.tensor.columns, width = group(in.tensor), groups = columns / width;
    const ElementType type = scale_type(in.tensor);
    EncodedRows out;
    std::vector<float> low(in.rows * groups), high(low.size()), scales(low.size()), zeros(low.size(), 0.0F);
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      group_ranges(in.values.subspan(r * columns, columns), width, std::span(low).subspan(r * groups, groups),
                   std::span(high).subspan(r * groups, groups));
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      out.zero_blocks += low[i] == 0 && high[i] == 0 ? 1 : 0;
      scales[i] = spec_.asymmetric ? (high[i] - low[i]) / (kHigh - kLow)
                                   : std::max(-low[i], high[i]) / ((kHigh - kLow) / 2);
    }
    const std::vector<std::byte> stored_scales = round_scales(type, scales);
    if (spec_.asymmetric) {
      for (std::size_t i = 0; i < zeros.size(); ++i)
        zeros[i] = std::nearbyint(std::clamp(kLow - low[i] / scales[i], kLow, kHigh));
    }

    const std::uint64_t words = kPacking.words(columns);
    std::vector<std::uint32_t> packed(in.rows * words);
    std::vector<std::uint8_t> q(columns);
    std::vector<float> offsets(groups);
    out.after.resize(in.values.size());
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      const float* s = &scales[r * groups];
      const float* z = &zeros[r * groups];
      quantize_groups(in.values.subspan(r * columns, columns), width, {s, groups}, {z, groups}, kLow, kHigh,
                      q);
      pack_line(kPacking, q, std::span(packed).subspan(r * words, words));
      for (std::uint64_t g = 0; g < groups; ++g) offsets[g] = kLow - z[g];
      dequantize_groups(q, width, {s, groups}, offsets, std::span(out.after).subspan(r * columns, columns));
    }
    out.parts.push_back({to_bytes(packed), in.first * words * 4});
    out.parts.push_back({stored_scales, in.first * groups * info(type).block_bytes});
    out.parts.push_back({{}, 0});
    if (in.first == 0) out.parts.back().bytes = to_bytes(in.tensor.shape);
    if (spec_.asymmetric)
      out.parts.push_back({pack_zeros(zeros, in.rows, groups), kPacking.words(in.first) * groups * 4});
    return out;
  }

 private:
  std::uint64_t group(const LogicalTensor& tensor) const {
    return spec_.group == 0 ? tensor.columns : spec_.group;
  }

  static std::vector<std::byte> round_scales(ElementType type, std::vector<float>& scales) {
    std::vector<std::byte> stored(scales.size() * info(type).block_bytes);
    simd::encode(type, scales, Overflow::special, stored.data());
    simd::decode(type, stored, scales.data());
    for (float& scale : scales) scale = scale == 0 ? smallest_step(type) : scale;
    simd::encode(type, scales, Overflow::special, stored.data());
    return stored;
  }

  static std::vector<std::byte> pack_zeros(const std::vector<float>& zeros, std::uint64_t rows,
                                           std::uint64_t groups) {
    std::vector<std::uint32_t> packed(kPacking.words(rows) * groups), words(kPacking.words(rows));
    std::vector<std::uint8_t> line(rows);
    for (std::uint64_t g = 0; g < groups; ++g) {
      for (std::uint64_t r = 0; r < rows; ++r)
        line[r] = static_cast<std::uint8_t>(zeros[r * groups + g] - kLow);
      pack_line(kPacking, line, words);
      for (std::uint64_t w = 0; w < words.size(); ++w) packed[w * groups + g] = words[w];
    }
    return to_bytes(packed);
  }

  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_int4_encoder(const Spec& spec) {
  return std::make_unique<Int4Encoder>(spec);
}

}  // namespace assay
