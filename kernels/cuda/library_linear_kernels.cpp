// cuBLAS's products as kernels of the registry: what is converted, multiplied and finished for each
// arithmetic.
#include <limits>
#include <optional>

#include "core/system/error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/registration.h"
#include "kernels/cuda/stored_argument.h"
#include "kernels/operands/rounded_operands.h"

namespace assay::cuda {
namespace {

using Kind = GemmArguments::Kind;

// cuBLAS's integer products want rows of 16 bytes and results of 4 columns; 16 of all serves both.
constexpr std::size_t kIntegerStep = 16;

std::size_t padded(std::size_t n, Kind kind) {
  return kind == Kind::i8 ? round_up(n, kIntegerStep) : n;
}

// How a call is multiplied; nullopt: not by these kernels.
std::optional<Kind> kind_of(const Arithmetic& arithmetic, const LinearCall& call) {
  const WeightView& w = call.weight;
  const std::optional<Number> number = number_of(w.type);
  if (w.codes == nullptr || !number || call.x.columns() != w.inputs()) return std::nullopt;
  if (call.bias && !is_stored_vector(call.bias)) return std::nullopt;
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (w.rows > kMost || w.columns > kMost || call.x.rows() > kMost) return std::nullopt;
  const bool plain = w.kind == FormKind::plain && *number <= Number::f16;
  const bool scaled = w.kind == FormKind::scaled && *number >= Number::e4m3 &&
                      w.scale_type == ElementType::F32 && w.global == GlobalScale::none && !w.input_major;
  switch (arithmetic.precision) {
    case Precision::int8_block:
    case Precision::int16:  // elsewhere as f32
      if (rounded_operands(w, arithmetic)) return std::nullopt;
      [[fallthrough]];
    case Precision::f32: return plain || scaled ? std::optional(Kind::f32) : std::nullopt;
    case Precision::bf16: return plain || scaled ? std::optional(Kind::bf16) : std::nullopt;
    case Precision::int8:
      if (scaled && *number == Number::i8 && w.scale_columns == 1 && w.block_rows == 1 && !w.weight_only)
        return Kind::i8;
      return plain ? std::optional(Kind::bf16) : std::nullopt;
    case Precision::fp8_block: return plain ? std::optional(Kind::bf16) : std::nullopt;
    case Precision::f64: break;
  }
  return std::nullopt;
}

struct Shape {
  std::size_t m, n, k;
  explicit Shape(const LinearCall& call)
      : m(call.x.rows()), n(call.weight.outputs()), k(call.weight.inputs()) {}
};

std::vector<LaunchPlan> plans_of_library_linear(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                                const LinearCall& call) {
  const std::optional<Kind> kind = kind_of(arithmetic, call);
  if (!kind) return {};
  const Shape s(call);
  // cuBLAS plans its own products; these are ours around it.
  LaunchPlan weight = plan_convert(limits, {.rows = call.weight.rows, .columns = call.weight.columns});
  LaunchPlan result = plan_epilogue(limits, {.rows = s.m, .columns = s.n});
  return {std::move(weight), std::move(result)};
}

class LibraryProduct {
 public:
  LibraryProduct(Machine& machine, Ops& ops, const LinearCall& call, const LibraryLinearLaunchers& launchers,
                 Kind kind)
      : machine_(machine), ops_(ops), call_(call), launch_(launchers), kind_(kind), s_(call) {}

  Matrix run() {
    Matrix y = ops_.allocate(s_.m, s_.n);
    if (y.empty()) return y;
    staging_ = machine_.stage();
    float* const out = staging_->out(y);
    const bool integers = kind_ == Kind::i8;
    GemmArguments gemm = {.kind = kind_,
                          .input_major = call_.weight.input_major,
                          .m = static_cast<std::uint32_t>(s_.m),
                          .n = static_cast<std::uint32_t>(padded(s_.n, kind_)),
                          .k = static_cast<std::uint32_t>(padded(s_.k, kind_)),
                          .y = out,
                          .y_stride = y.stride()};
    weight_operand(gemm);
    std::uint32_t unquantizable = 0;
    const float* x_scales = nullptr;
    if (integers) {
      x_scales = quantized_operand(gemm, unquantizable);
      gemm.y = staging_->scratch(s_.m * gemm.n * sizeof(std::int32_t));
      gemm.y_stride = gemm.n;
    } else {
      activation_operand(gemm);
    }
    launch_.gemm(gemm, staging_->stream());
    finish(gemm, out, y.stride(), x_scales);
    staging_->finish();
    if (unquantizable != 0)
      throw Error::input("activations became NaN or infinite: 8 bits cannot hold them")
          .remedy("look where with --dump, in f32");
    return y;
  }

 private:
  Number multiplied() const {
    return kind_ == Kind::bf16 ? Number::bf16 : kind_ == Kind::i8 ? Number::i8 : Number::f32;
  }

  void convert(ConvertArguments a) {
    const ElementwiseShape shape = {.rows = a.padded_rows, .columns = a.padded_columns};
    launch_.convert(plan_convert(machine_.limits(), shape), a, staging_->stream());
  }

  void weight_operand(GemmArguments& gemm) {
    const WeightView& w = call_.weight;
    const Number stored = *number_of(w.type);
    const std::size_t stride = w.row_bytes / bytes_of(stored);
    const bool scaled = w.kind == FormKind::scaled && kind_ != Kind::i8;  // i8's come behind the product
    const std::size_t rows = w.input_major ? w.rows : gemm.n, columns = w.input_major ? w.columns : gemm.k;
    gemm.w = staging_->codes(w);
    gemm.w_stride = stride;
    const bool as_it_is = stored == multiplied() && !scaled && rows == w.rows && columns == w.columns &&
                          (kind_ != Kind::i8 || stride % kIntegerStep == 0);
    if (as_it_is) return;
    ConvertArguments a = {.from = gemm.w,
                          .from_type = stored,
                          .from_stride = stride,
                          .to = staging_->scratch(rows * columns * bytes_of(multiplied())),
                          .to_type = multiplied(),
                          .to_stride = columns,
                          .rows = static_cast<std::uint32_t>(w.rows),
                          .columns = static_cast<std::uint32_t>(w.columns),
                          .padded_rows = static_cast<std::uint32_t>(rows),
                          .padded_columns = static_cast<std::uint32_t>(columns)};
    if (scaled) set_scales(a, w, *staging_);
    convert(a);
    gemm.w = a.to;
    gemm.w_stride = columns;
  }

  void activation_operand(GemmArguments& gemm) {
    gemm.x = staging_->in(call_.x);
    gemm.x_stride = call_.x.stride();
    if (kind_ != Kind::bf16) return;
    const ConvertArguments a = {.from = gemm.x,
                                .from_type = Number::f32,
                                .from_stride = gemm.x_stride,
                                .to = staging_->scratch(s_.m * s_.k * 2),
                                .to_type = Number::bf16,
                                .to_stride = s_.k,
                                .rows = gemm.m,
                                .columns = gemm.k,
                                .padded_rows = gemm.m,
                                .padded_columns = gemm.k};
    convert(a);
    gemm.x = a.to;
    gemm.x_stride = s_.k;
  }

  // INT8 codes, one scale a token; returns the scales.
  const float* quantized_operand(GemmArguments& gemm, std::uint32_t& unquantizable) {
    auto* codes = static_cast<std::uint8_t*>(staging_->scratch(s_.m * s_.k));
    auto* scales = static_cast<float*>(staging_->scratch(s_.m * sizeof(float)));
    const QuantizeArguments q = {
        .x = staging_->in(call_.x),
        .x_stride = call_.x.stride(),
        .rows = gemm.m,
        .columns = static_cast<std::uint32_t>(s_.k),
        .block_rows = 1,
        .block_columns = static_cast<std::uint32_t>(s_.k),
        .scale_columns = 1,
        .blocks = s_.m,
        .codes = codes,
        .scales = scales,
        .unquantizable = static_cast<std::uint32_t*>(staging_->write(&unquantizable, sizeof unquantizable)),
        .code = Code::i8};
    launch_.quantize(plan_quantize(machine_.limits(), {.blocks = s_.m, .block_elements = s_.k}), q,
                     staging_->stream());
    gemm.x = codes;
    gemm.x_stride = s_.k;
    if (gemm.k == s_.k) return scales;
    const ConvertArguments a = {.from = codes,
                                .from_type = Number::i8,
                                .from_stride = s_.k,
                                .to = staging_->scratch(s_.m * gemm.k),
                                .to_type = Number::i8,
                                .to_stride = gemm.k,
                                .rows = gemm.m,
                                .columns = static_cast<std::uint32_t>(s_.k),
                                .padded_rows = gemm.m,
                                .padded_columns = gemm.k};
    convert(a);
    gemm.x = a.to;
    gemm.x_stride = gemm.k;
    return scales;
  }

  void finish(const GemmArguments& gemm, float* out, std::size_t stride, const float* x_scales) {
    const bool integers = kind_ == Kind::i8;
    const bool keep = call_.rounding == ResultRounding::float32 && !integers;
    const bool rounds = ops_.arithmetic().bfloat16() && !keep;
    if (!integers && !rounds && !call_.bias) return;
    const EpilogueArguments a = {
        .sums = integers ? nullptr : out,
        .integers = integers ? static_cast<const std::int32_t*>(gemm.y) : nullptr,
        .sums_stride = gemm.y_stride,
        .y_stride = stride,
        .x_scales = x_scales,
        .w_scales = integers
                        ? static_cast<const float*>(staging_->scales(call_.weight)) + call_.weight.first_row
                        : nullptr,
        .bias = stored_vector(*staging_, call_.bias),
        .y = out,
        .rows = gemm.m,
        .columns = static_cast<std::uint32_t>(s_.n),
        .bfloat16 = rounds,
        .rounds_before_bias = integers,
    };
    launch_.epilogue(plan_epilogue(machine_.limits(), {.rows = s_.m, .columns = s_.n}), a,
                     staging_->stream());
  }

  Machine& machine_;
  Ops& ops_;
  const LinearCall& call_;
  const LibraryLinearLaunchers& launch_;
  Kind kind_;
  Shape s_;
  std::unique_ptr<Staging> staging_;
};

constexpr Invariants kNoInvariants = {
    .batch_invariant = false, .chunk_invariant = false, .thread_invariant = false, .layout_invariant = false};
// cuBLAS chooses its way by the number of tokens and by alignment, and splits sums as it likes. Tensor cores
// keep fewer bits of a sum than float32 has: taken as 2^-22 until measured on a device; tf32 rounds operands
// to 2^-11 each.
constexpr double kTensorCoreRoundoff = 0x1p-22, kTf32Roundoff = 0x1p-10;

Kernel<LinearCall> library_kernel(Machine& machine, const LibraryLinearLaunchers& launchers, std::string name,
                                  std::string about, bool tf32, std::optional<Kind> only, double roundoff) {
  const auto takes_kind = [only, tf32](const Arithmetic& arithmetic, const LinearCall& call) {
    const std::optional<Kind> kind = kind_of(arithmetic, call);
    return kind && (!only || *kind == *only) && !(tf32 && call.bias);
  };
  Kernel<LinearCall> kernel = cuda_kernel<LinearCall>(
      machine, std::move(name), std::move(about), Edges(),
      [takes_kind](const DeviceLimits& limits, const Arithmetic& arithmetic, const LinearCall& call) {
        return takes_kind(arithmetic, call) ? plans_of_library_linear(limits, arithmetic, call)
                                            : std::vector<LaunchPlan>();
      },
      [launchers, tf32](Machine& m, Ops& ops, const LinearCall& call) {
        const Kind kind = *kind_of(ops.arithmetic(), call);
        return LibraryProduct(m, ops, call, launchers, tf32 ? Kind::tf32 : kind).run();
      });
  kernel.invariants = kNoInvariants;
  kernel.roundoffs.accumulator = roundoff;
  kernel.roundoffs.flushes_subnormals = tf32;  // seen on an H100
  kernel.unavailable = [&machine, launchers] {
    const std::string why = machine.unavailable();
    return why.empty() && launchers.unavailable != nullptr ? launchers.unavailable() : why;
  };
  kernel.takes = [planned = kernel.takes, unavailable = kernel.unavailable](const Arithmetic& arithmetic,
                                                                            const LinearCall& call) {
    return unavailable().empty() && planned(arithmetic, call);
  };
  return kernel;
}

}  // namespace

void add_library_linear_kernels(Registry& registry, Machine& machine,
                                const LibraryLinearLaunchers& launchers) {
  const auto add = [&](const char* name, const char* about, bool tf32, std::optional<Kind> only,
                       double roundoff) {
    registry.add(library_kernel(machine, launchers, name, about, tf32, only, roundoff));
  };
  add("cuda.cublas", "cuBLAS in the arithmetic asked for", false, std::nullopt, kTensorCoreRoundoff);
  add("library.cublas_f32", "cuBLAS, float32 throughout", false, Kind::f32, 0x1p-24);
  add("library.cublas_tf32", "cuBLAS, operands rounded to tf32", true, Kind::f32, kTf32Roundoff);
  add("library.cublas_bf16", "cuBLAS, bfloat16 with float32 sums", false, Kind::bf16, kTensorCoreRoundoff);
  add("library.cublas_int8", "cuBLAS, exact integer sums", false, Kind::i8, 0x1p-24);
}

}  // namespace assay::cuda
