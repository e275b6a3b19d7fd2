// Kernels that reduce a row, and the gate, under the emulator.
#include "kernels/cuda/norm.cuh"

#include "kernels/cuda/gate.cuh"
#include "kernels/cuda/softmax.cuh"
#include "tests/kernels/cuda/emulated.h"
#include "tests/support/fenced.h"

namespace assay {
namespace {

void add_norm(Registry& registry, cuda::Machine& machine) {
  cuda::add_norm_kernels(registry, machine,
                         {.rms_norm = cuda::launch_rms_norm, .layer_norm = cuda::launch_layer_norm});
}
void add_softmax(Registry& registry, cuda::Machine& machine) {
  cuda::add_softmax_kernels(registry, machine, {.softmax = cuda::launch_softmax});
}
void add_gate(Registry& registry, cuda::Machine& machine) {
  cuda::add_gate_kernels(registry, machine, {.gate = cuda::launch_gate});
}

TEST(CudaNorm, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_norm), 110u);
}
TEST(CudaSoftmax, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_softmax), 20u);
}
TEST(CudaGate, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_gate), 100u);
}

const auto kAll = [](const CaseId&) { return true; };
TEST(CudaNorm, PassesAtItsEdges) {
  EXPECT_GT(pass_emulated(89, add_norm, kAll, true), 70u);
}
TEST(CudaSoftmax, PassesAtItsEdges) {
  EXPECT_GT(pass_emulated(89, add_softmax, kAll, true), 35u);
}
TEST(CudaGate, PassesAtItsEdges) {
  EXPECT_GT(pass_emulated(89, add_gate, kAll, true), 35u);
}

// Logits of the last token end where memory does.
TEST(CudaGate, ReadsNoLogitBehindTheLast) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  add_gate(registry, *machine);
  for (const std::size_t experts : {32, 33, 64}) {
    test::Fenced<float> logits(5 * experts);
    for (std::size_t i = 0; i < 5 * experts; ++i) logits.all()[i] = static_cast<float>(i * 37 % 101) / 64;
    ReferenceOps ops(Arithmetic{Precision::f32}, 1);
    const Matrix matrix(std::shared_ptr<void>(logits.data(), [](void*) {}), Real::f32, 5, experts);
    const MoeGateCall call = {matrix, {}, {.top_k = 3}};
    const Routing due = run_reference(ops, call);
    EXPECT_EQ(registry.of<MoeGateCall>().front().run(ops, call).experts, due.experts);
  }
}

// The grid's results have the strides of their arguments; here they do not.
TEST(CudaNorm, ReadsColumnsOfAWiderMatrix) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(89);
  Registry registry;
  cuda::add_norm_kernels(registry, *machine, {.rms_norm = cuda::launch_rms_norm, .layer_norm = nullptr});
  cuda::add_softmax_kernels(registry, *machine, {.softmax = cuda::launch_softmax});
  ReferenceOps ops(Arithmetic{Precision::f32}, 1);
  for (const std::size_t columns : {61, 1500}) {
    std::vector<double> wide(5 * (columns + 9));
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = std::sin(static_cast<double>(i));
    const Matrix part = ops.upload(wide, 5, columns + 9).part(4, columns);
    const Matrix alone = ops.upload(ops.download(part), 5, columns);
    const std::string id = "rms_norm:F32:m=5:n=" + std::to_string(columns);
    const auto operands = cases_of<RmsNormCall>().make(CaseId::parse(id));
    RmsNormCall norm = operands->call(ops);
    const auto normed = [&](const Matrix& x) {
      norm.x = x;
      return ops.download(registry.of<RmsNormCall>()[0].run(ops, norm));
    };
    EXPECT_EQ(normed(part), normed(alone));
    const auto soft = [&](const Matrix& x) {
      return ops.download(registry.of<SoftmaxCall>()[0].run(ops, {x}));
    };
    EXPECT_EQ(soft(part), soft(alone));
  }
}

}  // namespace
}  // namespace assay
