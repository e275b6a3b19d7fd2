// The rules about single matrices: widths, blocks and groups under one scale, tiles.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/model/parallel_words.h"
#include "core/numeric/ceil_div.h"
#include "paramcount/plan_cut.h"
#include "paramcount/plan_rules.h"

namespace assay {
namespace {

std::string digits(std::uint64_t number) {
  return std::to_string(number);
}

class MatrixJudge {
 public:
  explicit MatrixJudge(Bench& bench) : b_(bench), format_(bench.options.format) {
    for (const AttentionGeometry& g : b_.tree.attention)
      latent_ = latent_ || g.kind == AttentionGeometry::Kind::latent;
  }

  void matrix(const TensorSpec& spec) {
    const Partition partition = spec.parallel.partition;
    if (partition == Partition::replicated || partition == Partition::vocabulary) return;
    const std::uint64_t group = group_of(spec);
    for (std::size_t i = 0; i < spec.parallel.members.size(); ++i) {
      const PartitionedPart& member = spec.parallel.members[i];
      const bool heads = member.units != member.size || one_for_each_head(member.role);
      if (heads && member.units % group != 0 && group % member.units != 0) continue;  // told by heads
      if (!heads && member.size % group != 0) {
        width(spec, member, group);
      } else if (in_format(b_.tree, format_, spec)) {
        const std::uint64_t share = member_share(member, partition, group);
        // Fewer heads than ranks are repeated, not cut further.
        const std::string arithmetic =
            cut_text(spec, member.size, heads ? std::min(group, member.units) : group, share);
        if (format_.block_rows > 1)
          block(spec, {group, share, i, arithmetic});
        else
          groups(spec, {group, share, i, arithmetic});
      }
    }
  }

 private:
  struct Cut {
    std::uint64_t group, share;
    std::size_t member;  // its place in the tensor
    std::string arithmetic;
  };

  // Numbers a recurrent head has one of; engines without rules of such heads know their widths alone.
  bool one_for_each_head(Role role) const {
    if (role == Role::time_bias) return b_.rule(Rule::mamba_heads) != nullptr;
    return (role == Role::recurrent_beta || role == Role::recurrent_decay) &&
           b_.rule(Rule::delta_heads) != nullptr;
  }

  // What engines compute together in one call, so that several matrices share one check.
  bool merged(const TensorSpec& spec) const {
    switch (spec.role) {
      case Role::mlp_gate:
      case Role::mlp_up:
      case Role::mlp_gate_up:
      case Role::recurrent_in:
      case Role::recurrent_gate:
      case Role::qkv: return true;
      case Role::q:
      case Role::k:
      case Role::v: return !latent_;  // MLA's queries and keys stand alone
      default: return false;
    }
  }
  // Of merged matrices that no rank cuts, the last may end inside a block.
  static bool last_of_merged(const TensorSpec& spec, std::size_t member) {
    const bool whole = spec.parallel.members.size() == 1;
    if (!whole) return member + 1 == spec.parallel.members.size();
    return spec.role == Role::mlp_up || spec.role == Role::v || spec.role == Role::recurrent_gate;
  }

  // The group TensorRT-LLM really uses for an MLP.
  std::uint64_t group_of(const TensorSpec& spec) {
    std::uint64_t group = cut_group(spec, b_.layout);
    if (spec.part == Part::routed_expert && b_.layout.ep > 1 &&
        b_.rule(Rule::experts_over_all_ranks) != nullptr)
      group = 1;
    const bool mlp = spec.part == Part::dense_mlp || spec.part == Part::shared_expert;
    const std::uint64_t rows = format_.block_rows;
    if (b_.rule(Rule::mlp_over_fewer) == nullptr || !mlp || !in_format(b_.tree, format_, spec) || rows <= 1)
      return group;
    const std::uint64_t size = spec.parallel.members.front().size;
    if (size % rows != 0) return group;
    std::uint64_t lowered = std::gcd(size / rows, group);
    if (lowered > b_.options.gpus_per_node) lowered = std::gcd(lowered, b_.options.gpus_per_node);
    if (lowered != group)
      b_.note(fmt::format("{} silently cuts the {} over {} ranks instead of {}: {} {} is {} blocks of {}",
                          title(b_.engine.engine), title(spec.part), lowered, group, key_of(spec, size), size,
                          size / rows, rows));
    return lowered;
  }

  void width(const TensorSpec& spec, const PartitionedPart& member, std::uint64_t group) {
    const EngineRule* r = b_.rule(spec.part == Part::routed_expert ? Rule::expert_widths : Rule::widths);
    if (r == nullptr) return;
    b_.refuse(*r, title(spec.part), short_name(spec),
              fmt::format("{} {}/{} = {}", key_of(spec, member.size), member.size, group,
                          share_text(member.size, group)),
              filled(r->message, {{"number", digits(member.size)}, {"tp", digits(group)}}));
  }

  void refuse_block(Rule id, const TensorSpec& spec, const Cut& cut, std::uint64_t size) {
    const EngineRule* r = b_.rule(id);
    if (r == nullptr) return;
    const bool rows = spec.parallel.partition == Partition::rows;
    b_.refuse(*r, title(spec.part), short_name(spec), cut.arithmetic + multiple_text(cut.share, size),
              filled(r->message, {{"share", digits(cut.share)},
                                  {"block", digits(size)},
                                  {"which", rows ? "input_size of down's weight"
                                                 : "output_size of gate's and up's weight"},
                                  {"side", rows ? "block_k" : "block_n"}}));
  }

  void block(const TensorSpec& spec, const Cut& cut) {
    const bool rows = spec.parallel.partition == Partition::rows;
    const std::uint64_t size = rows ? format_.block_columns : format_.block_rows;
    if (size == 0 || cut.share % size == 0) return;
    if (cut.group > 1) refuse_block(Rule::fp8_whole_blocks, spec, cut, size);
    if (spec.part == Part::routed_expert) return expert_block(spec, cut, size);
    if (rows) {
      if (cut.group > 1) refuse_block(Rule::fp8_inputs, spec, cut, size);
      return;
    }
    if (!merged(spec)) {  // uncut, a last block may be half empty
      if (cut.group > 1) refuse_block(Rule::fp8_outputs, spec, cut, size);
      return;
    }
    refuse_block(Rule::fp8_merged, spec, cut, size);
    if (cut.group > 1 || !last_of_merged(spec, cut.member))
      refuse_block(Rule::fp8_merged_but_last, spec, cut, size);
    if (b_.rule(Rule::fp8_merged_tolerated) != nullptr)
      b_.note(fmt::format("{} lets merged matrices end inside a block: {}{}", title(b_.engine.engine),
                          cut.arithmetic, multiple_text(cut.share, size)));
  }

  void expert_block(const TensorSpec& spec, const Cut& cut, std::uint64_t size) {
    const bool rows = spec.parallel.partition == Partition::rows;
    if (rows && cut.group == 1) return;
    const std::uint64_t finer = std::gcd(std::gcd(format_.block_rows, format_.block_columns),
                                         std::gcd(cut.share, b_.tree.hidden_size));
    const EngineRule* refined = b_.rule(Rule::fp8_experts_refined);
    if (refined == nullptr || finer < 32) return refuse_block(Rule::fp8_experts, spec, cut, size);
    b_.note(fmt::format("{}: {} (scales repeated at load, no code changes; Triton kernels only)",
                        title(b_.engine.engine),
                        filled(refined->message,
                               {{"from", fmt::format("[{}, {}]", format_.block_rows, format_.block_columns)},
                                {"to", fmt::format("[{0}, {0}]", finer)},
                                {"share", digits(cut.share)}})));
  }

  // Scales in groups along the rows: INT4 (AWQ, GPTQ and the Marlin kernels behind them), NVFP4, MXFP4.
  void groups(const TensorSpec& spec, const Cut& cut) {
    const std::uint64_t size = format_.block_columns;
    const bool rows = spec.parallel.partition == Partition::rows;
    if (EngineCut(b_.tree, b_.layout, b_.engine, format_).whole_blocks(spec)) {
      if (cut.group > 1 && cut.share % size != 0)
        dealt_in_blocks(cut, spec.parallel.members[cut.member].size / size, size);
      return;
    }
    if (rows && size > 1 && cut.share % size != 0) {
      if (const EngineRule* r = b_.rule(format_.marlin ? Rule::int4_groups : Rule::fp4_groups))
        b_.refuse(*r, title(spec.part), short_name(spec), cut.arithmetic + multiple_text(cut.share, size),
                  std::string(r->message));
      return;
    }
    if (format_.marlin && spec.part != Part::routed_expert) tiles(spec, cut, rows);
  }

  void dealt_in_blocks(const Cut& cut, std::uint64_t blocks, std::uint64_t size) {
    const std::uint64_t each = ceil_div(blocks, cut.group), empty = cut.group - ceil_div(blocks, each);
    b_.note(fmt::format(
        "{} deals MXFP4 experts out in whole blocks of {}: {}{}, so {} a rank until none is left{}",
        title(b_.engine.engine), size, cut.arithmetic, multiple_text(cut.share, size), each * size,
        empty == 0 ? "" : fmt::format(": {} ranks hold none", empty)));
  }

  void tiles(const TensorSpec& spec, const Cut& cut, bool rows) {
    const std::uint64_t least = rows ? 128 : 64;
    if (cut.share % least == 0) return;
    const std::string arithmetic = cut.arithmetic + multiple_text(cut.share, least);
    if (const EngineRule* r = b_.rule(Rule::marlin_tiles))
      b_.refuse(*r, title(spec.part), short_name(spec), arithmetic,
                filled(r->message,
                       {{"side", rows ? "input" : "output"},
                        {"share", digits(cut.share)},
                        {"tile", fmt::format("{} = {}", rows ? "min_thread_k" : "min_thread_n", least)}}));
    if (b_.rule(Rule::marlin_padded) != nullptr)
      b_.note(fmt::format("{} pads matrices to Marlin's tiles: {}", title(b_.engine.engine), arithmetic));
  }

  Bench& b_;
  const WeightFormat& format_;
  bool latent_ = false;
};

}  // namespace

void judge_matrices(Bench& bench) {
  MatrixJudge judge(bench);
  for_each_spec(bench.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.tower || (where.mtp && !bench.options.with_mtp)) return;
    if (spec.storage == Storage::own && spec.shape.size() >= 2 && !spec.bias) judge.matrix(spec);
  });
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
