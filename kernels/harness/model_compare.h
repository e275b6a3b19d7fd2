// One model computed twice: by two selections of kernels, in two precisions, from two checkpoints. Where do
// they part first?
//
// Errors grow from layer to layer by themselves, so that the error at a tap says little about what is at
// fault. Each side is therefore run twice: free, for the error that has gathered up to a tap; and forced,
// each tap set to the reference's numbers once it has been looked at, for the error made since the taps
// before. What such a local error may be is measured, not picked: the plain computation in the same precision
// (plain_ops.h) is forced through the same numbers, and
//
//   ratio = local error / max(2 × the plain computation's, 4 u),      u: one rounding of the result
//
// in three norms, of which the worst counts: of all elements together, of the worst token, of the worst
// column (one bad channel of thousands is lost in the first). The tokens read at once and those read one by
// one are held apart, as kernels compute them in different ways; the plain computation does not, and the
// larger of its two errors counts. The first divergence is the first tap, in the order of computation, whose
// ratio is above 1.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/harness/measure.h"
#include "kernels/harness/read_text.h"
#include "kernels/harness/tap_errors.h"
#include "kernels/harness/weight_blur.h"
#include "refimpl/models/model.h"

namespace assay {

struct ModelSide {
  const Weights* weights = nullptr;
  Arithmetic arithmetic;
  std::function<std::unique_ptr<Ops>(const Arithmetic&, int jobs)> make_ops;
};

struct ModelCompareRequest {
  ModelSide reference, test;
  ModelOptions options;
  std::vector<TokenId> tokens;
  std::size_t decode = 4;   // the last so many tokens are read one by one; fewer of a short text
  std::size_t greedy = 16;  // tokens to go on with
  int jobs = 1;
  // What both sides are, is one: bit-equality proves nothing but repeatability.
  bool same_program = false;
  std::uint64_t most_kept = 4ull << 30;  // bytes of intermediates
};

struct TapReport {
  std::string name;   // "layers.3.attn_out"
  std::string place;  // "3", "mtp.0"; none: embed, final_norm, logits
  std::string kind;   // "attn_out"
  TapErrors free, local;
  std::vector<TapErrors> plain;  // the yardstick's local errors, of each order of sums
  double ratio = 0;              // local / max(2 plain, 4 u), of the worse phase
  bool in_decode = false;        // that was the tokens read one by one
  // The largest of the yardstick's errors, relative.
  double plain_prefill() const;
  double plain_decode() const;
  double noise = 0;  // of the test checkpoint's storage, the largest in this segment
};

// Predictions of the two sides, position by position.
struct LogitsReport {
  std::size_t positions = 0;
  double kl_mean = 0, kl_max = 0;  // KL(reference ‖ test), nats
  std::size_t kl_max_at = 0;
  double same_first = 0;  // share of positions with the same likeliest token
  double top5_overlap = 0;
  // Of the text's own next tokens: nats a token, and the mean difference with its standard error.
  double loss_reference = 0, loss_test = 0, loss_difference = 0, standard_error = 0;
  double perplexity_difference() const;
};

struct GreedyReport {
  std::vector<TokenId> reference, test;
  std::optional<std::size_t> parts_at;  // index into both
  double margin = 0;                    // there, the reference's first two logits apart
};

struct ModelComparison {
  CaseStatus status = CaseStatus::passed;
  std::vector<std::string> reasons;  // of a status other than passed
  std::vector<std::string> notes;
  std::vector<TapReport> taps;                  // in the order of computation
  std::optional<std::size_t> first_divergence;  // into taps
  bool probe_inert = false;                     // logits with and without taps are bit-equal, on both sides
  bool bit_equal = false;                       // all logits of both sides
  LogitsReport logits;
  std::optional<LogitsReport> draft;  // of the layer for multi-token prediction
  GreedyReport greedy;
  std::size_t prefill = 0, decode = 0;  // tokens
  std::size_t blurred = 0;              // weights whose storage differs by more than copying
  double largest_ratio() const;
};

// Throws Error::input where the sides are not one model, or the tokens do not fit it.
ModelComparison compare_models(const ModelCompareRequest& request);

// The ratio of one tap, of its worse phase.
struct LocalRatio {
  double ratio = 0;
  bool in_decode = false;
};
LocalRatio local_ratio(const TapErrors& local, std::span<const TapErrors> plain,
                       const Arithmetic& arithmetic);

// By tap, the local errors of the plain computation in each of its orders.
std::map<std::string, std::vector<TapErrors>> measure_plain(const LanguageModel& model,
                                                            const Arithmetic& arithmetic,
                                                            const KeptTaps& kept, const TextReading& text,
                                                            const Blurs& blurs, int jobs);

LogitsReport compare_logits(std::span<const double> reference, std::span<const double> test,
                            std::span<const TokenId> tokens, std::size_t vocabulary);

}  // namespace assay
