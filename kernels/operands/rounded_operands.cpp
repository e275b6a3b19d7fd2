#include "kernels/operands/rounded_operands.h"

#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"

namespace assay {
namespace {

using Step = OperandRounding::Step;

template <int kBits>
void to_int16(std::span<float> row) {
  round_to_int16(row, kBits);
}

// What the formats are is stated here once more: a wrong constant in what rounds does not excuse itself.
constexpr OperandRounding kInt8BlockInputs = {Step::part_of_largest, 7, 32, round_to_int8_block};
constexpr OperandRounding kInt8SuperBlockInputs = {Step::part_of_largest, 7, 256, round_to_int8_super_block};
constexpr OperandRounding kInt16Inputs = {Step::power_of_two, 15, 32, to_int16<15>};
constexpr OperandRounding kInt16InputsOfFloats = {Step::power_of_two, 14, 32, to_int16<14>};
constexpr OperandRounding kInt16Weights = {Step::power_of_two, 12, 32, to_int16<kInt16WeightBits>};

}  // namespace

std::optional<RoundedOperands> rounded_operands(const WeightView& weight, const Arithmetic& arithmetic) {
  if (takes_int8_block(weight, arithmetic)) return RoundedOperands{kInt8BlockInputs, {}};
  if (!takes_int16(weight, arithmetic)) return std::nullopt;
  if (has_int16_floats(weight)) return RoundedOperands{kInt16InputsOfFloats, kInt16Weights};
  return RoundedOperands{kInt16Inputs, {}};
}

std::optional<RoundedOperands> operands_of_ggml(const WeightView& weight, const Arithmetic& arithmetic) {
  const bool is_block = weight.codes != nullptr && weight.kind == FormKind::plain && !weight.input_major;
  if (arithmetic.precision == Precision::int8_block && is_block &&
      info(weight.type).block_elements == kInt8SuperGroup)
    return RoundedOperands{kInt8SuperBlockInputs, {}};
  return rounded_operands(weight, arithmetic);
}

}  // namespace assay
