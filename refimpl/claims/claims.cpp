// Budgets. What only orders work differently (chunks, batches, dense experts) is bit for bit the same under
// kernels whose rows are independent, as the reference's are. What brackets a sum differently (absorbed
// attention, online softmax) has an error of its own: in the model's logits at most twice that of the plain
// way at the same precision against float64, and in a sum of n terms at most 4 √n u (docs/run.md).
#include "refimpl/claims/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "refimpl/claims/cache_claims.h"
#include "refimpl/claims/handoff_claims.h"
#include "refimpl/claims/relative_difference.h"
#include "refimpl/claims/serving_claims.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/speculate.h"
#include "refimpl/ops/softmax.h"

namespace assay {
namespace {

using Logits = std::vector<double>;  // [tokens, vocabulary]

constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;
// Of logits in float64, relative to the largest: some thousand roundings on the way through the layers.
constexpr double kDoubleBudget = 4096 * kUnit;

class ClaimRunner {
 public:
  ClaimRunner(const Weights& weights, const ModelOptions& options, const KernelSet& kernels,
              const Arithmetic& arithmetic, int jobs, std::span<const TokenId> tokens)
      : weights_(weights),
        options_(options),
        kernels_(kernels),
        arithmetic_(arithmetic),
        jobs_(jobs),
        tokens_(tokens.begin(), tokens.end()),
        ops_(kernels.make(arithmetic, jobs)),
        model_(make_model(weights, options)),
        whole_(logits(*model_, *ops_, tokens_.size())) {}

  std::vector<Claim> run(ClaimScope scope) {
    same("prefill_by_token", "a prompt read at once ≡ token by token", logits(*model_, *ops_, 1));
    same("prefill_in_chunks", "a prompt read at once ≡ in chunks of 3", logits(*model_, *ops_, 3));
    claims_.push_back(batch_claim());
    claims_.push_back(softmax_claim());
    if (is_latent()) claims_.push_back(latent_claim());
    if (scans()) claims_.push_back(scan_claim());
    if (weights_.tree().experts > 0) {
      ModelOptions dense = options_;
      dense.moe = MoeForm::dense;
      same("sparse_experts", "each expert on its own tokens ≡ all experts on all tokens",
           logits(*make_model(weights_, dense), *ops_, tokens_.size()));
    }
    if (model_->draft_layers() > 0) claims_.push_back(speculation_claim());
    // What follows is promised bit for bit, or not at all; but for the law of drafts, which no kernel changes.
    if (scope == ClaimScope::promised && !kernels_.exact) return std::move(claims_);
    for (Claim& claim : serving_claims(*model_, *ops_, tokens_, kernels_.exact))
      claims_.push_back(std::move(claim));
    for (Claim& claim : cache_claims(*model_, *ops_, tokens_, kernels_.exact))
      claims_.push_back(std::move(claim));
    for (Claim& claim : grouped_claims(weights_, options_, *ops_, jobs_, tokens_, kernels_.exact))
      claims_.push_back(std::move(claim));
    const HandoffModel with{*model_, *ops_, cache_shape(*model_, weights_.tree()), {}};
    for (Claim& claim : handoff_claims(with, tokens_, kernels_.exact)) claims_.push_back(std::move(claim));
    return std::move(claims_);
  }

 private:
  Logits logits(const LanguageModel& model, Ops& ops, std::size_t chunk) const {
    Logits all;
    TextEngine engine(model, ops);
    engine.set_chunk(chunk);
    engine.score(tokens_, [&](std::size_t position, std::span<const double> row) {
      all.resize(position * row.size());  // where rotary frequencies follow the length, a text is read anew
      all.insert(all.end(), row.begin(), row.end());
    });
    return all;
  }

  double budget() const {
    if (kernels_.exact) return 0;
    return is_wide() ? kDoubleBudget : 2 * naive_error();
  }
  bool is_wide() const { return arithmetic_.precision == Precision::f64; }

  double naive_error() const {
    if (!naive_error_) naive_error_ = error_of(MlaForm::naive);
    return *naive_error_;
  }
  // Of one way, against the plain one in float64.
  double error_of(MlaForm form) const {
    ModelOptions tried = options_, plain = options_;
    tried.mla = form;
    plain.mla = MlaForm::naive;
    const std::unique_ptr<Ops> truth = reference_kernels().make({Precision::f64}, jobs_);
    return relative_difference(logits(*make_model(weights_, tried), *ops_, tokens_.size()),
                               logits(*make_model(weights_, plain), *truth, tokens_.size()));
  }

  void same(std::string name, std::string statement, const Logits& other) {
    claims_.push_back({std::move(name), std::move(statement), "logits, relative to the largest",
                       relative_difference(other, whole_), budget()});
  }

  // Three texts of different lengths at once, each against itself alone.
  Claim batch_claim() const {
    const std::size_t n = tokens_.size();
    std::vector<GenerationRequest> requests;
    for (const std::size_t length : {n, n / 2, n / 4})
      requests.push_back({.prompt = {tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(length)},
                          .max_new_tokens = 4});
    std::vector<Logits> together(requests.size()), alone(requests.size());
    TextEngine(*model_, *ops_).generate(requests, [&](std::size_t i, TokenId, std::span<const double> row) {
      together[i].insert(together[i].end(), row.begin(), row.end());
    });
    double error = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      TextEngine(*model_, *ops_)
          .generate({requests[i]}, [&](std::size_t, TokenId, std::span<const double> row) {
            alone[i].insert(alone[i].end(), row.begin(), row.end());
          });
      error = std::max(error, relative_difference(together[i], alone[i]));
    }
    return {"batch", "texts of different lengths in one batch ≡ each alone",
            "logits, relative to the largest", error, budget()};
  }

  // Scores: the model's own logits, row by row; what they weigh: the logits of the row before.
  Claim softmax_claim() const {
    const std::size_t width = model_->vocabulary();
    double error = 0;
    for (std::size_t t = 1; t < tokens_.size(); ++t) {
      const std::span<const double> scores = std::span(whole_).subspan(t * width, width);
      const std::span<const double> values = std::span(whole_).subspan((t - 1) * width, width);
      std::vector<double> p(scores.begin(), scores.end());
      softmax_three_pass(p);
      OnlineSoftmax online;
      double plain = 0, sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < width; ++i) {
        plain += p[i] * values[i];
        magnitude += p[i] * std::abs(values[i]);
        double weight = 0;
        sum *= online.take(scores[i], weight);
        sum += weight * values[i];
      }
      const double difference = std::abs(sum / online.sum() - plain);
      if (!(difference <= error * magnitude)) error = difference / magnitude;
    }
    return {"online_softmax", "softmax in one pass ≡ in three", "Σ p v, relative to Σ p |v|, in float64",
            error, 4 * std::sqrt(static_cast<double>(width)) * kUnit};
  }

  bool is_latent() const {
    return std::any_of(weights_.tree().attention.begin(), weights_.tree().attention.end(),
                       [](const AttentionGeometry& g) { return g.kind == AttentionGeometry::Kind::latent; });
  }

  Claim latent_claim() const {
    return {"absorbed_mla", "latent attention absorbed ≡ naive",
            "logits against naive ones in float64, relative to the largest", error_of(MlaForm::absorbed),
            is_wide() ? kDoubleBudget : 2 * naive_error()};
  }

  // Of what keeps a state; a convolution alone has no other form.
  bool scans() const {
    return std::any_of(weights_.tree().recurrent.begin(), weights_.tree().recurrent.end(),
                       [](const RecurrentGeometry& g) { return g.state_values > 0; });
  }
  Claim scan_claim() const {
    return {"chunked_scan", "a recurrence over chunks of tokens ≡ token by token",
            "logits against recurrent ones in float64, relative to the largest",
            error_of_scan(ScanForm::chunked),
            is_wide() ? kDoubleBudget : 2 * error_of_scan(ScanForm::recurrent)};
  }
  // Of one form, against the recurrent one in float64.
  double error_of_scan(ScanForm form) const {
    ModelOptions tried = options_, plain = options_;
    tried.scan = form;
    plain.scan = ScanForm::recurrent;
    const std::unique_ptr<Ops> truth = reference_kernels().make({Precision::f64}, jobs_);
    return relative_difference(logits(*make_model(weights_, tried), *ops_, tokens_.size()),
                               logits(*make_model(weights_, plain), *truth, tokens_.size()));
  }

  Claim speculation_claim() const {
    const GenerationRequest request = {
        .prompt = tokens_, .max_new_tokens = std::min<std::size_t>(32, model_->context() - tokens_.size())};
    const Generation plain = TextEngine(*model_, *ops_).generate({request}).front();
    const Generation guessed = speculate(*model_, *ops_, request).made;
    std::size_t differing = plain.ids.size() == guessed.ids.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(plain.ids.size(), guessed.ids.size()); ++i)
      differing += plain.ids[i] == guessed.ids[i] ? 0 : 1;
    return {"speculation", "greedy text with guesses checked ≡ without", "tokens that differ",
            static_cast<double>(differing), 0};
  }

  const Weights& weights_;
  const ModelOptions& options_;
  const KernelSet& kernels_;
  Arithmetic arithmetic_;
  int jobs_;
  std::vector<TokenId> tokens_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<LanguageModel> model_;
  Logits whole_;
  std::vector<Claim> claims_;
  mutable std::optional<double> naive_error_;
};

}  // namespace

std::vector<Claim> run_claims(const Weights& weights, const ModelOptions& options, const KernelSet& kernels,
                              const Arithmetic& arithmetic, int jobs, std::span<const TokenId> tokens,
                              ClaimScope scope) {
  if (tokens.size() < 4) throw Error::usage("claims need a text of at least 4 tokens");
  return ClaimRunner(weights, options, kernels, arithmetic, jobs, tokens).run(scope);
}

}  // namespace assay
