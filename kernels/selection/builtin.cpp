// The kernels that come with assay.
#include <type_traits>
#include <utility>

#include "core/system/error.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/bf16_rows_avx512.h"
#include "kernels/cpu/convolution.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/delta_rule.h"
#include "kernels/cpu/delta_step.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gates.h"
#include "kernels/cpu/index.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/mla.h"
#include "kernels/cpu/moe.h"
#include "kernels/cpu/quantize.h"
#include "kernels/cpu/row_dot_int.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/state_space.h"
#include "kernels/cpu/tile_rows.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/library/linear.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"
#include "kernels/operands/rounded_operands.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

constexpr Invariants kNoInvariants = {
    .batch_invariant = false, .chunk_invariant = false, .thread_invariant = false, .layout_invariant = false};
constexpr Invariants kNoBatch = {.batch_invariant = false};
constexpr Invariants kNoChunk = {.chunk_invariant = false};
constexpr Invariants kNeither = {.batch_invariant = false, .chunk_invariant = false};

// In chunks, recurrences are other sums than token by token, in the reference too: where a prompt is cut matters.
template <class Call>
constexpr bool kHasChunks = std::is_same_v<Call, DeltaRuleCall> || std::is_same_v<Call, StateSpaceCall>;

template <class Call>
void add_reference(Registry& registry) {
  registry.add(Kernel<Call>{.name = "reference",
                            .about = "the meaning: plain loops, sums in double",
                            .takes = [](const Arithmetic&, const Call&) { return true; },
                            .run =
                                [](Ops& ops, const Call& call) {
                                  auto* reference = dynamic_cast<ReferenceOps*>(&ops);
                                  if (reference == nullptr)
                                    throw Error::internal("the reference computes in ordinary memory only");
                                  return run_reference(*reference, call);
                                },
                            .invariants = {.chunk_invariant = !kHasChunks<Call>}});
}

template <class Call>
using Shapes = std::function<bool(const Call&)>;

using TakesArithmetic = bool (*)(const Arithmetic&);
bool float32_alone(const Arithmetic& arithmetic) {
  return arithmetic.float32();
}
// Computed in float32, whatever is rounded on the way.
bool float32_inside(const Arithmetic& arithmetic) {
  return arithmetic.float32() || arithmetic.bfloat16();
}

// Where the code of kernels/cpu goes another way. The widest vectors have 16 float32 or 64 bytes.
constexpr std::size_t kLanes = 16, kPanel = 2 * kLanes, kOfBytes = 64;
// A tile of tokens is of 12, 6, 4, 2 or 1 rows; two of 12 are packed together.
constexpr Edge kTiles = {.of = "m", .every = 2 * cpu::kMostTileRows};

Edges row_edges() {
  return {{.of = "k", .every = kLanes}, {.of = "n", .from = cpu::kMostRowsAPiece}};
}
// Of pairs: four rows by four tokens, then three by eight.
Edges pair_row_edges() {
  return {{.of = "m", .from = 5},
          {.of = "m", .every = 8},
          {.of = "terms of pairs", .every = cpu::kBf16Vector},
          {.of = "n", .every = cpu::kRowsOfTiles},
          {.of = "n", .from = cpu::kMostRowsAPiece}};
}
Edges panel_edges() {
  return {kTiles,
          {.of = "k", .every = kLanes},
          {.of = "k", .from = cpu::kTermsAtOnce},
          {.of = "n", .every = kPanel},
          {.of = "n", .from = cpu::kPanelsAPiece * kPanel}};
}
// Codes under a scale for 32 or more; of small blocks eight at a time, of large ones the scales of eight. Eight tokens at
// once at most.
Edges integer_row_edges() {
  return {{.of = "blocks", .every = 8}, {.of = "m", .every = 8}, {.of = "n", .from = cpu::kMostRowsAPiece}};
}
Edges integer_panel_edges() {
  return {kTiles,
          {.of = "blocks", .from = cpu::kTermsAtOnce / kInt16Group},
          {.of = "blocks", .from = 2 * cpu::kTermsAtOnce / kInt16Group},
          {.of = "n", .every = kPanel},
          {.of = "n", .from = cpu::kPanelsAPiece * kPanel}};
}
Edges linear_edges() {
  return {{.of = "m", .from = cpu::kPackFrom},
          {.of = "m", .from = cpu::kPackPairsFrom},
          {.of = "k", .every = kLanes},
          {.of = "strip", .from = cpu::kDecodedAtOnce}};
}
Edges attention_edges() {
  return {{.of = "rows", .from = cpu::kPackRows},  {.of = "rows", .from = cpu::kTileQueries},
          {.of = "keys", .every = kPanel},         {.of = "keys", .from = cpu::kSplitKeys},
          {.of = "keys", .from = cpu::kSplitFrom}, {.of = "keys", .from = cpu::kSplitFrom + cpu::kSplitKeys},
          {.of = "dim", .every = kPanel},          {.of = "v", .every = kPanel}};
}
Edges elementwise_edges() {
  return {{.of = "n", .every = kLanes}, {.of = "elements", .from = cpu::kWorthAThread}};
}
Edges softmax_edges() {
  return {{.of = "n", .every = kLanes},
          {.of = "n", .from = cpu::kSoftmaxBlock},
          {.of = "elements", .from = cpu::kSoftmaxPiece}};
}
Edges moe_edges() {  // tokens of an expert
  return {{.of = "tokens", .from = cpu::kPackFrom}, {.of = "tokens", .every = cpu::kMostTileRows}};
}
Edges quantize_edges() {
  return {{.of = "m", .from = cpu::kQuantizePiece}, {.of = "n", .every = kOfBytes}};
}

bool without_slopes(const AttentionCall& call) {
  return call.slopes.empty();
}

// What CpuOps itself does.
constexpr auto kOfCpuOps = [](CpuOps& cpu, const auto& call) { return cpu.run(call); };

constexpr std::string_view kAsAlone = "a token's bits are those of the token by itself";

// `shapes`: of these calls only.
template <class Call, class Run>
void add_cpu(Registry& registry, std::string_view name, std::string_view about, const Edges& edges, Run run,
             Invariants invariants = {}, Shapes<Call> shapes = {}, TakesArithmetic takes = float32_alone,
             cpu::SumOrder order = cpu::SumOrder::fastest) {
  registry.add(Kernel<Call>{
      .name = std::string(name),
      .about = std::string(about),
      .takes = [shapes, takes](const Arithmetic& arithmetic,
                               const Call& call) { return takes(arithmetic) && (!shapes || shapes(call)); },
      .run =
          [run, order](Ops& ops, const Call& call) {
            CpuOps cpu(ops, order);
            return run(cpu, call);
          },
      .invariants = invariants,
      .edges = edges});
}

// One way of multiplying: what it takes, and how.
using TakesWeight = bool (*)(const WeightView&, const Arithmetic&);

Kernel<LinearCall> one_way(std::string_view name, std::string_view about, TakesWeight takes,
                           cpu::LinearWay way, const Edges& edges) {
  return {.name = std::string(name),
          .about = std::string(about),
          .takes = [takes](const Arithmetic& arithmetic,
                           const LinearCall& call) { return !call.bias && takes(call.weight, arithmetic); },
          .run =
              [way](Ops& ops, const LinearCall& call) {
                Matrix y = ops.allocate(call.x.rows(), call.weight.outputs());
                if (y.empty()) return y;
                cpu::linear_by(way, call.x, call.weight, y, ops.jobs());
                const bool keep = call.rounding == ResultRounding::float32;
                if (ops.arithmetic().bfloat16()) cpu::finish_bf16({}, keep, y, ops.jobs());
                return y;
              },
          .edges = edges};
}

std::optional<RoundedOperands> operands_of_linear(const Arithmetic& arithmetic, const LinearCall& call) {
  return rounded_operands(call.weight, arithmetic);
}
Kernel<LinearCall> rounding_operands(Kernel<LinearCall> kernel) {
  kernel.operands = operands_of_linear;
  return kernel;
}

bool multiplied_in_float32(const WeightView& weight, const Arithmetic& arithmetic) {
  return arithmetic.float32() && !rounded_operands(weight, arithmetic);
}
bool rows_in_float32(const WeightView& weight, const Arithmetic& arithmetic) {
  return multiplied_in_float32(weight, arithmetic) && !weight.input_major;
}
bool rows_of_bf16(const WeightView& weight, const Arithmetic& arithmetic) {
  return cpu::takes_bf16(weight, arithmetic) && cpu::is_stored_bf16(weight);
}
// Whose numbers are those of the arithmetic as they lie in memory.
bool rows_of_numbers(const WeightView& weight, const Arithmetic& arithmetic) {
  return rows_in_float32(weight, arithmetic) || rows_of_bf16(weight, arithmetic);
}
bool integer_rows_as_float32(const WeightView& weight, const Arithmetic& arithmetic) {
  return multiplied_in_float32(weight, arithmetic) && has_integer_rows(weight);
}

void add_linear(Registry& registry) {
  Kernel<LinearCall> automatic = {
      .name = "cpu.auto",
      .about = "rows for few tokens, panels for many",
      .takes =
          [](const Arithmetic& arithmetic, const LinearCall& call) {
            return arithmetic.float32() || cpu::takes_bf16(call.weight, arithmetic);
          },
      .run = [](Ops& ops, const LinearCall& call) { return CpuOps(ops).run(call); },
      .run_together = [](Ops& ops,
                         std::span<const LinearCall> calls) { return CpuOps(ops).run_together(calls); },
      .invariants = kNoBatch,  // where the two ways meet, the order of sums changes
      .edges = linear_edges()};
  Kernel<LinearCall> steady = automatic;
  steady.name = "cpu.steady";
  steady.about = std::string(kAsAlone);
  steady.run = [](Ops& ops, const LinearCall& call) { return CpuOps(ops, cpu::SumOrder::steady).run(call); };
  steady.run_together = [](Ops& ops, std::span<const LinearCall> calls) {
    return CpuOps(ops, cpu::SumOrder::steady).run_together(calls);
  };
  steady.invariants = {};
  registry.add(rounding_operands(std::move(automatic)));
  registry.add(rounding_operands(std::move(steady)));
  using cpu::LinearWay;
  registry.add(one_way("cpu.gemv", "each row of W read once, straight from its bytes", rows_of_numbers,
                       LinearWay::gemv, row_edges()));
  registry.add(one_way("cpu.gemv_int24", "W's codes by inputs of 24 bits, in integers",
                       integer_rows_as_float32, LinearWay::gemv_int24, integer_row_edges()));
  registry.add(one_way("cpu.gemm", "W decoded and packed by two vectors' worth of outputs", rows_in_float32,
                       LinearWay::gemm, panel_edges()));
  registry.add(one_way("cpu.gemv_bf16", "each row of W read once, its numbers and x in pairs", rows_of_bf16,
                       LinearWay::gemv_bf16, pair_row_edges()));
  registry.add(one_way("cpu.gemm_bf16", "W and x in bfloat16, a pair of terms at a time", cpu::takes_bf16,
                       LinearWay::gemm_bf16, panel_edges()));
  const auto add_rounding = [&](std::string name, std::string about, TakesWeight takes, LinearWay way,
                                Edges edges) {
    registry.add(rounding_operands(one_way(std::move(name), std::move(about), takes, way, std::move(edges))));
  };
  add_rounding("cpu.gemv_int16", "W's codes by inputs of 16 bits, in integers", takes_int16,
               LinearWay::gemv_int16, integer_row_edges());
  add_rounding("cpu.gemm_int16", "W's codes in panels by inputs of 16 bits, in integers", takes_int16,
               LinearWay::gemm_int16, integer_panel_edges());
  add_rounding("cpu.gemv_int8", "W's codes by inputs of 8 bits, in integers", takes_int8_block,
               LinearWay::gemv_int8, integer_row_edges());
  add_rounding("cpu.gemm_int8", "W's codes in panels by inputs of 8 bits, in integers", takes_int8_block,
               LinearWay::gemm_int8, integer_panel_edges());
  for (Kernel<LinearCall>& kernel : library_linear_kernels()) {
    kernel.invariants = kNoInvariants;
    registry.add(std::move(kernel));
  }
}

Kernel<FusedMoeCall> grouped_experts(std::string_view name, std::string_view about, Invariants invariants,
                                     cpu::SumOrder order) {
  return {.name = std::string(name),
          .about = std::string(about),
          .takes = [](const Arithmetic& arithmetic,
                      const FusedMoeCall& call) { return cpu::grouped_moe_takes(call.experts, arithmetic); },
          .run =
              [order](Ops& ops, const FusedMoeCall& call) {
                CpuOps cpu(ops, order);
                return cpu::grouped_moe(cpu, call.x, call.routing, call.experts, call.form, order);
              },
          .invariants = invariants,
          .edges = moe_edges()};
}

// What "cpu-invariant" has in place of those above whose bits depend on a token's company.
void add_steady(Registry& registry) {
  constexpr auto kOrder = cpu::SumOrder::steady;
  add_cpu<AttentionCall>(registry, "cpu.steady", kAsAlone, attention_edges(), kOfCpuOps, {}, without_slopes,
                         float32_inside, kOrder);
  add_cpu<MlaCall>(
      registry, "cpu.steady", kAsAlone, {{.of = "queries", .from = cpu::kPackFrom}},
      [](CpuOps& cpu, const MlaCall& call) { return cpu::absorbed_mla(cpu, call, kOrder); }, {},
      [](const MlaCall& call) { return call.form == MlaForm::absorbed; });
  add_cpu<MlaCall>(registry, "cpu.steady_composed", kAsAlone, {{.of = "keys", .from = cpu::kPackFrom}},
                   kOfCpuOps, {}, {}, float32_inside, kOrder);
  registry.add(grouped_experts("cpu.steady", kAsAlone, {}, kOrder));
  add_cpu<FusedMoeCall>(registry, "cpu.steady_composed", kAsAlone, moe_edges(), kOfCpuOps, {}, {},
                        float32_inside, kOrder);
}

void add_cpu_kernels(Registry& registry) {
  add_cpu<RmsNormCall>(registry, "cpu.simd", "sums of squares in vector lanes", elementwise_edges(),
                       kOfCpuOps, {}, {}, float32_inside);
  add_cpu<RotaryCall>(
      registry, "cpu.simd", "pairs of elements in vectors",
      {{.of = "elements", .from = cpu::kWorthAThread}, {.of = "rotary pairs", .every = kLanes}}, kOfCpuOps,
      {}, {}, float32_inside);
  add_cpu<AttentionCall>(registry, "cpu.flash", "keys in blocks under an online softmax", attention_edges(),
                         kOfCpuOps, kNoChunk, without_slopes, float32_inside);
  add_cpu<AttentionCall>(
      registry, "cpu.split_kv", "parts of the keys by themselves, then merged", attention_edges(),
      [](CpuOps& cpu, const AttentionCall& call) {
        Matrix out = cpu.allocate(call.q.rows(), call.heads * call.v_dim);
        cpu::split_attention(call, out, cpu.jobs());
        if (cpu.arithmetic().bfloat16()) cpu::round_to_bf16(out, cpu.jobs());
        return out;
      },
      kNoChunk, without_slopes, float32_inside);
  add_cpu<MlaCall>(
      registry, "cpu.absorbed", "the latent cache read once for all heads",
      {{.of = "queries", .from = cpu::kPackFrom}},
      [](CpuOps& cpu, const MlaCall& call) { return cpu::absorbed_mla(cpu, call); }, kNeither,
      [](const MlaCall& call) { return call.form == MlaForm::absorbed; });
  add_cpu<MlaCall>(registry, "cpu.composed", "the CPU's linear and attention",
                   {{.of = "keys", .from = cpu::kPackFrom}}, kOfCpuOps, kNeither, {},
                   float32_inside);  // as its linear: few tokens and many
  add_cpu<GatedActivationCall>(registry, "cpu.simd", "exponentials in vectors", elementwise_edges(),
                               kOfCpuOps, {}, {}, float32_inside);
  add_cpu<SoftmaxCall>(registry, "cpu.online", "a row read once, its maximum found on the way",
                       softmax_edges(), [](CpuOps& cpu, const SoftmaxCall& call) {
                         Matrix y = cpu.allocate(call.x.rows(), call.x.columns());
                         cpu::online_softmax(call.x, y, cpu.jobs());
                         return y;
                       });
  add_cpu<MoeGateCall>(registry, "cpu.top_k", "the best kept in order, scores in vectors",
                       {{.of = "m", .from = cpu::kGatePiece}, {.of = "experts", .every = kLanes}},
                       [](CpuOps& cpu, const MoeGateCall& call) {
                         const Matrix weights = cpu.allocate(call.logits.rows(), call.rule.top_k);
                         return cpu::top_k_gate(call.logits, call.correction, call.rule, weights, cpu.jobs());
                       });
  add_cpu<IndexCall>(
      registry, "cpu.panels", "a head's products with many keys in a vector, the best by partition",
      {{.of = "heads", .every = cpu::kIndexHeads},
       {.of = "dim", .every = kLanes},
       {.of = "keys", .every = cpu::kIndexVectors * kLanes}},
      [](CpuOps& cpu, const IndexCall& call) { return cpu::choose_keys(cpu, call); }, {}, {}, float32_inside);
  add_cpu<QuantizeCall>(
      registry, "cpu.simd", "vector codecs, rows on all threads", quantize_edges(),
      [](CpuOps& cpu, const QuantizeCall& call) { return cpu::quantize_rows(call.x, call.rule, cpu.jobs()); },
      {}, [](const QuantizeCall& call) { return call.rule.block_rows == 1 && !call.x.empty(); });
  add_cpu<DequantizeCall>(registry, "cpu.simd", "vector codecs, rows on all threads", quantize_edges(),
                          [](CpuOps& cpu, const DequantizeCall& call) {
                            Matrix y = cpu.allocate(call.x.rows, call.x.columns);
                            cpu::dequantize_rows(call.x, y, cpu.jobs());
                            return y;
                          });
  registry.add(grouped_experts("cpu.grouped", "all experts' rows in one loop over threads", kNoBatch,
                               cpu::SumOrder::fastest));
  add_cpu<FusedMoeCall>(registry, "cpu.composed", "the CPU's linear and gate, an expert at a time",
                        moe_edges(), kOfCpuOps, kNoBatch, {}, float32_inside);
}

Edges output_gate_edges() {
  Edges edges = elementwise_edges();
  edges.push_back({.of = "width", .every = kLanes});
  return edges;
}

Edges delta_edges() {
  return {{.of = "tokens", .from = cpu::kChunkFrom},
          {.of = "tokens", .from = cpu::kDeltaChunk + 1},
          {.of = "tokens", .every = cpu::kDeltaBlock},
          {.of = "k", .every = 2},
          {.of = "v", .every = kLanes},
          {.of = "v", .from = cpu::kDeltaStrip * kLanes},
          {.of = "chunked v", .every = kPanel}};
}
Edges space_edges() {
  return {{.of = "tokens", .from = cpu::kChunkFrom},
          {.of = "tokens", .from = cpu::kSpaceChunk + 1},
          {.of = "tokens", .every = cpu::kSpaceBlock},
          {.of = "p", .every = kPanel},
          {.of = "n", .every = kLanes}};
}

constexpr std::string_view kOfTwoWays = "chunks for many tokens of heads that forget at one speed";
constexpr std::string_view kTokenByToken = "token by token, the state in vectors";
constexpr std::string_view kByChunks = "products of matrices over chunks of tokens";

// Of recurrent layers. A token's result depends on those before it, and on no other sequence.
void add_recurrent(Registry& registry) {
  add_cpu<ConvolutionCall>(
      registry, "cpu.simd", "channels in vectors", elementwise_edges(),
      [](CpuOps& cpu, const ConvolutionCall& call) { return cpu::convolution(cpu, call); });
  add_cpu<GatedNormCall>(registry, "cpu.simd", "sums of squares and exponentials in vectors",
                         elementwise_edges(),
                         [](CpuOps& cpu, const GatedNormCall& call) { return cpu::gated_norm(cpu, call); });
  add_cpu<OutputGateCall>(
      registry, "cpu.simd", "exponentials in vectors", output_gate_edges(),
      [](CpuOps& cpu, const OutputGateCall& call) { return cpu::output_gate(cpu, call); });
  const auto add_scans = [&](std::string_view name, std::string_view about, cpu::ScanWay way,
                             Invariants invariants) {
    add_cpu<DeltaRuleCall>(
        registry, name, about, delta_edges(),
        [way](CpuOps& cpu, const DeltaRuleCall& call) { return cpu::delta_rule(cpu, call, way); },
        invariants);
    add_cpu<StateSpaceCall>(
        registry, name, about, space_edges(),
        [way](CpuOps& cpu, const StateSpaceCall& call) { return cpu::state_space(cpu, call, way); },
        invariants);
  };
  add_scans("cpu.auto", kOfTwoWays, cpu::ScanWay::automatic, kNoChunk);
  add_scans("cpu.recurrent", kTokenByToken, cpu::ScanWay::recurrent, {});
  add_scans("cpu.chunked", kByChunks, cpu::ScanWay::chunked, kNoChunk);
}

Registry make_builtin() {
  Registry registry;
  registry.for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) { add_reference<Call>(registry); });
  add_linear(registry);
  add_cpu_kernels(registry);
  add_recurrent(registry);
  add_steady(registry);
  add_cuda_kernels(registry);
  return registry;
}

}  // namespace

const Registry& builtin_kernels() {
  static const Registry registry = make_builtin();
  return registry;
}

}  // namespace assay
