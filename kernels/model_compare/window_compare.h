// One window of a text under both sides and under the plain computation: the errors of every tap.
//
// Intermediates of the reference are kept while a window is compared. Logits are not: a row is as wide as the
// vocabulary, and those of a long text may take more room than the model. What the head is given is kept, and
// all computations go through their heads side by side, a few rows at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/model_compare/model_compare.h"
#include "kernels/model_compare/plain_ops.h"

namespace assay {

// One side, ready to run.
struct ReadySide {
  ReadySide(const ModelSide& side, const ModelOptions& options, int jobs)
      : ops(side.make_ops(side.arithmetic, jobs)), model(make_model(*side.weights, options)) {}
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

// What windows add up to.
struct GatheredTaps {
  std::vector<std::string> names;  // in the order of computation
  std::map<std::string, TapErrors> free, local;
  std::map<std::string, TapErrors> plain[PlainOps::kOrders];
  LogitsTally main, draft;
  bool same_without_taps = true, bit_equal = true, finite = true;  // of all logits
  std::map<std::string, std::vector<bool>> used;                   // experts, by the tap of their weights
};

class WindowComparison {
 public:
  WindowComparison(const ModelCompareRequest& request, const ReadySide& reference, const ReadySide& test,
                   const QuantizationNoises& noises, GatheredTaps& gathered)
      : request_(request), reference_(reference), test_(test), noises_(noises), gathered_(gathered) {}

  // `last`: nothing follows, so that what the last row predicts is no other window's.
  void compare(const TextWindow& window, std::size_t decode, bool drafts, bool last);

 private:
  // A computation that is held against the reference's.
  struct Run {
    const LanguageModel* model;
    Ops* ops;
    bool forced;
    std::map<std::string, TapErrors>* errors;
    TextStates states;
  };
  void prepare_runs();
  void read(const KeptTaps& kept);
  void go_through_heads();
  void compare_piece(const RowsOfHead& piece);
  void tally(const RowsOfHead& piece, std::span<const double> expected, std::span<const double> seen);
  std::map<std::string, HeadOrder> head_orders() const;
  void note_experts(const KeptTaps& kept);
  void note_names(const std::vector<std::string>& names);

  const ModelCompareRequest& request_;
  const ReadySide &reference_, &test_;
  const QuantizationNoises& noises_;
  GatheredTaps& gathered_;

  const TextWindow* window_ = nullptr;
  TextReading text_;
  bool last_ = false;
  std::vector<std::unique_ptr<PlainOps>> plain_;
  std::vector<Run> runs_;                             // the free one first
  TextStates expected_, bare_reference_, bare_test_;  // bare: nobody looked at the taps
};

}  // namespace assay
