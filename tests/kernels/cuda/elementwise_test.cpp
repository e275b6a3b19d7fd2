// embedding, rope, activations, quantize and dequantize under the emulator.
#include "kernels/cuda/elementwise.cuh"

#include <limits>

#include "core/system/error.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/quantize.cuh"
#include "kernels/harness/made_weight.h"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

void add_elementwise(Registry& registry, cuda::Machine& machine) {
  cuda::add_elementwise_kernels(registry, machine,
                                {.rope = cuda::launch_rope,
                                 .activation = cuda::launch_activation,
                                 .dequantize = cuda::launch_dequantize});
}
void add_embedding(Registry& registry, cuda::Machine& machine) {
  cuda::add_embedding_kernels(registry, machine, {.convert = cuda::launch_convert});
}
void add_quantize(Registry& registry, cuda::Machine& machine) {
  cuda::add_quantize_kernels(registry, machine, {.quantize = cuda::launch_quantize});
}

TEST(CudaElementwise, PassesItsGrids) {
  EXPECT_GT(pass_emulated(89, add_elementwise), 200u);
}

const auto kAll = [](const CaseId&) { return true; };
TEST(CudaElementwise, PassAtTheirEdges) {
  EXPECT_GT(pass_emulated(89, add_elementwise, kAll, true), 15u);
  EXPECT_GE(pass_emulated(89, add_embedding, kAll, true), 3u);
  EXPECT_GT(pass_emulated(89, add_quantize, kAll, true), 60u);
}

TEST(CudaElementwise, RopeIsTakenWhereItsPartLiesWithinAHead) {
  const auto machine = cuda::emulated_machine(89);
  Registry registry;
  add_elementwise(registry, *machine);
  const auto taken = [&](std::size_t rows, std::size_t columns, const RopeCall& angles) {
    const RotaryCall call = {Matrix({}, Real::f32, rows, columns), angles};
    const auto& kernels = registry.of<RotaryCall>();
    EXPECT_EQ(kernels.size(), 1u);
    return kernels.front().takes({Precision::f32}, call);
  };
  const Matrix four({}, Real::f32, 3, 4);  // 8 columns of a head
  EXPECT_TRUE(taken(3, 20, {.heads = 2, .head_dim = 10, .offset = 2, .cos = four, .sin = four}));
  EXPECT_FALSE(taken(3, 20, {.heads = 2, .head_dim = 10, .offset = 3, .cos = four, .sin = four}));
  EXPECT_FALSE(taken(2, 20, {.heads = 2, .head_dim = 10, .offset = 2, .cos = four, .sin = four}));
  EXPECT_FALSE(taken(3, 21, {.heads = 2, .head_dim = 10, .offset = 2, .cos = four, .sin = four}));
}

TEST(CudaEmbedding, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_embedding), 15u);
}

// Every element type, scales whose blocks begin before the table's first row, and bfloat16 arithmetic.
TEST(CudaEmbedding, HasTheReferencesBits) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_embedding(registry, *machine);
  const Kernel<EmbeddingCall>& kernel = registry.of<EmbeddingCall>()[0];
  for (const char* form : {"F32", "BF16", "F16", "FP8_8x16", "INT8_CHANNEL", "INT8_3x7"}) {
    const MadeWeight table(weight_form(form), InputKind::zero_mean, {.rows = 40, .columns = 50, .seed = 3});
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      ReferenceOps ops(Arithmetic{precision}, 1);
      for (const WeightView& view : {table.view(), table.view().row_range(5, 30)}) {
        const EmbeddingCall call = {{29, 0, 7, 7, 13}, view};
        ASSERT_TRUE(kernel.takes(ops.arithmetic(), call)) << form;
        EXPECT_EQ(ops.download(kernel.run(ops, call)), ops.download(run_reference(ops, call))) << form;
      }
    }
  }
}

TEST(CudaEmbedding, IsOfTablesThatItCanDecode) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_embedding(registry, *machine);
  const auto takes = [&](Precision precision, const WeightView& table) {
    return registry.of<EmbeddingCall>()[0].takes(Arithmetic{precision}, {{1}, table});
  };
  const MadeWeight table(weight_form("BF16"), InputKind::zero_mean, {.rows = 4, .columns = 256});
  const MadeWeight blocks(weight_form("Q4_K"), InputKind::zero_mean, {.rows = 4, .columns = 256});
  EXPECT_TRUE(takes(Precision::f32, table.view()));
  EXPECT_FALSE(takes(Precision::f64, table.view()));
  EXPECT_FALSE(takes(Precision::f32, blocks.view()));
  WeightView turned = table.view(), wide = table.view();
  turned.input_major = true;
  EXPECT_FALSE(takes(Precision::f32, turned));
  wide.columns = std::size_t{1} << 32;
  EXPECT_FALSE(takes(Precision::f32, wide));
}

TEST(CudaEmbedding, RefusesATokenOutsideTheVocabulary) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_embedding(registry, *machine);
  const MadeWeight table(weight_form("BF16"), InputKind::zero_mean, {.rows = 4, .columns = 8});
  ReferenceOps ops(Arithmetic{Precision::f32}, 1);
  EXPECT_THROW(registry.of<EmbeddingCall>()[0].run(ops, {{1, 4}, table.view()}), Error);
}

TEST(CudaQuantize, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_quantize), 100u);
}

// The same bits as the reference: scales, and codes of every type.
TEST(CudaQuantize, HasTheReferencesBits) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_quantize(registry, *machine);
  for (const CaseId& id : cases_of<QuantizeCall>().grid()) {
    const auto operands = cases_of<QuantizeCall>().make(id);
    ReferenceOps ops(operands->arithmetic, 1);
    const QuantizeCall call = operands->call(ops);
    const QuantizedMatrix due = run_reference(ops, call);
    const QuantizedMatrix out = registry.of<QuantizeCall>()[0].run(ops, call);
    EXPECT_EQ(out.scales, due.scales) << id.text();
    EXPECT_EQ(out.codes, due.codes) << id.text();
  }
}

TEST(CudaQuantize, RefusesWhatEightBitsCannotHold) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_quantize(registry, *machine);
  ReferenceOps ops(Arithmetic{Precision::f32}, 1);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    std::vector<double> values(300, 1);
    values[257] = bad;
    const QuantizeCall call = {ops.upload(values, 1, 300), {}};
    EXPECT_THROW(registry.of<QuantizeCall>()[0].run(ops, call), Error);
  }
}

// What bfloat16 arithmetics round, they round where the reference does.
TEST(CudaElementwise, RoundsToBfloat16AsTheReferenceDoes) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_elementwise(registry, *machine);
  const Arithmetic bf16{Precision::bf16};
  ReferenceOps ops(bf16, 1);
  std::size_t compared = 0;
  for (const CaseId& id : cases_of<GatedActivationCall>().grid()) {
    const auto operands = cases_of<GatedActivationCall>().make(id);
    const GatedActivationCall call = operands->call(ops);
    // The reference's own 1 + erf and 1 + tanh cancel, in double: no measure of small results.
    const bool cancels =
        call.form.activation == Activation::gelu || call.form.activation == Activation::gelu_tanh;
    const auto& kernel = registry.of<GatedActivationCall>()[0];
    if (call.gate.empty() || cancels || !kernel.takes(bf16, call)) continue;
    const std::vector<double> due = ops.download(run_reference(ops, call));
    const std::vector<double> gate = ops.download(call.gate), up = ops.download(call.up);
    const std::vector<double> out = ops.download(kernel.run(ops, call));
    for (std::size_t i = 0; i < due.size(); ++i, ++compared) {
      EXPECT_EQ(out[i], bf16.round(out[i]));
      // float32 inside may fall on the other side of a tie, once a rounding stage; exponentials below the
      // smallest normal number may be flushed to zero.
      const double flushed = 0x1p-126 * (1 + std::fabs(gate[i])) * (1 + std::fabs(up[i]));
      EXPECT_LE(std::fabs(out[i] - due[i]), 4 * 0x1p-8 * std::fabs(due[i]) + flushed)
          << id.text() << " " << i;
    }
  }
  EXPECT_GT(compared, 100u);
}

}  // namespace
}  // namespace assay
