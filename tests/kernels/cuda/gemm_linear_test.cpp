// linear's kernels under the emulator: every element type, both tensor units, ragged shapes, no rows, one
// input, and all that examine() demands.
#include <map>

#include "tests/kernels/cuda/emulated.h"
#include "tests/kernels/cuda/gemm_emulated.h"

namespace assay {
namespace {

void add_linear(Registry& registry, cuda::Machine& machine) {
  cuda::add_linear_kernels(registry, machine, emulated_gemm_launchers());
}

// Of what only differs in the kind of inputs, one turn each: the emulator is slow.
bool in_turn(const CaseId& id, std::size_t turns) {
  std::size_t hash = 0;
  for (const char c : id.text()) hash = hash * 31 + static_cast<unsigned char>(c);
  return hash % turns == 0;
}

std::size_t pass(int sm, const std::function<bool(const CaseId&)>& wanted) {
  return pass_emulated(sm, add_linear,
                       [&](const CaseId& id) { return id.op() == "linear" && is_small_product(id) && wanted(id); });
}

bool eight_bits(const CaseId& id) {
  const std::string act = id.word("act", "f32");
  return act == "fp8-block" || act == "int8";
}

TEST(CudaLinear, QuantizedActivationsOnHopper) {
  EXPECT_GT(pass(90, eight_bits), 40u);
}
TEST(CudaLinear, QuantizedActivationsOnAda) {
  EXPECT_GT(pass(89, eight_bits), 20u);
}
TEST(CudaLinear, QuantizedActivationsAsFloat16OnAmpere) {
  EXPECT_GT(pass(80, [](const CaseId& id) { return id.word("act", "f32") == "fp8-block"; }), 10u);
}
TEST(CudaLinear, Bfloat16Activations) {
  EXPECT_GT(pass(90, [](const CaseId& id) { return id.word("act", "f32") == "bf16"; }), 12u);
}
TEST(CudaLinear, Float32ActivationsTimesStoredWeights) {
  EXPECT_GT(pass(89, [](const CaseId& id) { return id.word("act", "f32") == "f32" && in_turn(id, 3); }), 40u);
}

}  // namespace
}  // namespace assay
