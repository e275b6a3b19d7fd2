// What is not quantized; and codes whose scale is missing, which are said to be so.
#include <fmt/format.h>

#include "core/model/formats/all.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

void resolve_unscaled(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (!take_weight_scales(resolution, tensor, group)) return;
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (is_one_byte_float(codes.type)) {
    resolution.fault("stored.scale_missing", codes.name,
                     fmt::format("{} codes without a scale", name(codes.type)),
                     "complete the checkpoint: without scales these are not the weights");
  } else if (needs_scale(codes.type) && codes.shape.size() >= 2 &&
             (codes.name.ends_with("weight") || codes.name.ends_with("experts.gate_up_proj") ||
              codes.name.ends_with("experts.down_proj"))) {
    resolution.fault(
        "stored.scale_missing", codes.name,
        fmt::format("{} {} called a weight, without a scale", name(codes.type), shape_text(codes.shape)));
  } else {
    // A complex number is read as the two that it is of.
    const bool complex = codes.type == ElementType::C64;
    tensor.form = {.kind = FormKind::plain, .codes = complex ? ElementType::F32 : codes.type};
    StoredShape shape = codes.shape;
    if (complex) shape.push_back(2);
    resolution.finish(tensor, shape);
  }
}

bool claims_unscaled(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.plain.has_value();
}

std::vector<WeightFormat> plain_sizes() {
  return {WeightFormat::plain("bf16", "BF16", 2)};
}

}  // namespace

const StoredFormat kPlain = {
    .name = "plain", .claims = claims_unscaled, .resolve = resolve_unscaled, .sizes = plain_sizes};

}  // namespace assay::formats
