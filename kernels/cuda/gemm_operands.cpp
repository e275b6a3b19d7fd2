#include "kernels/cuda/gemm_operands.h"

#include <fmt/format.h>

#include <span>

#include "refimpl/ops/support.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kQ8Block = 32;

std::size_t aligned16(std::size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

GemmArgs gemm_args(const DeviceX& x, const DeviceW& w, const GemmShape& shape, const GemmPlan& plan) {
  return {.outputs = static_cast<std::int32_t>(shape.outputs),
          .inputs = static_cast<std::int32_t>(shape.inputs),
          .x = x.data,
          .x_pitch = x.pitch,
          .x_plane = x.plane,
          .x_scales = x.scales,
          .x_scale_columns = x.scale_columns,
          .w_pitch = w.pitch,
          .block_rows = w.block_rows,
          .block_columns = w.block_columns,
          .scale_columns = w.scale_columns,
          .first_row = w.first_row,
          .row_tiles = static_cast<std::int32_t>(plan.row_tiles),
          .slabs_together = static_cast<std::int32_t>(shape.promotion / kSlab),
          .stages = plan.launch.stages};
}

PrepareArgs Operations::prepare(const DeviceRows& x, std::size_t element_bytes, std::size_t planes) {
  PrepareArgs args = {.x = x.data,
                      .x_stride = static_cast<std::int64_t>(x.stride),
                      .gather = x.gather,
                      .rows = static_cast<std::int64_t>(x.rows),
                      .columns = static_cast<std::int32_t>(x.columns)};
  const std::size_t pitch = aligned16(x.columns * element_bytes);
  args.out_pitch = static_cast<std::int64_t>(pitch);
  args.out_plane = static_cast<std::int64_t>(pitch * x.rows);
  args.out = scratch<unsigned char>(planes * pitch * x.rows);
  return args;
}

DeviceX Operations::for_gemm(const DeviceRows& x, GemmMath math) {
  if (math == GemmMath::int8) return for_gemv(x, math);
  const LaunchPlan plan = plan_row_blocks(limits_, "prepare x", x.rows, x.columns);
  if (math == GemmMath::fp8) {
    const std::size_t blocks = blocks_for(x.columns, 128);
    PrepareArgs args = prepare(x, 1, 1);
    args.scales = scratch<float>(x.rows * blocks);
    args.bad = staging_->not_finite();
    launchers_.quantize_fp8(plan, false, args, stream());
    return {args.out, args.out_pitch, 0, args.scales, static_cast<std::int32_t>(blocks)};
  }
  const int planes = math == GemmMath::exact ? 3 : 1;
  const PrepareArgs args = prepare(x, 2, static_cast<std::size_t>(planes));
  launchers_.planes(plan, planes, args, stream());
  return {args.out, args.out_pitch, args.out_plane, nullptr, 1};
}

DeviceX Operations::for_gemv(const DeviceRows& x, GemmMath math) {
  if (math == GemmMath::int8) {
    PrepareArgs args = prepare(x, 1, 1);
    args.scales = scratch<float>(x.rows);
    args.bad = staging_->not_finite();
    constexpr std::size_t kSharedForMaximum = 128;
    launchers_.quantize_int8(plan_rows(limits_, "quantize int8", x.rows, kSharedForMaximum), args, stream());
    return {args.out, args.out_pitch, 0, args.scales, 1};
  }
  const bool whole = x.gather == nullptr && x.columns % 4 == 0 && x.stride % 4 == 0 &&
                     reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
  if (whole && math != GemmMath::fp8)  // read where it lies
    return {reinterpret_cast<const unsigned char*>(x.data), static_cast<std::int64_t>(4 * x.stride), 0,
            nullptr, 1};
  const LaunchPlan plan = plan_row_blocks(limits_, "prepare x", x.rows, x.columns);
  PrepareArgs args = prepare(x, 4, 1);
  if (math == GemmMath::fp8) {
    args.bad = staging_->not_finite();
    launchers_.quantize_fp8(plan, true, args, stream());
  } else {
    launchers_.planes(plan, 0, args, stream());
  }
  return {args.out, args.out_pitch, 0, nullptr, 1};
}

const float* Operations::scales_of(const WeightView& weight) {
  if (weight.kind == FormKind::plain)
    return kept_floats(weight, "one", [] { return std::vector<float>{1.0F}; });
  return kept_floats(weight, fmt::format("scales of {} rows", weight.block_rows), [&] {
    const std::size_t skipped = weight.first_row % weight.block_rows;
    const std::size_t grid_rows = blocks_for(skipped + weight.rows, weight.block_rows);
    std::vector<float> grid(grid_rows * weight.scale_columns);
    for (std::size_t g = 0; g < grid_rows; ++g)
      decode_scales(weight, g == 0 ? 0 : g * weight.block_rows - skipped, &grid[g * weight.scale_columns]);
    return grid;
  });
}

const float* Operations::kept_floats(const WeightView& weight, const std::string& what,
                                     const std::function<std::vector<float>()>& make) {
  return static_cast<const float*>(staging_->made_of(weight, what, [&] {
    const std::vector<float> values = make();
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }));
}

// Codes in rows on 16 bytes; of Q8_0 its scales behind them, as float32.
const unsigned char* Operations::repacked(const WeightView& weight, const Product& product) {
  const std::size_t pitch =
      aligned16(weight.columns * static_cast<std::size_t>(bytes_of(product.shape.codes)));
  const std::size_t scales = product.packed ? weight.rows * (weight.columns / kQ8Block) * sizeof(float) : 0;
  const std::string what = product.packed ? "unpack Q8_0" : "align rows";
  const void* made = staging_->filled_of(weight, what, weight.rows * pitch + scales, [&](void* to) {
    auto* codes = static_cast<unsigned char*>(to);
    const RepackArgs args = {
        .codes =
            static_cast<const unsigned char*>(staging_->read(weight.codes, weight.rows * weight.row_bytes)),
        .rows = static_cast<std::int64_t>(weight.rows),
        .row_bytes = static_cast<std::int64_t>(weight.row_bytes),
        .out = codes,
        .out_pitch = static_cast<std::int64_t>(pitch),
        .scales = product.packed ? reinterpret_cast<float*>(codes + weight.rows * pitch) : nullptr};
    (product.packed ? launchers_.unpack_q8_0 : launchers_.align_rows)(plan_rows(limits_, what, weight.rows),
                                                                      args, stream());
  });
  return static_cast<const unsigned char*>(made);
}

DeviceW Operations::weight(const WeightView& weight, const Product& product, const WeightView& bias,
                           const Arithmetic& arithmetic) {
  DeviceW w;
  const std::size_t bytes = weight.columns * static_cast<std::size_t>(bytes_of(product.shape.codes));
  w.pitch = static_cast<std::int64_t>(aligned16(bytes));
  const unsigned char* repacked = nullptr;
  if (!product.packed && weight.row_bytes % 16 == 0)
    w.weight.codes = static_cast<const unsigned char*>(staging_->codes(weight));
  if (w.weight.codes == nullptr || reinterpret_cast<std::uintptr_t>(w.weight.codes) % 16 != 0)
    w.weight.codes = repacked = this->repacked(weight, product);
  if (product.packed) {
    w.weight.scales = reinterpret_cast<const float*>(repacked + weight.rows * aligned16(bytes));
    w.block_columns = kQ8Block;
    w.scale_columns = static_cast<std::int32_t>(weight.columns / kQ8Block);
  } else if (bytes_of(product.shape.codes) == 1) {
    const bool plain = weight.kind == FormKind::plain;
    w.weight.scales = scales_of(weight);
    w.block_rows = static_cast<std::int32_t>(plain ? weight.rows : weight.block_rows);
    w.block_columns = static_cast<std::int32_t>(plain ? weight.columns : weight.block_columns);
    w.scale_columns = plain ? 1 : static_cast<std::int32_t>(weight.scale_columns);
    w.first_row = plain ? 0 : static_cast<std::int32_t>(weight.first_row % weight.block_rows);
  }
  if (bias) {
    w.weight.bias = kept_floats(bias, arithmetic.bfloat16() ? "bfloat16" : "float32", [&] {
      const std::vector<double> wide = vector_of(bias, arithmetic);
      return std::vector<float>(wide.begin(), wide.end());
    });
  }
  return w;
}

const TensorMap* Operations::maps(const GemmArgs& args, const std::vector<GemmWeight>& weights,
                                  const GemmShape& shape, const GemmPlan& plan) {
  constexpr std::uint32_t kOutputs = 128;  // of a tile
  if (!plan.fed || args.rows == 0) return nullptr;
  TileSource source = {.base = args.x,
                       .rows = static_cast<std::uint64_t>(args.rows),
                       .row_bytes = shape.inputs * static_cast<std::uint64_t>(bytes_of(shape.codes)),
                       .pitch = static_cast<std::uint64_t>(args.x_pitch),
                       .tile_rows = static_cast<std::uint32_t>(plan.tile_rows)};
  std::vector<TensorMap> maps = {staging_->tensor_map(source)};
  source.rows = shape.outputs;
  source.pitch = static_cast<std::uint64_t>(args.w_pitch);
  source.tile_rows = kOutputs;
  for (const GemmWeight& weight : weights) {
    source.base = weight.codes;
    maps.push_back(weight.codes == nullptr ? TensorMap() : staging_->tensor_map(source));
  }
  return upload(std::move(maps));
}

}  // namespace assay::cuda
