#include "refimpl/claims/handoff_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/numeric/largest.h"
#include "core/system/text.h"
#include "refimpl/claims/handoff_run.h"
#include "refimpl/speculation/layer_drafter.h"

namespace assay {
namespace {

constexpr std::size_t kHandedNew = 6;
constexpr const char* kOfLogits = "logits, relative to the largest of their row";

double farthest_row(const HandedRun& uncut, const HandedRun& handed) {
  if (!handed.refused.empty() || handed.made.ids != uncut.made.ids)
    return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t r = 0; r < uncut.rows.size(); ++r) {
    if (handed.rows[r].empty()) continue;  // of the first token, which came as its id
    double difference = 0, scale = 0;
    for (std::size_t i = 0; i < uncut.rows[r].size(); ++i) {
      difference = larger_or_nan(difference, std::abs(handed.rows[r][i] - uncut.rows[r][i]));
      scale = std::max(scale, std::abs(uncut.rows[r][i]));
    }
    worst = larger_or_nan(worst, difference == 0 ? 0 : difference / scale);
  }
  return worst;
}

// Keys or latents of every token, by layer.
class PlainKeys : public TapListener {
 public:
  explicit PlainKeys(Ops& ops) : ops_(ops) {}
  void see(const std::string& name, const Matrix& value) override {
    constexpr std::string_view kLayers = "layers.";
    const std::string_view of(name);
    if (!of.starts_with(kLayers) || (!of.ends_with(".k_proj") && !of.ends_with(".latent"))) return;
    const std::string_view rest = of.substr(kLayers.size());
    const auto layer = parse_u64(rest.substr(0, rest.find('.')));
    if (layer) rows.emplace(*layer, value.columns() == 0 ? std::vector<double>() : ops_.download(value));
  }
  std::map<std::uint64_t, std::vector<double>> rows;

 private:
  Ops& ops_;
};

std::map<std::uint64_t, std::vector<double>> plain_keys(const LanguageModel& model, Ops& ops,
                                                        std::span<const TokenId> tokens) {
  PlainKeys keys(ops);
  SequenceCache cache(ops, model.cache_widths(), model.context());
  Batch batch;
  batch.add(tokens, cache);
  (void)model.hidden(batch, ops, Taps(keys));
  return std::move(keys.rows);
}

class HandoffClaims {
 public:
  HandoffClaims(const HandoffModel& with, std::span<const TokenId> tokens, bool exact)
      : with_(with), exact_(exact) {
    const std::size_t most = with.model.context() - std::min(with.model.context() - 1, kHandedNew);
    const auto prompt = tokens.first(std::min(tokens.size(), most));
    request_.text.prompt.assign(prompt.begin(), prompt.end());
    request_.text.max_new_tokens = kHandedNew;
    decoder_.block_tokens = 3;
    uncut_ = write_uncut(with, request_, decoder_);
  }

  std::vector<Claim> run() {
    add("handoff_whole", "a prompt read by one engine, its text written by another ≡ one engine",
        {.by_layer = false});
    add("handoff_by_layer", "the cache handed over layer by layer, in chunks, into other blocks ≡ one engine",
        {.chunk = 4});
    add("handoff_hidden", "the first token chosen by the decoder, from a hidden state ≡ one engine",
        {.first = FirstToken::hidden});
    const auto& layers = with_.shape.layers;
    const auto most = std::max_element(layers.begin(), layers.end(),
                                       [](const auto& a, const auto& b) { return a.heads < b.heads; });
    if (most->heads > 1)
      add("handoff_heads", "key heads handed over by as many ranks again, replicated ≡ one engine",
          {.senders = 2 * most->heads});
    if (with_.model.draft_layers() > 0) add_drafts();
    return std::move(claims_);
  }

 private:
  void add(const char* name, const char* statement, const HandoffOptions& options) {
    const HandedRun handed = hand_over_and_write(with_, request_, options, decoder_);
    claims_.push_back({name, statement, kOfLogits, farthest_row(uncut_, handed), 0, exact_});
  }

  void add_drafts() {
    HandedDecoder guessing = decoder_;
    guessing.speculation = {.source = std::make_shared<LayerDrafts>(with_.model, with_.ops), .shape = {1, 1}};
    ServingRequest longer = request_;
    longer.text.max_new_tokens = 4 * kHandedNew;
    const HandedRun uncut = write_uncut(with_, longer, guessing);
    for (const DraftHandoff draft : {DraftHandoff::rows, DraftHandoff::hidden}) {
      const HandedRun handed = hand_over_and_write(with_, longer, {.draft = draft}, guessing);
      const bool same = handed.refused.empty() && handed.counts.guessed == uncut.counts.guessed &&
                        handed.counts.right == uncut.counts.right;
      claims_.push_back({fmt::format("handoff_drafts_{}", name(draft)),
                         draft == DraftHandoff::rows
                             ? "prediction layers' rows handed over: as many guesses right, place by place"
                             : "prediction layers run from handed hidden states: as many guesses right",
                         "runs that differ", same ? 0.0 : 1.0, 0, exact_});
    }
  }

  const HandoffModel& with_;
  bool exact_;
  ServingRequest request_;
  HandedDecoder decoder_;
  HandedRun uncut_;
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<TruncationError> truncation_errors(const LanguageModel& model, Ops& ops,
                                               std::span<const TokenId> tokens, std::size_t cut) {
  const auto whole = plain_keys(model, ops, tokens), rest = plain_keys(model, ops, tokens.subspan(cut));
  std::vector<TruncationError> errors;
  for (const auto& [layer, anew] : rest) {
    const auto kept = whole.find(layer);
    if (kept == whole.end() || anew.empty()) continue;
    const std::size_t before = kept->second.size() - anew.size();
    double difference = 0, scale = 0;
    for (std::size_t i = 0; i < anew.size(); ++i) {
      difference = larger_or_nan(difference, std::abs(kept->second[before + i] - anew[i]));
      scale = std::max(scale, std::abs(anew[i]));
    }
    errors.push_back({layer, difference == 0 ? 0 : difference / scale});
  }
  return errors;
}

std::vector<Claim> handoff_claims(const HandoffModel& with, std::span<const TokenId> tokens, bool exact) {
  std::vector<Claim> claims = HandoffClaims(with, tokens, exact).run();
  const std::size_t most = std::min(tokens.size(), with.model.context());
  for (const auto& [layer, error] : truncation_errors(with.model, with.ops, tokens.first(most), most / 2))
    claims.push_back({fmt::format("cut_beginning_{}", layer),
                      layer == 0
                          ? std::string("the first layer's keys without positions, of a text cut at its "
                                        "beginning ≡ computed anew")
                          : fmt::format("the same of layer {}, which nobody can promise: these keys have "
                                        "seen what was cut",
                                        layer),
                      "keys before rotation, relative to the largest", error, 0, layer == 0 && exact});
  return claims;
}

}  // namespace assay
