// A rank's model, as the engine sees it: it reads and says what the whole model does, and whoever runs it does the same
// at every rank.
//
//   pipeline   a batch in micro-batches of whole sequences: a stage hands one on and takes the next; the last one
//              tells all stages the logits
//   copies     each forward pass begins by asking whether others have work, and one without texts goes along with a
//              token of its own as long as any has: experts lie on all ranks of a stage, and wait for all
#pragma once

#include <memory>

#include "refimpl/models/staged_model.h"
#include "refimpl/ranks/rank_cut.h"
#include "refimpl/ranks/rank_group.h"
#include "refimpl/ranks/stage_caches.h"

namespace assay {

class RankModel final : public LanguageModel {
 public:
  // `inner` is made of weights that are cut by `cut`. Throws Error::input where it has no stages and the grid asks for
  // some. All but `inner` outlive it.
  RankModel(std::unique_ptr<LanguageModel> inner, const RankCut& cut, RankGroups& groups,
            std::size_t micro_batches, RankFault fault = RankFault::none);

  std::size_t vocabulary() const override { return vocabulary_; }
  std::size_t context() const override { return inner_->context(); }
  std::vector<CacheWidth> cache_widths() const override;  // of other stages' layers: nothing
  bool embeds_positions() const override { return inner_->embeds_positions(); }
  RopeLayout rope_layout() const override { return inner_->rope_layout(); }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return inner_->cache_serves(length, other);
  }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;
  std::size_t draft_layers() const override;
  std::size_t streams() const override { return inner_->streams(); }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override {
    return inner_->draft(module, batch, hidden, ops, taps);
  }
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    return inner_->draft_logits(module, draft, ops, taps);
  }

  // This copy's texts are done: goes along until all copies' are. Every rank calls it once, at the end.
  void keep_company(Ops& ops) const;
  std::size_t idle_passes() const { return idle_passes_; }

 private:
  Matrix pass(const Batch& batch, Ops& ops, const Taps& taps) const;
  bool anyone_works(bool self) const;
  void hand_on(const StageStream& stream, const Batch& batch, std::size_t border, Ops& ops) const;
  StageStream take_over(const Batch& batch, std::size_t border, Ops& ops) const;

  std::unique_ptr<LanguageModel> inner_;
  const StagedModel* staged_ = nullptr;
  const RankCut& cut_;
  RankGroups& groups_;
  std::size_t micro_batches_, vocabulary_;
  RankFault fault_;
  mutable std::size_t idle_passes_ = 0;
};

}  // namespace assay
