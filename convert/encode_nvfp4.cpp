// NVFP4: E2M1 codes, an E4M3 scale for every 16 elements of a row, one float32 scale for the tensor. With
// amax the tensor's largest magnitude and b a block's:
//
//   compressed-tensors   g = 448 · 6 · (1/amax) s = e4m3(g · (b / 6)), 0.125 in place of 0     w ≈ q · (s /
//   g) ModelOpt             g = amax / (6 · 448)  s = e4m3(b / (6 · g)), within [2^-9, 448]; of   w ≈ q · (s
//   · g)
//                                              a block of zeros 1
//
// Sources: compressed-tensors `generate_gparam`, `calculate_qparams`; Model-Optimizer `NVFP4QTensor`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convert/encoder.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"

namespace assay {
namespace {

constexpr std::uint64_t kBlock = 16;
constexpr float kLargest = 6.0F, kLargestScale = 448.0F;

class Nvfp4Encoder : public Encoder {
 public:
  explicit Nvfp4Encoder(const Spec& spec) : spec_(spec) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % kBlock == 0) return std::nullopt;
    return fmt::format("rows of {} are not blocks of {}", tensor.columns, kBlock);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const std::vector<std::uint64_t> codes = {tensor.rows, tensor.columns / 2};
    const EncodedPart scales{"_scale", ElementType::F8_E4M3, {tensor.rows, tensor.columns / kBlock}};
    if (spec_.modelopt)
      return {{"", ElementType::U8, codes, false}, scales, {"_scale_2", ElementType::F32, {}}};
    return {{"_packed", ElementType::U8, codes, false}, scales, {"_global_scale", ElementType::F32, {1}}};
  }

  std::string form(const LogicalTensor&) const override { return "NVFP4"; }
  bool needs_whole_amax() const override { return true; }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, blocks = columns / kBlock;
    const float global = global_scale(in.whole_amax);
    out.begin(3);
    const auto codes = out.put(0, in.rows * columns / 2, in.first * columns / 2);
    const auto scales = out.put(1, in.rows * blocks, in.first * blocks);
    for (std::uint64_t r = 0; r < in.rows; ++r)
      encode_row(in.values.subspan(r * columns, columns), global, codes.subspan(r * columns / 2, columns / 2),
                 scales.subspan(r * blocks, blocks), out.error);
    if (in.first == 0) put_elements<float>(out, 2, std::span(&global, 1), 0);
  }

 private:
  void encode_row(std::span<const float> before, float global, std::span<std::byte> codes,
                  std::span<std::byte> stored_scales, ErrorSums& error) const {
    thread_local Scratch<float> scale_memory, row_memory;
    const auto scales = scale_memory.take(stored_scales.size());
    const auto row = row_memory.take(before.size());  // the quotients, then the row as it will decode
    block_amax(before, 1, before.size(), 1, kBlock, scales);
    error.zero_blocks += static_cast<std::uint64_t>(std::count(scales.begin(), scales.end(), 0.0F));
    for (float& scale : scales) scale = block_scale(scale, global);
    simd::encode(ElementType::F8_E4M3, scales, Overflow::saturate, stored_scales.data());
    simd::decode(ElementType::F8_E4M3, stored_scales, scales.data());
    if (!spec_.modelopt) replace_zeros(scales, stored_scales);
    for (float& scale : scales) scale = spec_.modelopt ? scale * global : scale / global;

    error.clamped += divide_blocks(before, kBlock, scales, 7.0F, row);
    encode_fp4(row, spec_.ties, codes);
    simd::decode(ElementType::F4, codes, row.data());
    scale_row(row, kBlock, scales.data());
    error.add(before, row);
  }

  float global_scale(float amax) const {
    if (spec_.modelopt) {
      const float scale = amax / (kLargest * kLargestScale);
      return scale == 0 ? 1.0F : scale;
    }
    const float inverse = 1 / std::max(amax, std::numeric_limits<float>::min());  // as torch divides a number
    const float scale = inverse * (kLargestScale * kLargest);
    return std::isinf(scale) ? 1.0F : scale;
  }

  float block_scale(float amax, float global) const {
    if (!spec_.modelopt) return global * (amax / kLargest);
    const float scale = amax / (kLargest * global);
    return scale == 0 ? 1.0F : std::clamp(scale, 0x1p-9F, kLargestScale);
  }

  static void replace_zeros(std::span<float> scales, std::span<std::byte> stored) {
    constexpr float kInPlaceOfZero = 0.125F;  // the step of E4M3 at 1
    constexpr std::byte kItsCode{0x20};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (scales[i] != 0) continue;
      scales[i] = kInPlaceOfZero;
      stored[i] = kItsCode;
    }
  }

  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_nvfp4_encoder(const Spec& spec) {
  return std::make_unique<Nvfp4Encoder>(spec);
}

}  // namespace assay
