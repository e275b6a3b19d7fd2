// What stands around cuBLAS, with plain loops in its place: operands, padding, scales, bias, rounding.
#include "kernels/cuda/library_linear.cuh"

#include "kernels/harness/made_weight.h"
#include "tests/kernels/cuda/emulated.h"

namespace assay::cuda {
namespace {

template <class X>
double element_of(const void* data, std::uint64_t i) {
  if constexpr (std::is_same_v<X, bf16>)
    return to_float(static_cast<const bf16*>(data)[i]);
  else
    return static_cast<const X*>(data)[i];
}

template <class X, class Y>
void plain_product(const GemmArguments& a) {
  for (std::uint64_t m = 0; m < a.m; ++m) {
    for (std::uint64_t n = 0; n < a.n; ++n) {
      double sum = 0;
      for (std::uint64_t k = 0; k < a.k; ++k) {
        const std::uint64_t at = a.input_major ? k * a.w_stride + n : n * a.w_stride + k;
        sum += element_of<X>(a.x, m * a.x_stride + k) * element_of<X>(a.w, at);
      }
      static_cast<Y*>(a.y)[m * a.y_stride + n] = static_cast<Y>(sum);
    }
  }
}

void plain_gemm(const GemmArguments& a, Stream) {
  switch (a.kind) {
    case GemmArguments::Kind::f32: return plain_product<float, float>(a);
    case GemmArguments::Kind::bf16: return plain_product<bf16, float>(a);
    case GemmArguments::Kind::i8:
      // What cuBLAS asks of integer products.
      EXPECT_TRUE(a.n % 4 == 0 && a.k % 4 == 0 && a.x_stride % 16 == 0 && a.w_stride % 16 == 0);
      return plain_product<std::int8_t, std::int32_t>(a);
    case GemmArguments::Kind::tf32: break;
  }
  auto rounded = [](const void* data, std::uint64_t i) {
    return static_cast<double>(float_of(to_tf32(static_cast<const float*>(data)[i])));
  };
  for (std::uint64_t m = 0; m < a.m; ++m) {
    for (std::uint64_t n = 0; n < a.n; ++n) {
      double sum = 0;
      for (std::uint64_t k = 0; k < a.k; ++k) {
        const std::uint64_t at = a.input_major ? k * a.w_stride + n : n * a.w_stride + k;
        sum += rounded(a.x, m * a.x_stride + k) * rounded(a.w, at);
      }
      static_cast<float*>(a.y)[m * a.y_stride + n] = static_cast<float>(sum);
    }
  }
}

void add_linear(Registry& registry, Machine& machine) {
  add_library_linear_kernels(registry, machine,
                             {.convert = launch_convert,
                              .epilogue = launch_epilogue,
                              .quantize = launch_quantize,
                              .gemm = plain_gemm,
                              .unavailable = [] { return std::string(); }});
}

TEST(CudaLibraryLinear, PassesTheSmallCasesOfItsGrid) {
  const auto small = [](const CaseId& id) {
    return id.number("m") * id.number("k") * id.number("n") <= 300'000;
  };
  EXPECT_GT(pass_emulated(90, add_linear, small), 150u);
}

// 1 + 2^-13 is a float32, and 1 as tf32.
TEST(CudaLibraryLinear, Tf32IsWhatItSays) {
  const std::unique_ptr<Machine> machine = emulated_machine(90);
  Registry registry;
  add_linear(registry, *machine);
  const MadeWeight ones(std::vector<float>(8, 1.0F), 1, 8);
  ReferenceOps ops(Arithmetic{Precision::f32}, 1);
  const std::vector<double> x(8, 1 + 0x1p-13);
  std::size_t found = 0;
  for (const Kernel<LinearCall>& kernel : registry.of<LinearCall>()) {
    const bool tf32 = kernel.name == "library.cublas_tf32";
    if (!tf32 && kernel.name != "library.cublas_f32") continue;
    ++found;
    const Matrix y = kernel.run(ops, {ops.upload(x, 1, 8), ones.view(), {}});
    EXPECT_EQ(ops.download(y), std::vector<double>{tf32 ? 8 : 8 + 0x1p-10}) << kernel.name;
  }
  EXPECT_EQ(found, 2u);
}

TEST(CudaLibraryLinear, CountsIn32Bits) {
  const std::size_t most = (std::size_t{1} << 31) - 1;
  for (const char* id : {"linear:F32:m=3:k=256:n=256:in=zero:seed=1",
                         "linear:INT8_CHANNEL:act=int8:m=3:k=256:n=256:in=zero:seed=1"})
    expect_no_linear_beyond(90, add_linear, id, most);
}

}  // namespace
}  // namespace assay::cuda
