// MXFP4 and MXFP8 as compressed-tensors stores them: a power of two for every 32 elements of a row.
#include <fmt/format.h>

#include <algorithm>

#include "convert/encoder.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"

namespace assay {
namespace {

constexpr std::uint64_t kBlock = 32;

class MxEncoder : public Encoder {
 public:
  explicit MxEncoder(const Spec& spec) : spec_(spec) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % kBlock == 0) return std::nullopt;
    return fmt::format("rows of {} are not blocks of {}", tensor.columns, kBlock);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const EncodedPart scales{"_scale", ElementType::U8, {tensor.rows, tensor.columns / kBlock}};
    if (four()) return {{"_packed", ElementType::U8, {tensor.rows, tensor.columns / 2}, false}, scales};
    return {{"", ElementType::F8_E4M3, tensor.shape, false}, scales};
  }

  std::string form(const LogicalTensor&) const override { return four() ? "MXFP4" : "MXFP8"; }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, blocks = columns / kBlock;
    const std::uint64_t row_codes = columns / (four() ? 2 : 1);
    out.begin(2);
    const auto codes = out.put(0, in.rows * row_codes, in.first * row_codes);
    const auto scales = out.put(1, in.rows * blocks, in.first * blocks);
    for (std::uint64_t r = 0; r < in.rows; ++r)
      encode_row(in.values.subspan(r * columns, columns), codes.subspan(r * row_codes, row_codes),
                 scales.subspan(r * blocks, blocks), out.error);
  }

 private:
  bool four() const { return spec_.family == Spec::Family::mxfp4; }

  void encode_row(std::span<const float> before, std::span<std::byte> codes,
                  std::span<std::byte> stored_scales, ErrorSums& error) const {
    thread_local Scratch<float> scale_memory, row_memory;
    const auto scales = scale_memory.take(stored_scales.size());
    const auto row = row_memory.take(before.size());  // the quotients, then the row as it will decode
    block_amax(before, 1, before.size(), 1, kBlock, scales);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      error.zero_blocks += scales[i] == 0 ? 1 : 0;
      stored_scales[i] =
          static_cast<std::byte>(mx_scale(scales[i], spec_.mx_scaling, four() ? kMxE2M1 : kMxE4M3));
    }
    simd::decode(ElementType::F8_E8M0, stored_scales, scales.data());
    // Clamped is what lies more than half a step beyond the largest code: 6 (steps of 2), 448 (of 32).
    error.clamped += divide_blocks(before, kBlock, scales, four() ? 7.0F : 464.0F, row);
    if (four())
      encode_fp4(row, spec_.ties, codes);
    else
      simd::encode(ElementType::F8_E4M3, row, Overflow::saturate, codes.data());
    simd::decode(four() ? ElementType::F4 : ElementType::F8_E4M3, codes, row.data());
    scale_row(row, kBlock, scales.data());
    error.add(before, row);
  }

  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_mx_encoder(const Spec& spec) {
  return std::make_unique<MxEncoder>(spec);
}

}  // namespace assay
