// FP8 and INT8, one scale a block, a row or the tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convert/encoder.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/row_quantizer.h"
#include "core/system/error.h"

namespace assay {
namespace {

class ScaledEncoder : public Encoder {
 public:
  explicit ScaledEncoder(const Spec& spec) : spec_(spec) {}

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const BlockQuantizer quantizer = spec_.quantizer(tensor.rows, tensor.columns);
    std::vector<std::uint64_t> grid = {LogicalTensor::ceil_div(tensor.rows, quantizer.block_rows),
                                       LogicalTensor::ceil_div(tensor.columns, quantizer.block_columns)};
    if (whole()) grid = {1};
    const char* suffix = spec_.grain == Spec::Grain::block ? "_scale_inv" : "_scale";
    return {{"", spec_.type, tensor.shape, false}, {suffix, ElementType::F32, grid}};
  }

  std::string form(const LogicalTensor& tensor) const override {
    LogicalTensor after = tensor;
    const BlockQuantizer quantizer = spec_.quantizer(tensor.rows, tensor.columns);
    after.form = {.kind = FormKind::scaled, .codes = spec_.type};
    after.form.block_rows = quantizer.block_rows;
    after.form.block_columns = quantizer.block_columns;
    return form_name(after);
  }

  // With one scale for the whole tensor, which a pass of its own finds, rows may be cut anywhere.
  std::uint64_t rows_together() const override {
    return spec_.grain == Spec::Grain::block ? spec_.block_rows : 1;
  }
  bool needs_whole_amax() const override { return whole(); }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const BlockQuantizer quantizer = spec_.quantizer(in.tensor.rows, in.tensor.columns);
    const std::uint64_t columns = in.tensor.columns, block_rows = std::min(in.rows, quantizer.block_rows);
    const std::uint64_t across = LogicalTensor::ceil_div(columns, quantizer.block_columns);
    const std::uint64_t first_block = whole() ? 0 : in.first / quantizer.block_rows;
    out.begin(2);
    thread_local Scratch<float> scale_memory, row_memory;
    const auto scales =
        scale_memory.take(whole() ? 1 : LogicalTensor::ceil_div(in.rows, block_rows) * across);
    if (whole()) {
      scales[0] = in.whole_amax;
    } else {
      block_amax(in.values, in.rows, columns, block_rows, quantizer.block_columns, scales);
      out.error.zero_blocks = static_cast<std::uint64_t>(std::count(scales.begin(), scales.end(), 0.0F));
    }
    for (float& scale : scales) scale = quantizer.scale_for(scale);
    if (in.given != nullptr) take_given(in, quantizer, first_block, scales);

    const auto codes = out.put(0, in.values.size(), in.first * columns);
    const auto row = row_memory.take(columns);  // the quotients, then the row as it will decode
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      const auto before = in.values.subspan(r * columns, columns);
      const float* scale = &scales[whole() ? 0 : r / quantizer.block_rows * across];
      const auto row_codes = codes.subspan(r * columns, columns);
      out.error.clamped += quantize_row(quantizer, before, scale, row, row_codes);
      simd::decode(spec_.type, row_codes, row.data());
      scale_row(row, quantizer.block_columns, scale);
      out.error.add(before, row);
    }
    if (!whole() || in.first == 0) put_elements<float>(out, 1, scales, first_block * across * sizeof(float));
  }

 private:
  bool whole() const { return spec_.grain == Spec::Grain::tensor; }

  static void take_given(const RowsToEncode& in, const BlockQuantizer& quantizer, std::uint64_t first_block,
                         std::span<float> scales) {
    const LogicalTensor* given = in.given->find(in.tensor.name);
    const bool fits = given != nullptr && given->form.kind == FormKind::scaled &&
                      given->shape == in.tensor.shape && given->form.block_rows == quantizer.block_rows &&
                      given->form.block_columns == quantizer.block_columns;
    if (!fits) {
      throw Error::refused("--scales-from has no scales for it in these blocks").tensor(in.tensor.name);
    }
    const std::uint64_t rows = scales.size() / given->scale_columns();
    StoredReader(in.given->reader, *given).decode_scales(first_block, rows, scales);
    for (const float scale : scales) {
      if (!(scale > 0) || std::isinf(scale))
        throw Error::refused("a given scale is not a positive number").tensor(in.tensor.name);
    }
  }

  const Spec spec_;
};

}  // namespace

std::unique_ptr<Encoder> make_scaled_encoder(const Spec& spec) {
  return std::make_unique<ScaledEncoder>(spec);
}

}  // namespace assay
