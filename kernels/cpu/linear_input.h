// A product's inputs as its way of multiplying reads them: packed, rounded to integers, in pairs. Products of one x by
// several weights may share them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/gemm_i16.h"
#include "kernels/cpu/int8_input.h"
#include "kernels/cpu/int_input.h"
#include "kernels/cpu/row_dot.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// Ways to multiply, kernels/cpu/linear.h.
enum class LinearWay : std::uint8_t {
  gemv,
  gemv_int24,
  gemv_int16,
  gemv_int8,
  gemv_bf16,
  gemm,
  gemm_int16,
  gemm_int8,
  gemm_bf16
};

class LinearInput {
 public:
  // x stays where it is.
  LinearInput(LinearWay way, const Matrix& x, const WeightView& weight, int jobs);
  // Whether it would be the same for this weight, of the same x.
  bool suits(LinearWay way, const WeightView& weight) const { return form_ == Form(way, weight); }

  // One of these is there.
  std::vector<DotInput> floats;
  std::vector<IntInput> ints;
  std::vector<Int8Input> bytes;
  std::optional<Bf16Tokens> bf16;
  std::vector<float> packed;
  std::optional<IntTiles> tiles;
  std::optional<Bf16Tiles> pairs;

 private:
  // All that inputs depend on beside x.
  struct Form {
    Form(LinearWay way, const WeightView& weight);
    bool operator==(const Form&) const = default;
    LinearWay way;
    FormKind kind;
    ElementType type;
  };
  void read_tokens(const Matrix& x, const WeightView& weight, int jobs);

  Form form_;
};

}  // namespace assay::cpu
