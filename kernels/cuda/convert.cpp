#include "kernels/cuda/convert.h"

#include "kernels/cuda/machine.h"

namespace assay::cuda {

std::optional<Number> number_of(ElementType type) {
  switch (type) {
    case ElementType::F32: return Number::f32;
    case ElementType::BF16: return Number::bf16;
    case ElementType::F16: return Number::f16;
    case ElementType::F8_E4M3: return Number::e4m3;
    case ElementType::F8_E5M2: return Number::e5m2;
    case ElementType::I8: return Number::i8;
    default: return std::nullopt;
  }
}

void set_scales(ConvertArguments& arguments, const WeightView& weight, Staging& staging) {
  arguments.scales = static_cast<const float*>(staging.scales(weight));
  arguments.scale_columns = static_cast<std::uint32_t>(weight.scale_columns);
  arguments.block_rows = static_cast<std::uint32_t>(weight.block_rows);
  arguments.block_columns = static_cast<std::uint32_t>(weight.block_columns);
  arguments.first_row = static_cast<std::uint32_t>(weight.first_row);
}

bool is_convertible(const WeightView& weight) {
  const std::optional<Number> number = number_of(weight.type);
  if (weight.codes == nullptr || !number) return false;
  if (weight.kind == FormKind::plain) return *number <= Number::f16;
  return weight.kind == FormKind::scaled && *number >= Number::e4m3 &&
         weight.scale_type == ElementType::F32 && weight.global == GlobalScale::none;
}

}  // namespace assay::cuda
