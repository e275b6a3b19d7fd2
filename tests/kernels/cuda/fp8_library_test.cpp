// What stands around cuBLASLt's FP8 products, with plain loops in its place that read operands and scales
// where its documentation says they lie.
#include "kernels/cuda/fp8_library.h"

#include <map>

#include "kernels/cuda/library_linear.cuh"
#include "kernels/harness/made_weight.h"
#include "tests/kernels/cuda/emulated.h"

namespace assay::cuda {
namespace {

void plain_fp8_gemm(const Fp8GemmArguments& a, void* workspace, Stream) {
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  EXPECT_TRUE(workspace != nullptr && a.n % 16 == 0 && a.k % 16 == 0 && a.y_stride % 4 == 0);
  EXPECT_TRUE(a.x_stride % 16 == 0 && a.w_stride % 16 == 0 && aligned(a.x) && aligned(a.w) && aligned(a.y));
  const bool blocks = a.scales == Fp8Scales::blocks;
  EXPECT_TRUE(!blocks || (a.m % 4 == 0 && aligned(a.w_scales) && aligned(a.x_scales)));
  const std::uint64_t w_pitch = (a.k + 127) / 128 + (4 - (a.k + 127) / 128 % 4) % 4;
  for (std::uint64_t m = 0; m < a.m; ++m) {
    for (std::uint64_t n = 0; n < a.n; ++n) {
      double sum = 0;
      for (std::uint64_t k = 0; k < a.k; ++k) {
        const double x = to_float(e4m3{a.x[m * a.x_stride + k]}), w = to_float(e4m3{a.w[n * a.w_stride + k]});
        const double scale = blocks ? static_cast<double>(a.x_scales[k / 128 * a.m + m]) *
                                          static_cast<double>(a.w_scales[n / 128 * w_pitch + k / 128])
                                    : static_cast<double>(*a.w_scales);
        sum += x * w * scale;
      }
      a.y[m * a.y_stride + n] = static_cast<float>(sum);
    }
  }
}

void add_fp8(Registry& registry, Machine& machine) {
  add_fp8_library_kernels(registry, machine,
                          {.convert = launch_convert,
                           .quantize = launch_quantize,
                           .epilogue = launch_epilogue,
                           .gemm = plain_fp8_gemm,
                           .unavailable = [](Fp8Scales) { return std::string(); }});
}

std::map<std::string, CaseResult> examined(int sm, const std::string& id) {
  const std::unique_ptr<Machine> machine = emulated_machine(sm);
  Registry registry;
  add_fp8(registry, *machine);
  std::map<std::string, CaseResult> results;
  for (const auto& examiner : examiners(registry)) {
    if (examiner->op() != "linear") continue;
    for (CaseResult& r : examiner->examine(CaseId::parse(id), [](const KernelLabel&) { return true; }, {}))
      results[r.kernel] = r;
  }
  return results;
}

TEST(CudaFp8Library, PassesItsGrid) {
  const auto fp8 = [](const CaseId& id) { return id.word("act") == "fp8-block"; };
  EXPECT_GE(pass_emulated(90, add_fp8, fp8), 18u);  // one scale: 12; by blocks: 6
  EXPECT_GE(pass_emulated(89, add_fp8, fp8), 12u);
}

// One scale is taken as it is, more are not what the library knows; shapes that need no padding, and a bias.
TEST(CudaFp8Library, PassesOtherForms) {
  for (const char* id : {"linear:FP8_65536x65536:act=fp8-block:m=5:k=48:n=32:in=zero:seed=1",
                         "linear:FP8_65536x65536:act=fp8-block:m=3:k=200:n=33:in=heavy:seed=1",
                         "linear:FP8_128x128:act=fp8-block:m=8:k=512:n=256:in=zero:seed=1",
                         "linear:FP8_128x128:act=fp8-block:m=1:k=1664:n=16:in=positive:seed=1",
                         "linear:FP8_128x128:act=fp8-block:m=6:k=128:n=130:bias=1:in=zero:seed=1"}) {
    const auto results = examined(90, id);
    const CaseResult& one = results.at("library.cublaslt_fp8");
    EXPECT_EQ(one.status, CaseStatus::passed) << id << one.check << one.detail;
    const CaseResult& blocks = results.at("library.cublaslt_fp8_block");
    const bool by_128 = std::string_view(id).starts_with("linear:FP8_128x128");
    EXPECT_EQ(blocks.status, by_128 ? CaseStatus::passed : CaseStatus::skipped)
        << id << blocks.check << blocks.detail;
  }
}

// Codes of one scale are multiplied as they are stored, so that there is no more error than x's own.
TEST(CudaFp8Library, OneScaleIsNotRoundedAnew) {
  const MadeWeight weight(weight_form("FP8_65536x65536"), InputKind::zero_mean, {.rows = 20, .columns = 40});
  const std::unique_ptr<Machine> machine = emulated_machine(89);
  Registry registry;
  add_fp8(registry, *machine);
  ReferenceOps ops(Arithmetic{Precision::fp8_block}, 1);
  std::vector<double> ones(40 * 40);
  for (std::size_t i = 0; i < 40; ++i) ones[i * 41] = 1;
  // The largest number, whose code stays what it is under any scale of its own, is in one half of the rows.
  for (const std::size_t first : {0, 10}) {
    const LinearCall call = {ops.upload(ones, 40, 40), weight.view().row_range(first, 10), {}, {}};
    const std::vector<double> due = ops.download(run_reference(ops, call));
    std::size_t taken = 0;
    for (const Kernel<LinearCall>& kernel : registry.of<LinearCall>()) {
      if (!kernel.takes(ops.arithmetic(), call)) continue;
      ++taken;
      EXPECT_EQ(ops.download(kernel.run(ops, call)), due) << kernel.name;
    }
    EXPECT_GT(taken, 0u);
  }
}

TEST(CudaFp8Library, CountsIn32Bits) {
  const std::size_t most = (std::size_t{1} << 30) - 1;
  expect_no_linear_beyond(90, add_fp8, "linear:FP8_128x128:act=fp8-block:m=3:k=256:n=256:in=zero:seed=1",
                          most);
}

TEST(CudaFp8Library, SaysWhyItDoesNotTakeACall) {
  const char* by_64 = "linear:FP8_64x64:act=fp8-block:m=3:k=200:n=130:in=zero:seed=1";
  const char* by_128 = "linear:FP8_128x128:act=fp8-block:m=3:k=200:n=130:in=zero:seed=1";
  const auto said = [](int sm, const char* id, const char* kernel, const char* why) {
    const auto results = examined(sm, id);
    const CaseResult& r = results.at(kernel);
    EXPECT_EQ(r.status, CaseStatus::skipped);
    EXPECT_NE(r.detail.find(why), std::string::npos) << r.detail;
  };
  said(90, by_64, "library.cublaslt_fp8_block", "blocks are 128 × 128, not 64 × 64");
  said(89, by_128, "library.cublaslt_fp8_block", "on sm_90, not on sm_89");
  said(80, by_128, "library.cublaslt_fp8", "sm_80 has no tensor cores for FP8");
}

}  // namespace
}  // namespace assay::cuda
