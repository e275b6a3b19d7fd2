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
// or 12 u where an exponential is computed on the way (a σ, a softmax, a decay): the C library's, which the plain computation
// has, is right to half an ulp, a kernel's to 2 ulp, with a sum and a quotient 8 u (harness/elementwise_cases.cpp). The ratio is
// taken in three norms, of which the worst counts: of all elements together, of the worst token (relative to the mean one; of
// one larger than that the roundings are its own), of the worst column (one bad channel of thousands is lost in the first). The
// tokens read at once and those read one by
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
#include "kernels/model_compare/logits_report.h"
#include "kernels/model_compare/quantization_noise.h"
#include "kernels/model_compare/read_text.h"
#include "kernels/model_compare/tap_errors.h"
#include "refimpl/engine/text_windows.h"
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
  // The text cut into windows, each compared by itself, and errors added up; none: `tokens` is the only one.
  std::vector<TextWindow> windows;
  std::size_t decode = 4;   // the last so many tokens of a window are read one by one; fewer of a short one
  std::size_t greedy = 16;  // tokens to go on with
  int jobs = 1;
  // What both sides are, is one: bit-equality proves nothing but repeatability.
  bool same_program = false;
  std::uint64_t most_kept = 4ull << 30;  // bytes of intermediates of a window; logits are not kept
};

struct TapReport {
  std::string name;   // "layers.3.attn_out"
  std::string place;  // "3", "mtp.0"; none: embed, final_norm, logits
  std::string kind;   // "attn_out"
  TapErrors free, local;
  std::vector<TapErrors> plain;  // the yardstick's local errors, of each order of sums
  double ratio = 0;              // local / max(2 plain, 4 u or 12 u), of the worse phase
  bool in_decode = false;        // that was the tokens read one by one
  // The largest of the yardstick's errors, relative.
  double plain_prefill() const;
  double plain_decode() const;
  double noise = 0;  // of the test checkpoint's storage, the largest in this segment
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
  std::size_t windows = 0, prefill = 0, decode = 0;  // read; their tokens
  std::size_t requantized = 0;                       // weights whose storage differs by more than copying
  double largest_ratio() const;
};

// Throws Error::input where the sides are not one model, or the tokens do not fit it.
ModelComparison compare_models(const ModelCompareRequest& request);

// The ratio of one tap, of its worse phase; `bends`: an exponential is computed between it and the tap before.
struct LocalRatio {
  double ratio = 0;
  bool in_decode = false;
};
LocalRatio local_ratio(const TapErrors& local, std::span<const TapErrors> plain, const Arithmetic& arithmetic,
                       bool bends);
// Which weights are used before each tap, and whether it bends: learned from the first two tokens of a text.
Segments segments_of(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens, bool drafts);

}  // namespace assay
