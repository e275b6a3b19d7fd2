// cuBLASLt's FP8 products as kernels of the registry: operands quantized, padded and placed as it asks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/numeric/block_quantizer.h"
#include "core/system/error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/fp8_library.h"
#include "kernels/cuda/registration.h"
#include "kernels/cuda/stored_argument.h"
#include "refimpl/ops/w8a8.h"

namespace assay::cuda {
namespace {

bool aligned16(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

// Whether all of it has one scale.
bool has_one_scale(const WeightView& w) {
  return w.scale_columns == 1 && w.first_row % w.block_rows + w.rows <= w.block_rows;
}

bool is_fp8_product(const Arithmetic& arithmetic, const LinearCall& call) {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  const WeightView& w = call.weight;
  return arithmetic.precision == Precision::fp8_block && is_w8a8(w, arithmetic) &&
         w.type == ElementType::F8_E4M3 && is_convertible(w) && (!call.bias || is_stored_vector(call.bias)) &&
         call.x.columns() == w.columns && w.rows <= kMost && w.columns <= kMost && call.x.rows() <= kMost;
}

// Why the library does not multiply so; empty: it does.
std::string refusal(Fp8Scales scales, const DeviceLimits& limits, const WeightView& w) {
  if (limits.sm < 89) return fmt::format("sm_{} has no tensor cores for FP8", limits.sm);
  if (scales == Fp8Scales::tensor) return {};
  if (limits.sm != 90) return fmt::format("cuBLASLt scales by blocks on sm_90, not on sm_{}", limits.sm);
  if (w.block_rows != kFp8Block || w.block_columns != kFp8Block)
    return fmt::format("cuBLASLt's blocks are 128 × 128, not {} × {}", w.block_rows, w.block_columns);
  if (w.first_row % kFp8Block != 0) return "the first of these rows lies within a block";
  return {};
}

class Fp8Product {
 public:
  Fp8Product(Machine& machine, Ops& ops, const LinearCall& call, const Fp8LibraryLaunchers& launchers,
             Fp8Scales scales)
      : limits_(machine.limits()),
        call_(call),
        launch_(launchers),
        by_blocks_(scales == Fp8Scales::blocks),
        m_(call.x.rows()),
        n_(call.weight.rows),
        k_(call.weight.columns),
        y_(ops.allocate(m_, n_)),
        staging_(machine.stage()) {
    gemm_ = {.scales = scales,
             .m = narrow(by_blocks_ ? round_up(m_, kFp8TokenStep) : m_),
             .n = narrow(round_up(n_, kFp8Step)),
             .k = narrow(round_up(k_, kFp8Step))};
  }

  Matrix run() {
    if (y_.empty()) return y_;
    weight_operand();
    const float* token_scales = activation_operand();
    float* const out = staging_->out(y_);
    const bool as_it_is = gemm_.m == m_ && gemm_.n == n_ && y_.stride() % 4 == 0 && aligned16(out);
    gemm_.y = as_it_is ? out : scratch<float>(std::size_t{gemm_.m} * gemm_.n);
    gemm_.y_stride = as_it_is ? y_.stride() : gemm_.n;
    launch_.gemm(gemm_, staging_->scratch(kFp8Workspace), staging_->stream());
    const EpilogueArguments a = {.sums = gemm_.y,
                                 .sums_stride = gemm_.y_stride,
                                 .y_stride = y_.stride(),
                                 .x_scales = by_blocks_ ? nullptr : token_scales,
                                 .bias = stored_vector(*staging_, call_.bias),
                                 .y = out,
                                 .rows = narrow(m_),
                                 .columns = narrow(n_),
                                 .bfloat16 = true,
                                 .rounds_before_bias = true};
    launch_.epilogue(plan_epilogue(limits_, {.rows = m_, .columns = n_}), a, staging_->stream());
    staging_->finish();
    if (unquantizable_ != 0)
      throw Error::input("activations became NaN or infinite: 8 bits cannot hold them")
          .remedy("look where with --dump, in f32");
    return y_;
  }

 private:
  template <class T>
  T* scratch(std::size_t count) {
    return static_cast<T*>(staging_->scratch(count * sizeof(T)));
  }

  // Codes in rows of gemm_.k, with zeros behind them; where they lie, if that will do.
  const std::uint8_t* padded(const void* codes, std::size_t stride, std::size_t rows,
                             std::size_t padded_rows) {
    const ConvertArguments a = {.from = codes,
                                .from_type = Number::i8,
                                .from_stride = stride,
                                .to = scratch<std::uint8_t>(padded_rows * gemm_.k),
                                .to_type = Number::i8,
                                .to_stride = gemm_.k,
                                .rows = narrow(rows),
                                .columns = narrow(k_),
                                .padded_rows = narrow(padded_rows),
                                .padded_columns = gemm_.k};
    launch_.convert(plan_convert(limits_, {.rows = padded_rows, .columns = gemm_.k}), a, staging_->stream());
    return static_cast<const std::uint8_t*>(a.to);
  }

  void weight_operand() {
    const WeightView& w = call_.weight;
    if (!by_blocks_ && !has_one_scale(w)) return requantized_weight();
    const void* codes = staging_->codes(w);
    const bool as_it_is = gemm_.n == n_ && gemm_.k == k_ && w.row_bytes % 16 == 0 && aligned16(codes);
    gemm_.w = as_it_is ? static_cast<const std::uint8_t*>(codes) : padded(codes, w.row_bytes, n_, gemm_.n);
    gemm_.w_stride = as_it_is ? w.row_bytes : gemm_.k;
    gemm_.w_scales =
        static_cast<const float*>(staging_->scales(w)) + w.first_row / w.block_rows * w.scale_columns;
    if (by_blocks_) place_scales(w.scale_columns);
  }

  // W's scales with as many in a row as the library takes.
  void place_scales(std::size_t columns) {
    const std::size_t stride = w_scale_stride(k_), rows = blocks_for(n_, kFp8Block);
    if (columns == stride && aligned16(gemm_.w_scales)) return;
    const ConvertArguments a = {.from = gemm_.w_scales,
                                .from_stride = columns,
                                .to = scratch<float>(rows * stride),
                                .to_stride = stride,
                                .rows = narrow(rows),
                                .columns = narrow(columns),
                                .padded_rows = narrow(rows),
                                .padded_columns = narrow(stride)};
    launch_.convert(plan_convert(limits_, {.rows = rows, .columns = stride}), a, staging_->stream());
    gemm_.w_scales = static_cast<const float*>(a.to);
  }

  // Scales by blocks become one: made on the host, once a weight where such things are kept.
  void requantized_weight() {
    const std::size_t codes = std::size_t{gemm_.n} * gemm_.k;
    const void* made = staging_->made_of(call_.weight, "FP8 under one scale", [&] {
      std::vector<float> values(codes);
      for (std::size_t r = 0; r < n_; ++r) decode_rows(call_.weight, r, 1, &values[r * gemm_.k]);
      const BlockQuantizer quantizer = {.block_rows = gemm_.n, .block_columns = gemm_.k};
      float scale = 0;
      block_amax(values, gemm_.n, gemm_.k, gemm_.n, gemm_.k, {&scale, 1});
      scale = quantizer.scale_for(scale);
      std::vector<std::byte> bytes(codes + sizeof scale);
      quantize_with_scales(quantizer, values, gemm_.n, gemm_.k, {&scale, 1}, std::span(bytes).first(codes));
      std::memcpy(&bytes[codes], &scale, sizeof scale);
      return bytes;
    });
    gemm_.w = static_cast<const std::uint8_t*>(made);
    gemm_.w_stride = gemm_.k;
    gemm_.w_scales = reinterpret_cast<const float*>(gemm_.w + codes);
  }

  // Returns the scales: one a token, or one for 128 columns of it, token by token.
  const float* activation_operand() {
    const std::size_t block = by_blocks_ ? kFp8Block : k_, blocks = blocks_for(k_, block);
    auto* codes = scratch<std::uint8_t>(std::size_t{gemm_.m} * k_);
    auto* scales = scratch<float>(gemm_.m * blocks);
    const QuantizeArguments q = {
        .x = staging_->in(call_.x),
        .x_stride = call_.x.stride(),
        .rows = narrow(m_),
        .columns = narrow(k_),
        .block_rows = 1,
        .block_columns = narrow(block),
        .scale_columns = narrow(blocks),
        .blocks = m_ * blocks,
        .codes = codes,
        .scales = scales,
        .scale_pitch = by_blocks_ ? gemm_.m : 0u,
        .unquantizable = static_cast<std::uint32_t*>(staging_->write(&unquantizable_, sizeof unquantizable_)),
        .code = Code::e4m3};
    launch_.quantize(plan_quantize(limits_, {.blocks = q.blocks, .block_elements = block}), q,
                     staging_->stream());
    gemm_.x = gemm_.k == k_ ? codes : padded(codes, k_, m_, gemm_.m);
    gemm_.x_stride = gemm_.k;
    gemm_.x_scales = by_blocks_ ? scales : nullptr;
    return scales;
  }

  const DeviceLimits& limits_;
  const LinearCall& call_;
  const Fp8LibraryLaunchers& launch_;
  bool by_blocks_;
  std::size_t m_, n_, k_;
  Matrix y_;
  std::unique_ptr<Staging> staging_;
  Fp8GemmArguments gemm_;
  std::uint32_t unquantizable_ = 0;
};

// The library plans its own products; these are ours around it.
std::vector<LaunchPlan> plans_of_fp8(Fp8Scales scales, const DeviceLimits& limits,
                                     const Arithmetic& arithmetic, const LinearCall& call) {
  if (!is_fp8_product(arithmetic, call)) return {};
  const std::size_t m = call.x.rows(), n = call.weight.rows, k = call.weight.columns;
  const std::size_t block = scales == Fp8Scales::blocks ? kFp8Block : k;
  LaunchPlan quantize = plan_quantize(limits, {.blocks = m * blocks_for(k, block), .block_elements = block});
  if (std::string why = refusal(scales, limits, call.weight); !why.empty()) {
    quantize.fits = false;
    quantize.why = std::move(why);
    return {std::move(quantize)};
  }
  return {std::move(quantize), plan_epilogue(limits, {.rows = m, .columns = n})};
}

Kernel<LinearCall> fp8_kernel(Machine& machine, const Fp8LibraryLaunchers& launchers, std::string name,
                              std::string about, Fp8Scales scales) {
  Kernel<LinearCall> kernel = cuda_kernel<LinearCall>(
      machine, std::move(name), std::move(about), Edges(),
      [scales](const DeviceLimits& limits, const Arithmetic& arithmetic, const LinearCall& call) {
        return plans_of_fp8(scales, limits, arithmetic, call);
      },
      [launchers, scales](Machine& m, Ops& ops, const LinearCall& call) {
        return Fp8Product(m, ops, call, launchers, scales).run();
      });
  kernel.invariants = {.batch_invariant = false,
                       .chunk_invariant = false,
                       .thread_invariant = true,
                       .layout_invariant = false};
  kernel.roundoffs = {.accumulator = 0x1p-14, .promoted = 128};  // as our own: gemm_product.cpp
  kernel.unavailable = [&machine, launchers, scales] {
    const std::string why = machine.unavailable();
    return why.empty() && launchers.unavailable != nullptr ? launchers.unavailable(scales) : why;
  };
  kernel.takes = [planned = kernel.takes, unavailable = kernel.unavailable](const Arithmetic& arithmetic,
                                                                            const LinearCall& call) {
    return unavailable().empty() && planned(arithmetic, call);
  };
  return kernel;
}

}  // namespace

void add_fp8_library_kernels(Registry& registry, Machine& machine, const Fp8LibraryLaunchers& launchers) {
  registry.add(fp8_kernel(machine, launchers, "library.cublaslt_fp8_block",
                          "cuBLASLt, FP8 under scales of 1 × 128 and 128 × 128", Fp8Scales::blocks));
  Kernel<LinearCall> tensor =
      fp8_kernel(machine, launchers, "library.cublaslt_fp8",
                 "cuBLASLt, FP8 under a scale a token and one for all of W", Fp8Scales::tensor);
  // e4m3 has 3 bits of mantissa: each rounding is off by 2^-4 at most. Truth is of activations rounded under
  // scales by blocks, this of such under one a token: (1 + 2^-4) / (1 - 2^-4) between them; and the weight's
  // codes are rounded anew, 1 + 2^-4: together 1.204. What is so small that it is subnormal under the larger
  // scale is off by a 2^-10th of that; it has the rest of this.
  tensor.roundoffs.operands = 0.21;
  registry.add(std::move(tensor));
}

}  // namespace assay::cuda
