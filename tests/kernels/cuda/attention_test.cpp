// flash_attention.cuh and attention_merge.cuh under the emulator: the grid's cases, and faults planted around
// them, each seen.
#include "kernels/cuda/attention_launch.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

using cuda::AttentionArgs;
using cuda::AttentionLaunchers;
using cuda::AttentionPlan;

constexpr AttentionLaunchers kEmulated = {
    .pack = cuda::launch_pack_heads, .tiles = cuda::launch_attention, .merge = cuda::launch_attention_merge};

void add_attention(Registry& registry, cuda::Machine& machine) {
  cuda::add_attention_kernels(registry, machine, kEmulated);
}

// Keys × heads × widths that the emulator computes in well under a second.
bool is_small(const CaseId& id) {
  const auto width = id.number("dim", 64) + id.number("v", 64);
  return id.number("keys", 1) * id.number("queries", 1) * id.number("heads", 1) * width <= 300'000;
}
bool is_long(const CaseId& id) {
  return id.number("keys", 1) > 2000;
}

TEST(CudaAttention, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_attention, [](const CaseId& id) { return is_small(id) && !is_long(id); }),
            80u);
}

// Qwen2's 5 and 7 query heads a key head, Falcon's 71.
TEST(CudaAttention, PassesTheRatiosOfTheKnownFamilies) {
  const auto wanted = [](const CaseId& id) {
    const auto group = id.number("heads") / id.number("kv", 1);
    return id.number("dim") == 16 && id.number("keys") == 9 && (group == 5 || group == 7 || group == 71);
  };
  EXPECT_GT(pass_emulated(89, add_attention, wanted, true), 4u);
}

TEST(CudaAttention, PassesAtItsEdges) {
  const auto wanted = [](const CaseId& id) { return is_small(id) && in_turn(id, 4); };
  EXPECT_GT(pass_emulated(89, add_attention, wanted, true), 50u);
}

TEST(CudaAttention, PassesInPieces) {
  EXPECT_GT(pass_emulated(90, add_attention,
                          [](const CaseId& id) {
                            const bool wide = id.word("act", "f32") == "f32";
                            return is_long(id) && id.number("sinks") != 0 &&
                                   id.input() == (wide ? InputKind::large : InputKind::zero_mean);
                          }),
            4u);
}

// --- faults

std::string verdict(const AttentionLaunchers& launchers, std::string_view kernel, const std::string& id,
                    const cuda::DeviceLimits& limits = *cuda::limits_of(80)) {
  const auto machine = cuda::emulated_machine(limits);
  Registry registry;
  cuda::add_attention_kernels(registry, *machine, launchers);
  for (const auto& examiner : examiners(registry)) {
    if (examiner->op() != "attention") continue;
    for (const CaseResult& r : examiner->examine(
             CaseId::parse(id), [&](const KernelLabel& label) { return label.name == kernel; }, {}))
      return r.status == CaseStatus::passed ? "passed" : r.check;
  }
  return "not examined";
}

// Columns of values beyond a block's share, 128 of float32 and 256 of bfloat16, are another block's; cut into
// pieces too.
TEST(CudaAttention, ValuesAreSharedOutAmongBlocks) {
  for (const char* kernel : {"cuda.flash", "cuda.split_fixed"}) {
    for (const char* id : {"attention:F32:heads=2:kv=1:dim=16:v=200:keys=9:queries=2:in=zero:seed=1",
                           "attention:F32:act=bf16:heads=2:kv=1:dim=16:v=330:keys=9:queries=2:in=zero:seed=1",
                           "attention:F32:heads=1:kv=1:dim=8:v=140:keys=520:queries=1:in=zero:seed=1"})
      EXPECT_EQ(verdict(kEmulated, kernel, id), "passed") << kernel << " " << id;
  }
}

// More than the merge's threads take at once: 130.
TEST(CudaAttention, ManyPiecesAreMerged) {
  EXPECT_EQ(verdict(kEmulated, "cuda.split_fixed",
                    "attention:F32:heads=1:kv=1:dim=4:v=4:keys=33100:queries=1:sinks=1:in=positive:seed=1"),
            "passed");
}

// 32 rows a warp: as prompts have them that fill the device, which here has one processor. Under windows, caps and sinks,
// in two widths, of two sequences; and bit by bit what 16 rows a warp compute.
TEST(CudaAttention, TallTilesAreThoseOfTheOthers) {
  cuda::DeviceLimits small = *cuda::limits_of(89);
  small.sm_count = 1;
  const auto compute = [](const cuda::DeviceLimits& limits, const std::string& id, std::string_view rows) {
    const auto machine = cuda::emulated_machine(limits);
    Registry registry;
    add_attention(registry, *machine);
    const auto made = cases_of<AttentionCall>().make(CaseId::parse(id));
    ReferenceOps ops(made->arithmetic, 1);
    const AttentionCall call = made->call(ops);
    for (const Kernel<AttentionCall>& kernel : registry.of<AttentionCall>()) {
      if (kernel.name != "cuda.split_fixed") continue;
      EXPECT_TRUE(kernel.plans(limits, made->arithmetic, call)[0].variant.starts_with(rows)) << rows;
      return ops.download(kernel.run(ops, call));
    }
    return std::vector<double>();
  };
  for (const char* id :
       {"attention:F32:act=bf16:heads=4:kv=1:dim=72:v=64:keys=70:queries=33:page=16:sinks=1:in=zero:seed=1",
        "attention:F32:act=bf16:heads=8:kv=1:dim=40:v=24:keys=530:queries=17:window=500:in=zero:seed=1",
        "attention:F32:act=bf16:heads=8:kv=1:dim=24:v=60:keys=40:queries=17:seqs=2:cap=1:in=zero:seed=1"}) {
    EXPECT_EQ(verdict(kEmulated, "cuda.flash", id, small), "passed") << id;
    const std::vector<double> tall = compute(small, id, "128 rows"),
                              other = compute(*cuda::limits_of(89), id, "64 rows");
    EXPECT_FALSE(tall.empty());
    EXPECT_EQ(tall, other) << id;
  }
}

constexpr const char* kShort =
    "attention:F32:heads=4:kv=2:dim=24:v=24:keys=70:queries=5:page=16:in=zero:seed=1";
constexpr const char* kCut =
    "attention:F32:heads=2:kv=1:dim=16:v=16:keys=1100:queries=1:sinks=1:in=zero:seed=1";

void one_key_more(const AttentionPlan& plan, const AttentionArgs& a, unsigned bytes, cuda::Stream stream) {
  std::vector<cuda::SequenceArgs> sequences(a.sequences, a.sequences + 1);
  ++sequences[0].key_count;
  AttentionArgs changed = a;
  changed.sequences = sequences.data();
  cuda::launch_attention(plan, changed, bytes, stream);
}
void slightly_other_scale(const AttentionPlan& plan, const AttentionArgs& a, unsigned bytes,
                          cuda::Stream stream) {
  AttentionArgs changed = a;
  changed.score_factor *= 1.001F;
  cuda::launch_attention(plan, changed, bytes, stream);
}
void without_last_piece(const AttentionPlan& plan, const AttentionArgs& a, cuda::Stream stream) {
  std::vector<cuda::MergeWork> merges(plan.merges);
  for (cuda::MergeWork& merge : merges) --merge.splits;
  AttentionArgs changed = a;
  changed.merges = merges.data();
  cuda::launch_attention_merge(plan, changed, stream);
}
void sink_in_each_piece(const AttentionPlan& plan, const AttentionArgs& a, cuda::Stream stream) {
  const std::size_t rows = a.tiling.rows, group = a.heads / a.kv_heads;
  for (std::size_t p = 1; p < plan.partials; ++p) {
    for (std::size_t r = 0; r < group; ++r) {
      float* stats = a.partial_stats + 2 * (p * a.kv_heads * rows + r);
      stats[1] += std::exp2(a.sinks[r] * 1.44269504F - stats[0]);
    }
  }
  cuda::launch_attention_merge(plan, a, stream);
}
void no_sink(const AttentionPlan& plan, const AttentionArgs& a, cuda::Stream stream) {
  AttentionArgs changed = a;
  changed.sinks = nullptr;
  cuda::launch_attention_merge(plan, changed, stream);
}

TEST(CudaAttention, IsCaughtWhenFaultsArePlanted) {
  EXPECT_EQ(verdict(kEmulated, "cuda.flash", kShort), "passed");
  EXPECT_EQ(verdict(kEmulated, "cuda.split_fixed", kCut), "passed");
  EXPECT_EQ(verdict({kEmulated.pack, one_key_more, kEmulated.merge}, "cuda.flash", kShort), "budget");
  EXPECT_EQ(verdict({kEmulated.pack, slightly_other_scale, kEmulated.merge}, "cuda.flash", kShort), "budget");
  EXPECT_EQ(verdict({kEmulated.pack, kEmulated.tiles, without_last_piece}, "cuda.split_fixed", kCut),
            "budget");
  EXPECT_EQ(verdict({kEmulated.pack, kEmulated.tiles, sink_in_each_piece}, "cuda.split_fixed", kCut),
            "budget");
  EXPECT_EQ(verdict({kEmulated.pack, kEmulated.tiles, no_sink}, "cuda.split_fixed", kCut), "budget");
}

}  // namespace
}  // namespace assay
