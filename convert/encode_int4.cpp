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

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, width = group(in.tensor), groups = columns / width;
    const ElementType type = scale_type(in.tensor);
    thread_local Scratch<float> low_memory, high_memory, scale_memory, zero_memory;
    const auto low = low_memory.take(in.rows * groups), high = high_memory.take(low.size());
    const auto scales = scale_memory.take(low.size()), zeros = zero_memory.take(low.size());
    out.begin(spec_.asymmetric ? 4 : 3);
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      group_ranges(in.values.subspan(r * columns, columns), width, low.subspan(r * groups, groups),
                   high.subspan(r * groups, groups));
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      out.error.zero_blocks += low[i] == 0 && high[i] == 0 ? 1 : 0;
      scales[i] = spec_.asymmetric ? (high[i] - low[i]) / (kHigh - kLow)
                                   : std::max(-low[i], high[i]) / ((kHigh - kLow) / 2);
    }
    const std::uint64_t scale_bytes = info(type).block_bytes;
    round_scales(type, scales, out.put(1, scales.size() * scale_bytes, in.first * groups * scale_bytes));
    std::fill(zeros.begin(), zeros.end(), 0.0F);
    if (spec_.asymmetric) {
      for (std::size_t i = 0; i < zeros.size(); ++i)
        zeros[i] = std::nearbyint(std::clamp(kLow - low[i] / scales[i], kLow, kHigh));
    }

    const std::uint64_t words = kPacking.words(columns);
    std::vector<std::uint32_t> packed(words);
    const auto codes = out.put(0, in.rows * words * 4, in.first * words * 4);
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      encode_row(in.values.subspan(r * columns, columns), scales.subspan(r * groups, groups),
                 zeros.subspan(r * groups, groups), packed, out.error);
      std::memcpy(codes.data() + r * words * 4, packed.data(), words * 4);
    }
    if (in.first == 0) put_elements<std::uint64_t>(out, 2, in.tensor.shape, 0);
    if (spec_.asymmetric)
      put_elements<std::uint32_t>(out, 3, pack_zeros(zeros, in.rows, groups),
                                  kPacking.words(in.first) * groups * 4);
  }

 private:
  std::uint64_t group(const LogicalTensor& tensor) const {
    return spec_.group == 0 ? tensor.columns : spec_.group;
  }

  static void encode_row(std::span<const float> before, std::span<const float> scales,
                         std::span<const float> zeros, std::span<std::uint32_t> packed, ErrorSums& error) {
    thread_local Scratch<std::uint8_t> code_memory;
    thread_local Scratch<float> offset_memory, after_memory;
    const auto q = code_memory.take(before.size());
    const auto offsets = offset_memory.take(scales.size()), after = after_memory.take(before.size());
    const std::uint64_t width = before.size() / scales.size();
    quantize_groups(before, width, scales, zeros, kLow, kHigh, q);
    pack_line(kPacking, q, packed);
    for (std::size_t g = 0; g < offsets.size(); ++g) offsets[g] = kLow - zeros[g];
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
    std::vector<std::uint32_t> packed(kPacking.words(rows) * groups), words(kPacking.words(rows));
    std::vector<std::uint8_t> line(rows);
    for (std::uint64_t g = 0; g < groups; ++g) {
      for (std::uint64_t r = 0; r < rows; ++r)
        line[r] = static_cast<std::uint8_t>(zeros[r * groups + g] - kLow);
      pack_line(kPacking, line, words);
      for (std::uint64_t w = 0; w < words.size(); ++w) packed[w * groups + g] = words[w];
    }
    return packed;
  }

  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_int4_encoder(const Spec& spec) {
  return std::make_unique<Int4Encoder>(spec);
}

}  // namespace assay
