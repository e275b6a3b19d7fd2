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

  EncodedRows encode(const RowsToEncode& in) const override {
    EncodedRows out;
    const std::uint64_t blocks = in.values.size() / kBlock;
    std::vector<float> scales(blocks);
    std::vector<std::byte> codes(in.values.size() / (four() ? 2 : 1)), stored_scales(blocks);
    block_amax(in.values, 1, in.values.size(), 1, kBlock, scales);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      out.zero_blocks += scales[i] == 0 ? 1 : 0;
      stored_scales[i] =
          static_cast<std::byte>(mx_scale(scales[i], spec_.mx_scaling, four() ? kMxE2M1 : kMxE4M3));
    }
    simd::decode(ElementType::F8_E8M0, stored_scales, scales.data());

    out.after.resize(in.values.size());
    // Clamped is what lies more than half a step beyond the largest code: 6 (steps of 2), 448 (of 32).
    out.clamped = divide_blocks(in.values, kBlock, scales, four() ? 7.0F : 464.0F, out.after);
    if (four())
      encode_fp4(out.after, spec_.ties, codes);
    else
      simd::encode(ElementType::F8_E4M3, out.after, Overflow::saturate, codes.data());
    simd::decode(four() ? ElementType::F4 : ElementType::F8_E4M3, codes, out.after.data());
    scale_row(out.after, kBlock, scales.data());

    const std::uint64_t row_codes = codes.size() / in.rows;
    out.parts.push_back({std::move(codes), in.first * row_codes});
    out.parts.push_back({std::move(stored_scales), in.first * (in.tensor.columns / kBlock)});
    return out;
  }

 private:
  bool four() const { return spec_.family == Spec::Family::mxfp4; }
  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_mx_encoder(const Spec& spec) {
  return std::make_unique<MxEncoder>(spec);
}

}  // namespace assay
