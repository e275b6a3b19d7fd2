// mla_attention.cuh and mla_product.cuh under the emulator, and what is kept of their matrices.
#include "kernels/cuda/attention_launch.cuh"

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "core/system/lasting_memory.h"
#include "kernels/cuda/device_weight_cache.h"
#include "kernels/cuda/mla_launch.cuh"
#include "kernels/harness/made_weight.h"
#include "tests/kernels/cuda/emulated.h"

namespace assay {
namespace {

void add_mla(Registry& registry, cuda::Machine& machine) {
  cuda::add_mla_kernels(registry, machine,
                        {.attention = {.pack = cuda::launch_pack_heads,
                                       .tiles = cuda::launch_mla_attention,
                                       .merge = cuda::launch_attention_merge},
                         .into = cuda::launch_into_latents,
                         .out_of = cuda::launch_out_of_latents});
}

void add_expanded(Registry& registry, cuda::Machine& machine) {
  cuda::add_expanded_kernels(registry, machine,
                             {.attention = {.pack = cuda::launch_pack_heads,
                                            .tiles = cuda::launch_attention,
                                            .merge = cuda::launch_attention_merge},
                              .into = cuda::launch_into_latents,
                              .out_of = cuda::launch_out_of_latents});
}

bool is_long(const CaseId& id) {
  return id.number("keys", 1) > 2000;
}

bool is_wide(const CaseId& id) {
  return id.number("rank", 64) == 512;
}
bool is_zero_mean(const CaseId& id) {
  return id.input() == InputKind::zero_mean;
}

TEST(CudaLatent, PassesItsGrid) {
  EXPECT_GT(pass_emulated(90, add_mla, [](const CaseId& id) { return !is_long(id) && !is_wide(id); }), 20u);
}

// DeepSeek's 576 and 512 columns, in bfloat16 by warpgroups. Of sm_90 steps are as long as they get, with two of them under way; of
// sm_89 they are short, and in float32 there is one.
TEST(CudaLatent, PassesAtFullWidth) {
  for (const int sm : {89, 90})
    EXPECT_GT(pass_emulated(sm, add_mla,
                            [](const CaseId& id) { return !is_long(id) && is_wide(id) && is_zero_mean(id); }),
              8u);
}

TEST(CudaLatent, PassesInPieces) {
  EXPECT_GT(pass_emulated(90, add_mla, [](const CaseId& id) { return is_long(id) && is_zero_mean(id); }), 1u);
}

// What `kernel` makes of a case on a board, as bits; how many blocks went together.
struct LatentResult {
  std::vector<double> y;
  unsigned cluster = 0;
  bool wgmma = false;
};
LatentResult latents_by(std::string_view name, const cuda::DeviceLimits& limits, const std::string& id) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(limits);
  Registry registry;
  add_mla(registry, *machine);
  const auto made = cases_of<MlaCall>().make(CaseId::parse(id));
  ReferenceOps ops(made->arithmetic, 1);
  const MlaCall call = made->call(ops);
  for (const Kernel<MlaCall>& kernel : registry.of<MlaCall>()) {
    if (kernel.name != name) continue;
    LatentResult result;
    for (const cuda::LaunchPlan& plan : kernel.plans(limits, made->arithmetic, call)) {
      if (plan.kernel == "mla_attention") result.cluster = plan.cluster;
      result.wgmma |= plan.kernel == "mla_wgmma";
    }
    result.y = ops.download(kernel.run(ops, call));
    return result;
  }
  return {};
}

// 128 heads: blocks in pairs, each of which brings half of the keys for both. Pages in no order, steps that end within
// their 32 rows, several sequences, pieces; and without pairs the same bits.
TEST(CudaLatent, PairsOfBlocksReadTheCacheOnce) {
  const auto pass = [](const std::string& id) {
    const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(90);
    Registry registry;
    add_mla(registry, *machine);
    std::size_t passed = 0;
    for (const auto& examiner : examiners(registry)) {
      if (examiner->op() != "mla") continue;
      for (const CaseResult& r :
           examiner->examine(CaseId::parse(id), [](const KernelLabel&) { return true; }, {})) {
        passed += r.status == CaseStatus::passed ? 1 : 0;
        EXPECT_EQ(r.status, CaseStatus::passed)
            << r.kernel << " " << r.id << ": " << r.check << ": " << r.detail;
      }
    }
    return passed;
  };
  cuda::DeviceLimits alone = *cuda::limits_of(90);
  alone.sm = 80;  // of which nothing else differs that its plan looks at
  for (const char* id :
       {"mla:F32:way=absorbed:heads=128:rank=24:nope=8:rope=8:v=8:keys=75:queries=2:seqs=2:act=bf16:"
        "page=16:in=zero:seed=1",
        "mla:F32:way=absorbed:heads=128:rank=24:nope=8:rope=8:v=8:keys=300:queries=1:act=bf16:in=zero:"
        "seed=1"}) {
    EXPECT_EQ(pass(id), 2u);
    const LatentResult pairs = latents_by("cuda.absorbed_fixed", *cuda::limits_of(90), id),
                       single = latents_by("cuda.absorbed_fixed", alone, id);
    EXPECT_EQ(pairs.cluster, 2u);
    EXPECT_EQ(single.cluster, 1u);
    EXPECT_FALSE(pairs.y.empty());
    EXPECT_EQ(pairs.y, single.y);
  }
}

// DeepSeek's widths by warpgroups, beside mma.sync of another board: two tiles of heads, steps that end within their 64
// keys, pages in no order, queries that see different keys, pieces; few heads; and more rows than a tile has.
TEST(CudaLatent, WarpgroupsReadTheCacheWhereItLies) {
  const std::string widths = "rank=512:nope=8:rope=64:v=8:act=bf16:in=zero:seed=1:";
  for (const std::string sizes : {"heads=128:keys=131:queries=1:seqs=2:page=16", "heads=5:keys=270:queries=3",
                                  "heads=40:keys=67:queries=2:page=8", "heads=2:keys=1:queries=1"}) {
    const std::string id = "mla:F32:way=absorbed:" + widths + sizes;
    const LatentResult of_hopper = latents_by("cuda.absorbed_fixed", *cuda::limits_of(90), id),
                       of_ampere = latents_by("cuda.absorbed_fixed", *cuda::limits_of(80), id);
    EXPECT_TRUE(of_hopper.wgmma) << id;
    EXPECT_FALSE(of_ampere.wgmma) << id;
    ASSERT_EQ(of_hopper.y.size(), of_ampere.y.size());
    ASSERT_FALSE(of_hopper.y.empty());
    // Weights of the softmax, relative to other maxima, and results are rounded to bfloat16.
    for (std::size_t i = 0; i < of_hopper.y.size(); ++i)
      ASSERT_NEAR(of_hopper.y[i], of_ampere.y[i], 0x1p-6) << id << " " << i;
  }
}

TEST(CudaLatent, PassesAtItsEdges) {
  const auto small = [](const CaseId& id) { return id.number("rank") <= 40 && id.number("heads") <= 66; };
  EXPECT_GT(pass_emulated(90, add_mla, small, true), 15u);
  EXPECT_GT(pass_emulated(89, add_expanded, small, true), 4u);
}

TEST(CudaExpanded, PassesItsGrid) {
  EXPECT_GT(pass_emulated(89, add_expanded,
                          [](const CaseId& id) {
                            const bool first = is_zero_mean(id) && id.number("parts") == 0;
                            return !is_long(id) && (!is_wide(id) || first);
                          }),
            15u);
}

// --- what is kept from call to call

// Ordinary memory in the place of a device's.
class CountedBlocks final : public cuda::DeviceBlocks {
 public:
  ~CountedBlocks() override { EXPECT_EQ(live, 0); }
  void* allocate(std::size_t bytes) override {
    ++live;
    return operator new(bytes);
  }
  void upload(void* to, const void* host, std::size_t bytes) override {
    ++uploads;
    std::memcpy(to, host, bytes);
  }
  void free(void* block) override {
    --live;
    operator delete(block);
  }
  int live = 0, uploads = 0;
};

TEST(CudaKept, BytesAreCopiedOnceAndAnewWhereOthersLieInTheirPlace) {
  CountedBlocks blocks;
  cuda::DeviceWeightCache kept(blocks);
  std::vector<float> weight(1000, 1.0F);
  const auto first = [&](std::size_t count) {
    return static_cast<const float*>(kept.of_bytes(weight.data(), count * sizeof(float)))[0];
  };
  EXPECT_EQ(first(1000), 1.0F);
  EXPECT_EQ(first(1000), 1.0F);
  EXPECT_EQ(blocks.uploads, 1);
  EXPECT_EQ(first(500), 1.0F);  // a part of it is another
  EXPECT_EQ(blocks.uploads, 2);
  std::fill(weight.begin(), weight.end(), 2.0F);
  EXPECT_EQ(first(1000), 2.0F);
  EXPECT_EQ(blocks.uploads, 3);
  EXPECT_EQ(blocks.live, 2);
}

// One element in the middle, far from the first and the last.
TEST(CudaKept, OneChangedNumberOfOrdinaryMemoryIsSeen) {
  CountedBlocks blocks;
  cuda::DeviceWeightCache kept(blocks);
  std::vector<float> weight(1000, 1.0F);
  const auto at = [&](std::size_t i) {
    return static_cast<const float*>(kept.of_bytes(weight.data(), weight.size() * sizeof(float)))[i];
  };
  EXPECT_EQ(at(777), 1.0F);
  weight[777] = 3.0F;
  EXPECT_EQ(at(777), 3.0F);
  EXPECT_EQ(blocks.uploads, 2);
}

// A mapped file's bytes are not looked at again while it is mapped; where another comes to lie at its address, its
// copy is another, and the first one's is freed, whatever their bytes.
TEST(CudaKept, AnotherFileAtTheSameAddressIsAnotherSource) {
  CountedBlocks blocks;
  cuda::DeviceWeightCache kept(blocks);
  std::vector<float> weight(1000, 1.0F);
  const auto bytes = std::as_bytes(std::span<const float>(weight));
  const auto at = [&](std::size_t i) {
    return static_cast<const float*>(kept.of_bytes(bytes.data() + 400, 1200))[i];
  };
  {
    const LastingMemory first(bytes);
    EXPECT_EQ(at(77), 1.0F);
    weight[177] = 3.0F;
    EXPECT_EQ(at(77), 1.0F);
    EXPECT_EQ(blocks.uploads, 1);
  }
  const LastingMemory second(bytes);
  EXPECT_EQ(at(77), 3.0F);
  EXPECT_EQ(blocks.uploads, 2);
  EXPECT_EQ(blocks.live, 1);
}

// What is made of a weight depends on all of its scales, not the first.
TEST(CudaKept, WhatWasMadeOfOtherScalesIsMadeAnew) {
  CountedBlocks blocks;
  cuda::DeviceWeightCache kept(blocks);
  const std::vector<std::byte> codes(64 * 64);
  std::vector<float> scales(4, 1.0F);
  const std::string name = "w";
  WeightView weight{.name = &name, .rows = 64, .columns = 64};
  weight.kind = FormKind::scaled;
  weight.type = ElementType::F8_E4M3;
  weight.codes = codes.data();
  weight.row_bytes = 64;
  weight.scales = reinterpret_cast<const std::byte*>(scales.data());
  weight.block_rows = weight.block_columns = 32;
  weight.scale_columns = 2;
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::vector<std::byte>(8);
  };
  kept.of_made(weight, "grid", make);
  kept.of_made(weight, "grid", make);
  EXPECT_EQ(made, 1);
  scales[3] = 2.0F;
  kept.of_made(weight, "grid", make);
  EXPECT_EQ(made, 2);
}

// Two layers of one model, the same layer again, its other way of multiplying, and another model in its
// place.
TEST(CudaKept, MatricesOfLatentAttentionAreMadeOnceAWeight) {
  CountedBlocks blocks;
  cuda::DeviceWeightCache kept(blocks);
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(90, &kept);
  Registry registry;
  add_mla(registry, *machine);
  add_expanded(registry, *machine);
  const auto compute = [&](ReferenceOps& ops, const MlaCall& call) {
    for (const Kernel<MlaCall>& kernel : registry.of<MlaCall>()) {
      if (kernel.takes(ops.arithmetic(), call)) return ops.download(kernel.run(ops, call));
    }
    return std::vector<double>();
  };
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size() || a.empty()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(std::fabs(a[i] - b[i]) <= 1e-4)) return false;
    }
    return true;
  };
  ReferenceOps ops(Arithmetic{Precision::f32}, 1);
  const auto operands = cases_of<MlaCall>().make(CaseId::parse(
      "mla:F32:way=absorbed:heads=3:rank=40:nope=24:rope=8:v=20:keys=37:queries=5:in=zero:seed=1"));
  MlaCall call = operands->call(ops);
  std::vector<float> w(call.kv_b.rows * call.kv_b.columns);
  std::memcpy(w.data(), call.kv_b.codes, w.size() * sizeof(float));
  call.kv_b.codes = reinterpret_cast<const std::byte*>(w.data());
  EXPECT_TRUE(near(compute(ops, call), ops.download(run_reference(ops, call))));
  EXPECT_EQ(blocks.uploads, 2);  // keys' and values'
  EXPECT_TRUE(near(compute(ops, call), ops.download(run_reference(ops, call))));
  EXPECT_EQ(blocks.uploads, 2);
  call.form = MlaForm::naive;  // keys' matrices lie the other way, values' are the same
  EXPECT_TRUE(near(compute(ops, call), ops.download(run_reference(ops, call))));
  EXPECT_EQ(blocks.uploads, 3);
  for (float& x : w) x = -2 * x;
  EXPECT_TRUE(near(compute(ops, call), ops.download(run_reference(ops, call))));
  call.form = MlaForm::absorbed;
  EXPECT_TRUE(near(compute(ops, call), ops.download(run_reference(ops, call))));
  ReferenceOps rounded(Arithmetic{Precision::bf16}, 1);
  const int before = blocks.uploads;
  compute(rounded, call);  // of other elements
  EXPECT_EQ(blocks.uploads, before + 2);
}

}  // namespace
}  // namespace assay
