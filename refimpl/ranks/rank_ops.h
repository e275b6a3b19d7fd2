// The operations of one rank: the reference's, on what the rank holds, and after those whose result is no rank's alone
// what the ranks of a group tell each other.
//
//   product with a weight cut over its inputs   a part of a sum: added up over the group (leaf_sums.h)
//   embedding and head, cut over the vocabulary each token's row from who has it; all logits at every rank
//   norm over a row that ranks share            gathered, normed whole, and cut again
//   experts dealt out                           tokens to where their experts are, and back (exchange.cpp)
//
// Whatever else is computed is computed on the rank's own heads, channels and experts, and is right as it is: by the reference,
// or by kernels, which add up a rank's inputs in an order of their own. So with kernels sums go in the order of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "refimpl/ops/apart.h"
#include "refimpl/ops/as_it_is.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ranks/rank_cut.h"
#include "refimpl/ranks/rank_group.h"

namespace assay {

enum class RankSum : std::uint8_t {
  tree,   // one tree over leaves that do not depend on the number of ranks
  order,  // what each rank has in all, rounded, in the order of ranks: as engines do
};

struct RankOptions {
  RankSum sum = RankSum::tree;
  RankFault fault = RankFault::none;
  std::size_t run = 0;    // RankFault::reduction_order: which of several runs this is
  bool measured = false;  // under `order`: hold every sum against the tree's
};

class RankOps final : public ReferenceOps, public OpsApart {
 public:
  // All outlive it. `kernels`: of host memory; none: the reference. Under the tree none.
  RankOps(const Arithmetic& arithmetic, int jobs, const RankCut& cut, RankGroups& groups,
          const RankOptions& options, std::unique_ptr<Ops> kernels = nullptr);

  using ReferenceOps::run;
  Matrix run(const EmbeddingCall& call) override;
  Matrix run(const LinearCall& call) override;
  Matrix run(const RmsNormCall& call) override;
  Matrix run(const LayerNormCall& call) override;
  Matrix run(const GatedNormCall& call) override;
  Matrix run(const FusedMoeCall& call) override;
  Matrix run(const AttentionCall& call) override;
  Matrix run(const RotaryCall& call) override { return own(call); }
  Matrix run(const MlaCall& call) override { return own(call); }
  Matrix run(const ActivationCall& call) override { return own(call); }
  Matrix run(const GatedActivationCall& call) override { return own(call); }
  Matrix run(const SoftmaxCall& call) override { return own(call); }
  Routing run(const MoeGateCall& call) override { return own(call); }
  Matrix run(const ConvolutionCall& call) override { return own(call); }
  Matrix run(const DeltaRuleCall& call) override { return own(call); }
  Matrix run(const StateSpaceCall& call) override { return own(call); }
  Matrix run(const OutputGateCall& call) override { return own(call); }
  Matrix on_whole_rows(const Matrix& mine, const std::function<Matrix(const Matrix&)>& of) override;
  Matrix sent_to_experts(const Matrix& x, const Routing& routing, std::size_t experts,
                         const ExpertFunction& expert) override;

  std::size_t first_key_head(std::size_t whole) const override;

  // Under `measured`: the largest |in order - by the tree| / (4 √K u Σ |x w|) of any sum over K inputs, where u is
  // half a unit in the last place of what is stored.
  double worst_ratio() const { return worst_ratio_; }
  std::uint64_t sums() const { return sums_; }

 private:
  // On what the rank holds. Not for experts: what they add up is no rank's alone.
  template <class Call>
  ResultOf<Call> own(const Call& call) {
    return kernels_ ? kernels_->run(call) : ReferenceOps::run(call);
  }
  Matrix summed(const LinearCall& call, const WeightCut& cut);
  std::vector<double> tree_of(const LinearCall& call, const WeightCut& cut, RankGroup& group);
  std::vector<double> ordered_sum(const LinearCall& call, RankGroup& group);
  void measure(const LinearCall& call, const WeightCut& cut, RankGroup& group,
               const std::vector<double>& ordered);
  std::vector<double> added(const std::vector<std::vector<double>>& parts);
  Matrix stored(const std::vector<double>& sums, const LinearCall& call, std::size_t outputs);
  Matrix all_columns(const Matrix& mine, std::size_t each, std::size_t width);
  Matrix whole_row(const Matrix& mine, std::size_t width);
  Matrix own_part(const Matrix& whole, std::size_t width);

  const RankCut& cut_;
  RankGroups& groups_;
  RankOptions options_;
  std::unique_ptr<Ops> kernels_;
  bool exchanging_ = false;
  double worst_ratio_ = 0;
  std::uint64_t sums_ = 0;
};

// Half a unit in the last place of what the arithmetic stores, of 1.
double unit_of(const Arithmetic& arithmetic);

}  // namespace assay
