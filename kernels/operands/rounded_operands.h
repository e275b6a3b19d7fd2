// How a kernel rounds what it multiplies, where it does so of its own accord: declared beside it
// (kernels/registry/registry.h). The operation's meaning (refimpl/ops) knows nothing of it, and is what the
// whole error is measured against: beyond what these steps explain, the kernel is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

// Numbers become multiples of a step d, and are off by d/2 at most.
struct OperandRounding {
  enum class Step : std::uint8_t {
    power_of_two,     // 2^(⌊log₂ max⌋ - bits + 1): `bits` beside the sign, under a power of two
    part_of_largest,  // max / (2^bits - 1)
    e4m3,             // 2^-3 of the power of two below x, down to 2^-9, in units of max / 448
  };
  Step step;
  int bits;
  std::size_t group;  // inputs under one scale; 0: all of a token
  // As the kernel does it, in place: of a row, whose groups begin with it.
  void (*round)(std::span<float> row) = nullptr;

  friend bool operator==(const OperandRounding&, const OperandRounding&) = default;
};

struct RoundedOperands {
  OperandRounding inputs;                  // activations
  std::optional<OperandRounding> weights;  // nullopt: multiplied as they are stored

  friend bool operator==(const RoundedOperands&, const RoundedOperands&) = default;
};

// Of a product with this weight by kernels that do as int16.h or int8_block.h say; nullopt where the
// arithmetic does not ask for that, or the weight cannot be multiplied so.
std::optional<RoundedOperands> rounded_operands(const WeightView& weight, const Arithmetic& arithmetic);
// Of such a product as llama.cpp has it: under int8_block, inputs of weights in blocks of 256 have a scale for each 256.
std::optional<RoundedOperands> operands_of_ggml(const WeightView& weight, const Arithmetic& arithmetic);
// One of these two.
using OperandRule = std::optional<RoundedOperands> (*)(const WeightView& weight,
                                                       const Arithmetic& arithmetic);

}  // namespace assay
