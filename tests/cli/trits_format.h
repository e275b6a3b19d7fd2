// A stored format that nobody has described: trits. Weights are -1, 0 or 1 times the largest magnitude of their
// row; four codes a byte, low bits first, 0, 1, 2 for -1, 0, 1.
//
//   NAME.weight.trits    U8 [rows, columns/4]
//   NAME.weight.step     F32 [rows]
//   config.json          quantization_config {"quant_method": "trits"}
//
// All of it is said here, once, as a file in core/model/formats would.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/model/composed_tensor.h"
#include "core/model/formats/format.h"
#include "core/model/read_rectangle.h"
#include "core/model/weight_encoder.h"
#include "core/system/json.h"

namespace assay::test::trits {

inline constexpr NameEnding kEndings[] = {{".weight.trits", ".weight", StoredPart::codes},
                                          {".weight.step", ".weight", StoredPart::scale}};
inline constexpr std::string_view kMethods[] = {"trits"};

inline bool claims(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.codes_are("weight.trits");
}

inline void decode(const CheckpointReader& source, const LogicalTensor& tensor, std::uint64_t first,
                   std::uint64_t count, std::span<float> out) {
  const auto& tensors = source.checkpoint().tensors;
  const std::uint64_t row_bytes = tensor.columns / 4;
  const auto codes =
      read_rectangle<std::uint8_t>(source, tensors[tensor.codes], row_bytes, first, count, 0, row_bytes);
  const auto steps = read_floats(source, tensors[*tensor.scale], 1, first, count, 0, 1);
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const int code = codes[i / 4] >> (i % 4 * 2) & 3;
    out[i] = static_cast<float>(code - 1) * steps[i / tensor.columns];
  }
}

inline void resolve(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("weight.step");
  if (!tensor.scale || group.pieces.size() != 2 || codes.type != ElementType::U8 || codes.shape.size() != 2)
    return resolution.unknown_form(tensor);
  const StoredShape shape = {codes.shape[0], codes.shape[1] * 4};
  tensor.form = {.kind = FormKind::packed, .codes = codes.type, .block_columns = shape[1]};
  tensor.form.packed.codes.bits = 2;
  set_details(tensor, {.title = "TRITS", .decode = decode});
  if (!resolution.take_scale_type(tensor)) return;
  if (resolution.stored(*tensor.scale).shape != StoredShape{shape[0]})
    return resolution.bad_grid(tensor, shape);
  resolution.finish(tensor, shape);
}

inline std::vector<WeightFormat> sizes() {
  return {WeightFormat::in_blocks("trits", "TRITS, a scale each row", 2, 1, 0, 4)};
}
inline std::optional<WeightFormat> configured(const QuantizationConfig& config) {
  return says(config, "trits") ? weight_format("trits") : std::nullopt;
}

class Encoder : public WeightEncoder {
 public:
  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    return tensor.columns % 4 == 0 ? std::nullopt : std::optional<std::string>("rows are not whole bytes");
  }
  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    return {{".trits", ElementType::U8, {tensor.rows, tensor.columns / 4}, false},
            {".step", ElementType::F32, {tensor.rows}}};
  }
  std::string form(const LogicalTensor&) const override { return "TRITS"; }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns;
    out.begin(2);
    const auto codes = out.put(0, in.rows * columns / 4, in.first * columns / 4);
    std::fill(codes.begin(), codes.end(), std::byte{0});
    std::vector<float> steps(in.rows), after(in.values.size());
    for (std::uint64_t i = 0; i < in.values.size(); ++i)
      steps[i / columns] = std::max(steps[i / columns], std::abs(in.values[i]));
    for (std::uint64_t i = 0; i < in.values.size(); ++i) {
      const float step = steps[i / columns], trit = step == 0 ? 0 : std::nearbyint(in.values[i] / step);
      codes[i / 4] |= static_cast<std::byte>(static_cast<unsigned>(trit + 1) << (i % 4 * 2));
      after[i] = trit * step;
    }
    out.error.add(in.values, after);
    put_elements<float>(out, 1, steps, in.first * sizeof(float));
  }

  Json quantization_config(const IgnoredModules& ignored) const override {
    return {{"quant_method", "trits"}, {"modules_to_not_convert", ignored.names}};
  }
};
inline std::shared_ptr<const WeightEncoder> target(const TargetText& text) {
  return text.text == "trits" ? std::make_shared<const Encoder>() : nullptr;
}

inline const StoredFormat kFormat = {.name = "trits",
                                     .endings = kEndings,
                                     .methods = kMethods,
                                     .claims = claims,
                                     .resolve = resolve,
                                     .sizes = sizes,
                                     .configured = configured,
                                     .target = target,
                                     .target_names = "trits",
                                     .target_usage = "trits"};

}  // namespace assay::test::trits
