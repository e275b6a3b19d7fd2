// decode_attention.cuh under the emulator and its plans: calls that it is for and what goes beside them, and faults planted
// around it, each seen.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/error.h"
#include "kernels/cuda/attention_launch.cuh"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

using cuda::AttentionShape;
using cuda::SplitRule;

constexpr cuda::AttentionLaunchers kStreaming = {
    .pack = cuda::launch_pack_heads, .tiles = cuda::launch_attention, .merge = cuda::launch_attention_merge};

// What the examination says of `kernel`, which is to be of decode_attention, by these launchers.
std::string streamed_verdict(const std::string& id, const cuda::AttentionLaunchers& launchers = kStreaming,
                             std::string_view kernel = "cuda.auto") {
  const auto machine = cuda::emulated_machine(90);
  Registry registry;
  cuda::add_attention_kernels(registry, *machine, launchers);
  const auto made = cases_of<AttentionCall>().make(CaseId::parse(id));
  ReferenceOps ops(made->arithmetic, 1);
  for (const Kernel<AttentionCall>& k : registry.of<AttentionCall>()) {
    if (k.name != kernel) continue;
    const std::vector<cuda::LaunchPlan> plans = k.plans(machine->limits(), made->arithmetic, made->call(ops));
    EXPECT_EQ(plans[0].kernel, "decode_attention") << id;
  }
  for (const auto& examiner : examiners(registry)) {
    if (examiner->op() != "attention") continue;
    for (const CaseResult& r : examiner->examine(
             CaseId::parse(id), [&](const KernelLabel& label) { return label.name == kernel; }, {}))
      return r.status == CaseStatus::passed ? "passed" : r.check + ": " + r.detail;
  }
  return "not examined";
}

// Every instance, in both arithmetics; in one piece and in several; with windows, caps, sinks, pages that are not whole
// steps, several sequences, and widths that no quad fills.
TEST(CudaDecoding, Streams) {
  for (const char* kernel : {"cuda.auto", "cuda.split"}) {
    for (const char* act : {"f32", "bf16"}) {
      for (const char* form : {"heads=8:kv=2:dim=128:v=128:keys=301:queries=1:page=16:sinks=1",
                               "heads=4:kv=1:dim=128:v=72:keys=203:queries=2:page=3:window=77",
                               "heads=5:kv=1:dim=100:v=128:keys=70:queries=3:seqs=3:page=7:cap=20",
                               "heads=16:kv=1:dim=128:v=128:keys=40:queries=1:seqs=2:sinks=1",
                               "heads=3:kv=1:dim=64:v=64:keys=290:queries=2:window=150:page=16:sinks=1",
                               "heads=12:kv=1:dim=24:v=60:keys=540:queries=1:page=5",
                               "heads=2:kv=1:dim=66:v=131:keys=45:queries=4:cap=3",
                               "heads=1:kv=1:dim=256:v=160:keys=160:queries=8:window=20:sinks=1",
                               "heads=2:kv=2:dim=1:v=1:keys=1:queries=1"}) {
        const std::string id = fmt::format("attention:F32:act={}:{}:in=zero:seed=3", act, form);
        EXPECT_EQ(streamed_verdict(id, kStreaming, kernel), "passed") << kernel << " " << id;
      }
    }
  }
}

// The result's rows of the first sequence.
std::vector<double> first_rows(Registry& registry, Ops& ops, const AttentionCall& call, std::size_t rows) {
  for (const Kernel<AttentionCall>& kernel : registry.of<AttentionCall>()) {
    if (kernel.name == "cuda.auto") return ops.download(kernel.run(ops, call).row_range(0, rows));
  }
  return {};
}

// A sequence has its bits whoever decodes beside it: one of 16 rows, for which the instance is another, or one of so many
// that another kernel takes it.
TEST(CudaDecoding, BitsOfASequenceAreItsOwn) {
  const auto machine = cuda::emulated_machine(90);
  Registry registry;
  cuda::add_attention_kernels(registry, *machine, kStreaming);
  for (const std::string act : {"f32", "bf16"}) {
    for (const std::string queries : {"4", "5", "17"}) {
      const auto made = cases_of<AttentionCall>().make(
          CaseId::parse("attention:F32:act=" + act + ":heads=4:kv=1:dim=72:v=64:keys=401:queries=" + queries +
                        ":seqs=2:page=16:sinks=1:in=zero:seed=1"));
      ReferenceOps ops(made->arithmetic, 1);
      AttentionCall call = made->call(ops);
      call.sequences[0].queries = 1;
      AttentionCall alone = call;
      alone.sequences.resize(1);
      const std::vector<double> bits = first_rows(registry, ops, alone, 1);
      EXPECT_FALSE(bits.empty());
      EXPECT_EQ(first_rows(registry, ops, call, 1), bits) << act << " " << queries;
    }
  }
}

// What lies before a window's first key, or behind the last, may be anything: it is not read, were it only to be multiplied by
// 0.
TEST(CudaDecoding, ReadsNoKeyThatNobodySees) {
  const auto machine = cuda::emulated_machine(90);
  Registry registry;
  cuda::add_attention_kernels(registry, *machine, kStreaming);
  for (const std::string page : {"0", "16"}) {
    const auto made = cases_of<AttentionCall>().make(
        CaseId::parse("attention:F32:heads=4:kv=1:dim=64:v=64:keys=301:queries=1:window=150:page=" + page +
                      ":in=zero:seed=1"));
    ReferenceOps ops(made->arithmetic, 1);
    AttentionCall call = made->call(ops);
    SequenceMetadata& sequence = call.sequences[0];
    sequence.keys = 290;
    const std::vector<double> bits = first_rows(registry, ops, call, 1);
    for (std::size_t i = 0; i < 301; ++i) {
      if (i >= 140 && i < 290) continue;
      fill_row_with_nan(sequence.key_rows.base, sequence.key_rows.row(i));
      fill_row_with_nan(sequence.value_rows.base, sequence.value_rows.row(i));
    }
    EXPECT_EQ(first_rows(registry, ops, call, 1), bits) << page;
  }
}

// --- faults

using cuda::AttentionArgs;
using cuda::AttentionPlan;

template <class Change>
void launch_changed(const AttentionPlan& plan, const AttentionArgs& a, cuda::Stream stream, Change change) {
  AttentionArgs changed = a;
  std::vector<cuda::SequenceArgs> sequences(a.sequences, a.sequences + 1);
  std::vector<cuda::AttentionWork> work(a.work, a.work + plan.work.size());
  changed.sequences = sequences.data();
  changed.work = work.data();
  change(changed, sequences[0], work);
  cuda::launch_attention(plan, changed, 4, stream);
}
void columns_of_queries_swapped(const AttentionPlan& plan, const AttentionArgs& a, unsigned,
                                cuda::Stream stream) {
  const auto* q = static_cast<const float*>(a.q);
  std::vector<float> swapped(q, q + a.heads * a.head_stride);  // of one token
  for (std::size_t i = 0; i + 4 <= swapped.size(); i += 4) std::swap(swapped[i + 1], swapped[i + 2]);
  launch_changed(plan, a, stream, [&](AttentionArgs& changed, auto&, auto&) { changed.q = swapped.data(); });
}
void pages_of_the_step_before(const AttentionPlan& plan, const AttentionArgs& a, unsigned,
                              cuda::Stream stream) {
  std::vector<std::int32_t> pages(a.sequences[0].value_pages, a.sequences[0].value_pages + 8);
  std::rotate(pages.begin(), pages.end() - 1, pages.end());
  launch_changed(plan, a, stream, [&](AttentionArgs&, cuda::SequenceArgs& sequence, auto&) {
    sequence.value_pages = pages.data();
  });
}
void no_mask(const AttentionPlan& plan, const AttentionArgs& a, unsigned, cuda::Stream stream) {
  launch_changed(plan, a, stream, [](AttentionArgs&, cuda::SequenceArgs& sequence, auto&) {
    sequence.key_count += sequence.queries - 1;  // every query sees what the last one does
  });
}
void first_key_left_out(const AttentionPlan& plan, const AttentionArgs& a, unsigned, cuda::Stream stream) {
  launch_changed(plan, a, stream, [](AttentionArgs&, auto&, std::vector<cuda::AttentionWork>& work) {
    for (cuda::AttentionWork& w : work) ++w.key_begin;
  });
}
void without_corrections(const AttentionPlan& plan, const AttentionArgs& a, cuda::Stream stream) {
  const std::size_t slots = plan.partials * a.kv_heads * a.tiling.rows;
  for (std::size_t i = 0; i < slots; ++i) a.partial_stats[2 * i] = 0;
  cuda::launch_attention_merge(plan, a, stream);
}

TEST(CudaDecoding, IsCaughtWhenFaultsArePlanted) {
  const std::string one = "attention:F32:heads=8:kv=1:dim=64:v=64:keys=128:queries=1:page=16:in=zero:seed=1";
  const std::string few = "attention:F32:heads=2:kv=1:dim=64:v=64:keys=20:queries=4:in=zero:seed=1";
  const std::string cut = "attention:F32:heads=4:kv=1:dim=128:v=128:keys=600:queries=1:in=zero:seed=1";
  const auto budget = [](const std::string& id, const cuda::AttentionLaunchers& launchers) {
    return streamed_verdict(id, launchers).substr(0, 6);
  };
  EXPECT_EQ(budget(one, kStreaming), "passed");
  EXPECT_EQ(budget(few, kStreaming), "passed");
  EXPECT_EQ(budget(cut, kStreaming), "passed");
  EXPECT_EQ(budget(one, {kStreaming.pack, columns_of_queries_swapped, kStreaming.merge}), "budget");
  EXPECT_EQ(budget(one, {kStreaming.pack, pages_of_the_step_before, kStreaming.merge}), "budget");
  EXPECT_EQ(budget(few, {kStreaming.pack, no_mask, kStreaming.merge}), "budget");
  EXPECT_EQ(budget(one, {kStreaming.pack, first_key_left_out, kStreaming.merge}), "budget");
  EXPECT_EQ(budget(cut, {kStreaming.pack, kStreaming.tiles, without_corrections}), "budget");
}

// --- plans

AttentionShape decoding_shape(std::size_t group, std::size_t columns,
                              std::vector<cuda::SequenceShape> sequences) {
  return {.heads = 8 * group,
          .kv_heads = 8,
          .qk_dim = columns,
          .v_dim = columns,
          .sequences = std::move(sequences)};
}

TEST(CudaDecoding, PlansFitEveryArchitecture) {
  for (const cuda::DeviceLimits& limits : cuda::all_device_limits()) {
    for (const std::size_t columns : {1, 64, 66, 128, 200, 256}) {
      for (const std::size_t group : {1, 8, 16}) {
        const AttentionShape shape = decoding_shape(group, columns, {{1, 4099}});
        if (!cuda::may_stream(shape, shape.sequences[0])) {
          EXPECT_EQ(group, 16u);
          EXPECT_GT(columns, 128u);
          continue;
        }
        const AttentionPlan plan = cuda::plan_decode_attention(limits, shape, SplitRule::decoding);
        EXPECT_TRUE(plan.tiles.fits) << plan.tiles.why;
        EXPECT_TRUE(plan.merge.fits) << plan.merge.why;
        EXPECT_GE(plan.tiles.blocks_per_sm, 2u) << limits.sm << " " << columns << " " << group;
        EXPECT_GE(plan.streamed_columns, columns);
        EXPECT_EQ(plan.tiling.rows, group <= 8 ? 8u : 16u);
        EXPECT_EQ(plan.tiles.grid.count(), plan.work.size() * 8);
        EXPECT_EQ(plan.merge.grid.z, group);  // rows that there are
      }
    }
  }
}

TEST(CudaDecoding, IsForFewRowsOfHeadsThatRegistersHold) {
  const auto streams = [](std::size_t group, std::size_t columns, std::size_t queries) {
    return cuda::may_stream(decoding_shape(group, columns, {}), {queries, 5000});
  };
  EXPECT_TRUE(streams(16, 128, 1));
  EXPECT_TRUE(streams(4, 128, 4));
  EXPECT_FALSE(streams(17, 128, 1));
  EXPECT_FALSE(streams(4, 128, 5));
  EXPECT_TRUE(streams(8, 129, 1));
  EXPECT_FALSE(streams(9, 129, 1));
  EXPECT_TRUE(streams(1, 256, 8));
  EXPECT_FALSE(streams(1, 257, 1));
  const AttentionShape many = decoding_shape(17, 128, {{1, 100}});
  EXPECT_THROW(cuda::plan_decode_attention(*cuda::limits_of(90), many, SplitRule::decoding), Error);
}

// Keys of a piece as streamed_split's comment has them: keys / (528 / 8) in whole 64s, at least 32 a row.
TEST(CudaDecoding, PiecesFillADeviceAndAreNotTooSmall) {
  const auto split = [](std::size_t group, std::size_t keys, std::size_t window = 0) {
    AttentionShape shape = decoding_shape(group, 128, {});
    shape.window = window;
    return cuda::streamed_split(shape, {1, keys});
  };
  EXPECT_EQ(split(4, 32'768), 512u);  // 496.5
  EXPECT_EQ(split(4, 131'072), 2'048u);
  EXPECT_EQ(split(4, 4'096), 128u);
  EXPECT_EQ(split(1, 4'096), 128u);
  EXPECT_EQ(split(8, 4'096), 256u);
  EXPECT_EQ(split(16, 4'096), 512u);
  EXPECT_EQ(split(4, 131'072, 4'096), 128u);  // what it sees counts
  AttentionShape one_head = decoding_shape(1, 128, {});
  one_head.heads = one_head.kv_heads = 1;
  EXPECT_EQ(cuda::streamed_split(one_head, {1, 131'072}), 1'024u);  // 128 pieces
  const AttentionPlan plan = cuda::plan_decode_attention(
      *cuda::limits_of(90), decoding_shape(4, 128, {{1, 32'768}}), SplitRule::decoding);
  EXPECT_EQ(plan.tiles.grid.count(), 512u);
}

// Every key that a row sees is of one piece, cuts are at multiples of the sequence's split, and a sequence's pieces are the
// same among others.
TEST(CudaDecoding, PiecesCoverWhatASequenceSees) {
  for (const std::size_t window : {0, 1, 700}) {
    AttentionShape shape = decoding_shape(4, 64, {{1, 4099}, {0, 9}, {3, 1025}, {4, 70'000}, {1, 1}});
    shape.window = window;
    const AttentionPlan plan = cuda::plan_decode_attention(*cuda::limits_of(90), shape, SplitRule::decoding);
    for (std::size_t i = 0; i < shape.sequences.size(); ++i) {
      const cuda::SequenceShape& s = shape.sequences[i];
      std::map<std::size_t, std::size_t> pieces;  // from, to
      for (const cuda::AttentionWork& w : plan.work) {
        if (w.sequence == i) pieces[w.key_begin] = w.key_end;
      }
      if (s.queries == 0) {
        EXPECT_TRUE(pieces.empty());
        continue;
      }
      const std::size_t first_seen = s.keys - s.queries + 1, split = cuda::streamed_split(shape, s);
      std::size_t at = window != 0 && first_seen > window ? first_seen - window : 0;
      for (const auto& [from, to] : pieces) {
        EXPECT_EQ(from, at);
        EXPECT_LT(from, to);
        EXPECT_EQ(from / split, (to - 1) / split);
        at = to;
      }
      EXPECT_EQ(at, s.keys);
      AttentionShape alone = shape;
      alone.sequences = {s};
      EXPECT_EQ(cuda::plan_decode_attention(*cuda::limits_of(90), alone, SplitRule::decoding).work.size(),
                pieces.size());
    }
  }
}

// 2 sequences × 8 key heads are 16 blocks, 528 / 16 = 33 pieces of ⌈4099 / 33⌉ = 125, in whole 64s 128 keys: 33 of each.
TEST(CudaDecoding, CutsByShapeAsStated) {
  const AttentionShape shape = decoding_shape(4, 128, {{1, 4099}, {1, 4099}});
  const AttentionPlan plan = cuda::plan_decode_attention(*cuda::limits_of(80), shape, SplitRule::by_shape);
  EXPECT_EQ(plan.work.size(), 66u);
  const AttentionShape many = decoding_shape(4, 128, std::vector<cuda::SequenceShape>(66, {1, 4099}));
  EXPECT_TRUE(cuda::plan_decode_attention(*cuda::limits_of(90), many, SplitRule::by_shape).merges.empty());
}

}  // namespace
}  // namespace assay
