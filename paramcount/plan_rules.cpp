#include "paramcount/plan_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/model/parallel_words.h"
#include "paramcount/plan_cut.h"

namespace assay {
namespace {

class Judge {
 public:
  Judge(Engine engine, const ModuleTree& tree, const Layout& layout, const PlanOptions& options)
      : engine_(engine), tree_(tree), layout_(layout), options_(options) {}

  Ruling run() {
    heads();
    experts();
    stages();
    for_each_spec(tree_, [&](const TensorSpec& spec, const Occurrence& where) {
      if (where.tower || (where.mtp && !options_.with_mtp)) return;
      if (spec.storage == Storage::own && spec.shape.size() >= 2 && !spec.bias) matrix(spec);
    });
    return std::move(ruling_);
  }

 private:
  void refuse(std::string_view part, std::string tensors, std::string arithmetic, std::string message,
              bool silent = false) {
    for (Refusal& refusal : ruling_.refusals) {
      if (refusal.part != part || refusal.message != message) continue;
      if (refusal.tensors.find(tensors) == std::string::npos) refusal.tensors += ", " + tensors;
      return;
    }
    ruling_.refusals.push_back(
        {engine_, std::string(part), std::move(tensors), std::move(arithmetic), std::move(message), silent});
  }
  void note(std::string text) {
    if (std::find(ruling_.notes.begin(), ruling_.notes.end(), text) == ruling_.notes.end())
      ruling_.notes.push_back(std::move(text));
  }

  // vllm/config: verify_with_parallel_config. Key and value heads are repeated when tp is a multiple of them.
  void heads() {
    for (const AttentionGeometry& g : tree_.attention) {
      if (g.heads % layout_.tp != 0) {
        refuse("attention", "heads",
               fmt::format("{} heads / {} = {}", g.heads, layout_.tp, share_text(g.heads, layout_.tp)),
               heads_refusal(g.heads, layout_.tp));
      }
      if (g.kind == AttentionGeometry::Kind::latent) {
        if (layout_.tp > 1)
          note(fmt::format("the latent KV cache is the same on all {} ranks of a tensor-parallel group",
                           layout_.tp));
        continue;
      }
      if (layout_.tp > g.kv_heads && layout_.tp % g.kv_heads == 0)
        note(fmt::format("{} key and value heads are repeated over {} ranks: the cache grows {} times",
                         g.kv_heads, layout_.tp, layout_.tp / g.kv_heads));
      const bool deals = g.kv_heads % layout_.tp == 0 || layout_.tp % g.kv_heads == 0;
      if (!deals)
        refuse("attention", "key and value heads",
               fmt::format("{} key and value heads over {} ranks", g.kv_heads, layout_.tp),
               key_heads_refusal(g.kv_heads, layout_.tp));
    }
  }

  void experts() {
    const std::uint64_t e = tree_.experts, ep = layout_.ep;
    if (e == 0) {
      if (ep > 1)
        refuse(
            "routed experts", "none", "a dense model has no experts",
            engine_ == Engine::vllm
                ? "Number of experts in the model must be greater than 0 when expert parallelism is enabled."
                : fmt::format("EP size {} is greater than the number of experts 0.", ep));
      return;
    }
    if (engine_ == Engine::vllm && ep > 1 && ep != layout_.moe_ranks())
      note(fmt::format(
          "vLLM deals experts over all tp × dp = {0} ranks: --enable-expert-parallel gives ep={0}, "
          "not {1}",
          layout_.moe_ranks(), ep));
    if (ep > e)
      refuse("routed experts", "experts", fmt::format("{} experts over {} groups", e, ep),
             fmt::format("EP size {} is greater than the number of experts {}.", ep, e));
    if (ep == 1 && layout_.tp > e && engine_ != Engine::trtllm)
      refuse("routed experts", "experts", fmt::format("{} experts, tp={}", e, layout_.tp),
             fmt::format("Tensor parallel size {} is greater than the number of experts {}.", layout_.tp, e));
    if (e % ep == 0) return;
    const std::string arithmetic = fmt::format("{} experts / {} = {}", e, ep, share_text(e, ep));
    if (engine_ == Engine::trtllm)  // tensorrt_llm/mapping.py, ep_experts: the quotient is floored
      refuse("routed experts", "experts", arithmetic,
             fmt::format("no message: {} experts a rank, and the last {} belong to nobody", e / ep, e % ep),
             true);
    else if (engine_ == Engine::sglang)
      refuse("routed experts", "experts", arithmetic, experts_refusal());
    else
      note(fmt::format("{}: some ranks hold one expert more", arithmetic));
  }

  void stages() {
    if (layout_.pp > tree_.layers)
      refuse("layers", "layers", fmt::format("{} layers over {} stages", tree_.layers, layout_.pp),
             engine_ == Engine::trtllm
                 ? "pp size cannot be larger than num_hidden_layers"
                 : fmt::format("{} layers cannot fill {} pipeline stages", tree_.layers, layout_.pp));
    else if (layout_.pp > 1 && tree_.layers % layout_.pp != 0)
      note(
          fmt::format("{} layers over {} stages: some stages hold one layer more", tree_.layers, layout_.pp));
  }

  // The group TensorRT-LLM really uses for an MLP: modeling_deepseekv3.py, _compute_mlp_tp_size.
  std::uint64_t group_of(const TensorSpec& spec) {
    std::uint64_t group = cut_group(spec, layout_);
    if (engine_ == Engine::vllm && spec.part == Part::routed_expert && layout_.ep > 1) group = 1;
    const bool mlp = spec.part == Part::dense_mlp || spec.part == Part::shared_expert;
    const std::uint64_t n = options_.format.block_rows;
    if (engine_ != Engine::trtllm || !mlp || !in_blocks(spec) || n == 0) return group;
    const std::uint64_t size = spec.parallel.members.front().size;
    if (size % n != 0) return group;
    std::uint64_t lowered = std::gcd(size / n, group);
    if (lowered > options_.gpus_per_node) lowered = std::gcd(lowered, options_.gpus_per_node);
    if (lowered != group)
      note(fmt::format(
          "TensorRT-LLM silently cuts the {} over {} ranks instead of {}: {} {} is {} blocks of {}",
          title(spec.part), lowered, group, key_of(spec, size), size, size / n, n));
    return lowered;
  }

  bool in_blocks(const TensorSpec& spec) const {
    return quantizes(options_.format, spec, 0) && options_.format.block_rows > 1;
  }

  void matrix(const TensorSpec& spec) {
    if (spec.parallel.partition == Partition::replicated || spec.parallel.partition == Partition::vocabulary)
      return;
    const std::uint64_t group = group_of(spec);
    for (const PartitionedPart& member : spec.parallel.members) {
      const bool heads = member.units != member.size;
      if (heads && member.units % group != 0) continue;  // told by heads()
      if (!heads && member.size % group != 0) {
        refuse(title(spec.part), short_name(spec),
               fmt::format("{} {}/{} = {}", key_of(spec, member.size), member.size, group,
                           share_text(member.size, group)),
               engine_ == Engine::sglang && spec.part == Part::routed_expert
                   ? "assert intermediate_size % self.moe_tp_size == 0"
                   : fmt::format("{} is not divisible by {}", member.size, group));
        continue;
      }
      if (quantizes(options_.format, spec, 0)) {
        in_blocks(spec) ? block(spec, member, group) : groups(spec, member, group);
      }
    }
  }

  void block(const TensorSpec& spec, const PartitionedPart& member, std::uint64_t group) {
    const std::uint64_t share = member_share(member, spec.parallel.partition, group);
    const bool rows = spec.parallel.partition == Partition::rows, expert = spec.part == Part::routed_expert;
    const std::uint64_t b = rows ? options_.format.block_columns : options_.format.block_rows;
    if (b == 0 || share % b == 0) return;
    if (group == 1 && (rows || !expert)) return;  // uncut, a last block may be half empty
    const std::string arithmetic = cut_text(spec, member.size, group, share) + multiple_text(share, b);
    // TensorRT-LLM's own words are not known.
    const std::string message = engine_ == Engine::trtllm
                                    ? fmt::format("its block-scaled GEMMs take whole blocks of {} only", b)
                                    : block_refusal(spec, share, b);
    refuse(title(spec.part), short_name(spec), arithmetic, message);
  }

  // Scales in groups along the rows: INT4 (AWQ, GPTQ and the Marlin kernels behind them), NVFP4, MXFP4.
  void groups(const TensorSpec& spec, const PartitionedPart& member, std::uint64_t group) {
    const WeightFormat& f = options_.format;
    const std::uint64_t share = member_share(member, spec.parallel.partition, group);
    const std::uint64_t g = f.block_columns;
    const bool rows = spec.parallel.partition == Partition::rows;
    const std::string arithmetic = cut_text(spec, member.size, group, share);
    if (rows && g > 1 && share % g != 0) {
      refuse(title(spec.part), short_name(spec), arithmetic + multiple_text(share, g), group_refusal());
      return;
    }
    if (!f.marlin || engine_ == Engine::trtllm || spec.part == Part::routed_expert) return;
    const std::uint64_t least = rows ? 128 : 64;  // marlin_utils.py: min_thread_k, min_thread_n
    if (share % least == 0) return;
    refuse(title(spec.part), short_name(spec), arithmetic + multiple_text(share, least),
           fmt::format("Weight {}_size_per_partition = {} is not divisible by {} = {}. Consider reducing "
                       "tensor_parallel_size or running with --quantization gptq.",
                       rows ? "input" : "output", share, rows ? "min_thread_k" : "min_thread_n", least));
  }

  Engine engine_;
  const ModuleTree& tree_;
  const Layout& layout_;
  const PlanOptions& options_;
  Ruling ruling_;
};

}  // namespace

Ruling judge(Engine engine, const ModuleTree& tree, const Layout& layout, const PlanOptions& options) {
  return Judge(engine, tree, layout, options).run();
}

std::uint64_t largest_block(const ModuleTree& tree, const Layout& layout, const WeightFormat& format) {
  std::uint64_t block = std::gcd(format.block_rows, format.block_columns);
  if (format.block_rows <= 1 || format.block_columns == 0) return 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const bool cut =
        spec.parallel.partition == Partition::columns || spec.parallel.partition == Partition::rows;
    if (!where.main() || !cut || spec.storage != Storage::own || !quantizes(format, spec, 0)) return;
    const std::uint64_t group = cut_group(spec, layout);
    for (const PartitionedPart& member : spec.parallel.members) {
      if (group > 1) block = std::gcd(block, member_share(member, spec.parallel.partition, group));
    }
  });
  return block >= 8 ? block : 0;  // smaller ones no kernel takes
}

}  // namespace assay
