// Matrix products under the emulator: every element type, both tensor units, ragged shapes, no rows, one
// input, experts in groups, and all that examine() demands.
#include <cmath>

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/gemm_mma_launch.cuh"
#include "kernels/cuda/gemm_prepare_launch.cuh"
#include "kernels/cuda/gemm_wgmma_launch.cuh"
#include "kernels/cuda/gemv_launch.cuh"
#include "kernels/harness/made_weight.h"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

cuda::GemmLaunchers emulated_launchers() {
  using namespace cuda;
  return {.mma = launch_mma,
          .wgmma = launch_wgmma,
          .gemv = launch_gemv,
          .planes = launch_planes,
          .quantize_fp8 = launch_quantize_fp8,
          .quantize_int8 = launch_quantize_int8,
          .align_rows = launch_align_rows,
          .unpack_q8_0 = launch_unpack_q8_0,
          .activation = launch_activation,
          .combine = launch_combine};
}

// The emulator's tensor cores round once, so that nothing of what the hardware's may cut off is allowed here.
template <class Call>
void add_strictly(Registry& registry, const Registry& lenient) {
  for (Kernel<Call> kernel : lenient.of<Call>()) {
    kernel.roundoffs = {};
    registry.add(std::move(kernel));
  }
}
void add_linear(Registry& registry, cuda::Machine& machine) {
  Registry lenient;
  cuda::add_gemv_kernel(lenient, machine, emulated_launchers());
  cuda::add_linear_kernels(lenient, machine, emulated_launchers());
  add_strictly<LinearCall>(registry, lenient);
}
void add_moe(Registry& registry, cuda::Machine& machine) {
  Registry lenient;
  cuda::add_moe_kernels(lenient, machine, emulated_launchers());
  add_strictly<FusedMoeCall>(registry, lenient);
}

// Small enough for the emulator, which computes whole tiles.
bool is_small(const CaseId& id) {
  const auto up = [](std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; };
  return up(id.number("m", 1), 64) * up(id.number("n", 1), 128) * id.number("k", 1) <= 64 * 384 * 300;
}

std::size_t pass_linear(int sm, const std::function<bool(const CaseId&, std::string_view act)>& wanted) {
  return pass_emulated(sm, add_linear, [&](const CaseId& id) {
    return id.op() == "linear" && is_small(id) && wanted(id, id.word("act", "f32"));
  });
}

TEST(CudaGemm, QuantizedActivationsOnHopper) {
  EXPECT_GT(pass_linear(90, [](auto&, auto act) { return act == "fp8-block" || act == "int8"; }), 20u);
}
TEST(CudaGemm, QuantizedActivationsOnAda) {
  EXPECT_GT(pass_linear(89, [](auto&, auto act) { return act == "fp8-block" || act == "int8"; }), 15u);
}
TEST(CudaGemm, Bfloat16Activations) {
  EXPECT_GT(pass_linear(90, [](auto&, auto act) { return act == "bf16"; }), 6u);
}
TEST(CudaGemm, Float32ActivationsTimesStoredWeights) {
  EXPECT_GT(pass_linear(89, [](auto& id, auto act) { return act == "f32" && in_turn(id, 6); }), 20u);
}
// One of a few: whole tiles are computed, in the emulator as on the device.
TEST(CudaGemm, PassesAtItsEdges) {
  const auto wanted = [](const CaseId& id) {
    return id.op() == "linear" && is_small(id) && id.number("k", 1) < 2100 && in_turn(id, 3);
  };
  EXPECT_GT(pass_emulated(90, add_linear, wanted, true), 40u);
}
// How many of these cases kernels called so pass; none may fail.
std::size_t pass_cases(std::string_view kernel, std::initializer_list<const char*> ids,
                       const cuda::DeviceLimits& limits = *cuda::limits_of(90)) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(limits);
  Registry registry;
  add_linear(registry, *machine);
  std::size_t passed = 0;
  for (const auto& examiner : examiners(registry)) {
    if (examiner->op() != "linear") continue;
    const auto wanted = [&](const KernelLabel& k) { return k.name.starts_with(kernel); };
    for (const char* id : ids) {
      for (const CaseResult& r : examiner->examine(CaseId::parse(id), wanted, {})) {
        if (r.status == CaseStatus::passed) ++passed;
        EXPECT_TRUE(r.status == CaseStatus::passed || r.status == CaseStatus::skipped)
            << r.kernel << " " << r.id << ": " << r.check << ": " << r.detail;
      }
    }
  }
  return passed;
}

// So many inputs that every stage of the ring in shared memory is filled anew, twice.
TEST(CudaGemm, RingsOfStagesComeRound) {
  EXPECT_EQ(pass_cases("cuda.", {"linear:FP8_128x128:act=fp8-block:m=2:k=2000:n=5:in=zero:seed=1",
                                 "linear:FP8_64x64:act=fp8-block:m=2:k=2000:n=5:in=zero:seed=1",
                                 "linear:FP8_64x64:act=fp8-block:m=2:k=200:n=100:in=zero:seed=1",
                                 "linear:INT8_CHANNEL:act=int8:m=2:k=1700:n=5:in=zero:seed=1",
                                 "linear:BF16:act=bf16:m=2:k=1000:n=5:in=zero:seed=1",
                                 "linear:Q8_0:m=2:k=704:n=5:in=zero:seed=1"}),
            23u);
}
// Tiles of 128 × 128 are for calls that fill the device with them: here it has one processor.
TEST(CudaGemm, LargeTiles) {
  for (const int sm : {89, 90}) {
    cuda::DeviceLimits limits = *cuda::limits_of(sm);
    limits.sm_count = 1;
    EXPECT_EQ(pass_cases("cuda.",
                         {"linear:FP8_128x128:act=fp8-block:m=130:k=150:n=133:in=zero:seed=1",
                          "linear:INT8_CHANNEL:act=int8:m=130:k=150:n=133:in=zero:seed=1",
                          "linear:BF16:act=bf16:m=130:k=150:n=133:in=zero:seed=1",
                          "linear:Q8_0:m=70:k=96:n=133:in=zero:seed=1"},
                         limits),
              sm == 90 ? 9u : 5u);
  }
}

// DeepSeek-V3's inputs, of which every block and every scale counts: sums without rounding.
TEST(CudaGemm, LongSumsInEightBits) {
  EXPECT_EQ(pass_cases("cuda.fp8", {"linear:FP8_128x128:act=fp8-block:m=2:k=7168:n=5:in=exact:seed=1",
                                    "linear:FP8_128x128:act=fp8-block:m=2:k=7168:n=5:in=zero:seed=1"}),
            8u);
  EXPECT_EQ(pass_cases("cuda.int8", {"linear:INT8_CHANNEL:act=int8:m=2:k=7168:n=5:in=exact:seed=1"}), 1u);
}
// So many that the rows of W are cut, the last piece being shorter.
TEST(CudaGemm, VectorsInSplits) {
  EXPECT_EQ(pass_cases("cuda.gemv", {"linear:F32:m=2:k=1100:n=5:in=zero:seed=1",
                                     "linear:BF16:m=1:k=2100:n=6:in=zero:seed=1",
                                     "linear:INT8_CHANNEL:act=int8:m=3:k=4200:n=5:in=zero:seed=1",
                                     "linear:Q8_0:m=8:k=2112:n=3:in=zero:seed=1"}),
            4u);
}
// q, k and v in one launch: each as by itself, biased or not, split or not, for one token and for as many as there may be.
TEST(CudaGemm, VectorsOfOneXGoTogether) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(90);
  int launches = 0;
  static int* counted;
  counted = &launches;
  cuda::GemmLaunchers launchers = emulated_launchers();
  launchers.gemv = [](const cuda::GemvPlan& plan, cuda::Codes codes, const cuda::GemvProducts& products,
                      cuda::Stream stream) {
    ++*counted;
    cuda::launch_gemv(plan, codes, products, stream);
  };
  Registry registry;
  cuda::add_gemv_kernel(registry, *machine, launchers);
  const Kernel<LinearCall>& gemv = registry.of<LinearCall>().front();
  const auto made = [](std::string_view form, std::size_t rows, std::size_t columns, std::uint64_t seed) {
    return std::make_unique<MadeWeight>(weight_form(std::string(form)), InputKind::zero_mean,
                                        FillOptions{.rows = rows, .columns = columns, .seed = seed});
  };
  struct Together {
    std::vector<std::string> forms;
    Precision precision;
    std::size_t columns;
    int launches;
  };
  for (const Together& t : {Together{{"BF16", "BF16", "BF16"}, Precision::bf16, 96, 1},
                            Together{{"BF16", "BF16"}, Precision::bf16, 2100, 1},
                            Together{{"Q8_0", "Q8_0", "Q8_0", "Q8_0"}, Precision::f32, 64, 1},
                            Together{{"BF16", "F16", "BF16"}, Precision::bf16, 96, 3},
                            Together{std::vector<std::string>(5, "F32"), Precision::f32, 33, 5}}) {
    std::vector<std::unique_ptr<MadeWeight>> weights;
    for (std::size_t i = 0; i < t.forms.size(); ++i)
      weights.push_back(made(t.forms[i], 5 + 20 * i, t.columns, 40 + i));
    const auto bias = made("F32", 1, 25, 7);
    for (const std::size_t tokens : {1, 3, 8}) {
      ReferenceOps ops(Arithmetic{t.precision}, 1);
      std::vector<float> x(tokens * t.columns);
      fill_inputs(InputKind::zero_mean, {.rows = tokens, .columns = t.columns, .seed = 9}, x);
      const Matrix in = ops.upload(std::vector<double>(x.begin(), x.end()), tokens, t.columns);
      std::vector<LinearCall> calls;
      for (const auto& weight : weights) calls.push_back({in, weight->view(), {}});
      calls[1].bias = bias->view();
      launches = 0;
      const std::vector<Matrix> together = gemv.run_together(ops, calls);
      EXPECT_EQ(launches, t.launches) << t.forms[0] << " " << tokens;
      ASSERT_EQ(together.size(), calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i)
        EXPECT_EQ(ops.download(together[i]), ops.download(gemv.run(ops, calls[i])))
            << t.forms[i] << " " << i << ", " << tokens;
    }
  }
}

TEST(CudaGemm, Experts) {
  // Of each form a small one, and what is special: fused gates, all experts for all tokens, one expert.
  const auto wanted = [](const CaseId& id) {
    const bool ragged = id.number("hidden") < 64, few = id.number("m") <= 1;
    return id.op() == "fused_moe" && (ragged || (few && in_turn(id, 4)));
  };
  EXPECT_GT(pass_emulated(89, add_moe, wanted), 4u);
  // Eight experts a token, 65 tokens an expert.
  const auto counts = [](const CaseId& id) {
    return id.op() == "fused_moe" && id.word("way", "sparse") == "sparse" &&
           (id.number("m") == 65 || (id.number("top") == 8 && id.number("experts") <= 16));
  };
  EXPECT_GT(pass_emulated(89, add_moe, counts, true), 2u);
}

// Under arithmetics that round on the way no bound is derived; the yardstick is the reference's own error in
// the same arithmetic.
void expect_within_yardstick(int sm, std::string_view form, Precision precision, std::size_t kernels) {
  constexpr std::size_t kTokens = 9, kExperts = 5, kTop = 2, kHidden = 160, kWidth = 96;
  const Arithmetic arithmetic{precision};
  std::uint64_t seed = 7;
  std::vector<MadeWeightPtr> made;
  const auto weights = [&](std::size_t rows, std::size_t columns) {
    std::vector<WeightView> views;
    for (std::size_t e = 0; e < kExperts; ++e) {
      made.push_back(std::make_shared<MadeWeight>(
          weight_form(form), InputKind::zero_mean,
          FillOptions{.rows = rows, .columns = columns, .seed = ++seed, .halvings = 3}));
      views.push_back(made.back()->view());
    }
    return views;
  };
  ExpertWeights experts;
  experts.gate = weights(kWidth, kHidden);
  experts.up = weights(kWidth, kHidden);
  experts.down = weights(kHidden, kWidth);
  const Filled x = filled(arithmetic, InputKind::zero_mean, {.rows = kTokens, .columns = kHidden, .seed = 3});
  Filled shares = {kTokens, kTop, {}};
  std::vector<std::int32_t> chosen;
  for (std::int32_t t = 0; t < static_cast<std::int32_t>(kTokens); ++t) {
    for (const std::int32_t e : {t % 4, (t + 1 + t / 4) % 4}) chosen.push_back(e);  // nobody goes to expert 4
    for (const double share : {0.625, 0.375}) shares.values.push_back(share);
  }
  const auto run = [&](const Arithmetic& a, const auto& compute) {
    ReferenceOps ops(a, 1);
    const FusedMoeCall call = {upload(ops, x), {kTop, chosen, upload(ops, shares)}, experts};
    return ops.download(compute(ops, call));
  };
  const auto reference = [](ReferenceOps& ops, const FusedMoeCall& call) { return run_reference(ops, call); };
  const std::vector<double> truth = run(Arithmetic{Precision::f64}, reference);
  const auto error = [&](const std::vector<double>& y) {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += (y[i] - truth[i]) * (y[i] - truth[i]);
    return std::sqrt(sum);
  };
  const double yardstick = error(run(arithmetic, reference));
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(sm);
  Registry registry;
  add_moe(registry, *machine);
  std::size_t ran = 0;
  for (const Kernel<FusedMoeCall>& kernel : registry.of<FusedMoeCall>()) {
    bool taken = true;
    const std::vector<double> y = run(arithmetic, [&](ReferenceOps& ops, const FusedMoeCall& call) {
      taken = kernel.takes(arithmetic, call);
      return taken ? kernel.run(ops, call) : call.x;
    });
    if (!taken) continue;
    ++ran;
    EXPECT_TRUE(error(y) <= 2 * yardstick) << kernel.name << ": " << error(y) << " against " << yardstick;
  }
  EXPECT_EQ(ran, kernels);
}

TEST(CudaGemm, ExpertsInFp8) {
  expect_within_yardstick(90, "FP8_128x128", Precision::fp8_block, 4);
  expect_within_yardstick(80, "FP8_64x64", Precision::fp8_block, 1);
}
TEST(CudaGemm, ExpertsInInt8) {
  expect_within_yardstick(89, "INT8_CHANNEL", Precision::int8, 1);
}
TEST(CudaGemm, ExpertsInBfloat16) {
  expect_within_yardstick(90, "BF16", Precision::bf16, 3);
}

}  // namespace
}  // namespace assay
