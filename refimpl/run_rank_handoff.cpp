#include "refimpl/run_rank_handoff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/system/error.h"
#include "core/system/message.h"
#include "refimpl/handoff/rank_shape.h"
#include "refimpl/run_report.h"
#include "refimpl/run_sampling.h"
#include "refimpl/run_speculation.h"

namespace assay {
namespace {

std::vector<std::vector<double>> at_all_ranks(RankedModel& ranked, const std::vector<double>& mine) {
  return ranked.groups().all.all_gather(mine);
}

}  // namespace

void check_rank_prompts(const RunSettings& settings, std::size_t prompts) {
  if (!settings.handoff.to.empty() && prompts != 1) throw Error::usage("--handoff-to takes one prompt");
}

void RankHandoff::begin(const std::vector<GenerationRequest>& requests) {
  if (!requests.empty()) request_ = requests.front();
  whole_.emplace(handoff_model(open_, settings_));
}

void RankHandoff::be_rank(RankedModel& ranked) {
  const RankPlace& place = ranked.place();
  if (place.copy() != 0) {
    ranked.model().keep_company(ranked.ops());
    at_all_ranks(ranked, {0, 0});
    return;
  }
  const HandoffModel mine = {ranked.model(), ranked.ops(), shape_of_rank(whole_->shape, whole_->model, place),
                             whole_->identity};
  require_widths(mine.shape, ranked.model().cache_widths());
  settings_.handoff.from.empty() ? send(ranked, mine) : take(ranked, mine);
}

void RankHandoff::send(RankedModel& ranked, const HandoffModel& with) {
  const HandoffSent sent = send_handoff(with, *whole_, settings_, request_);
  ranked.model().keep_company(ranked.ops());
  const auto bytes =
      at_all_ranks(ranked, {static_cast<double>(sent.row_bytes), static_cast<double>(sent.bytes)});
  if (with.shape.rank != 0) return;
  const std::size_t tokens = request_.prompt.size();
  document_["handoff"] = to_json(sent, tokens);
  Json ranks = Json::array();
  double rows = 0;
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
    const auto number = [&](std::size_t i) { return static_cast<std::uint64_t>(bytes[rank].at(i)); };
    ranks.push_back({{"rank", rank}, {"row_bytes", number(0)}, {"bytes", number(1)}});
    rows += bytes[rank].at(0);
  }
  document_["handoff"]["ranks"] = std::move(ranks);
  write_message(handoff_lines(sent, tokens));
  write_message(fmt::format("{} ranks handed over {:.6g} bytes a token of rows together", with.shape.ranks,
                            rows / static_cast<double>(tokens)));
}

void RankHandoff::take(RankedModel& ranked, const HandoffModel& with) {
  RunTakeover taking(with, settings_, [](const std::string& line) { write_message(line); });
  GenerationRequest request{.prompt = taking.ticket().tokens, .max_new_tokens = settings_.tokens_to_make()};
  std::optional<RequestRules> rules;  // outlives the text
  {
    const std::lock_guard lock(mutex_);
    if (taking.ticket().text) open_.tokenizer();  // whose end tokens are stops, too
    rules.emplace(open_, settings_);
    rules->apply(request);
  }
  std::optional<RunSpeculation> guesses;
  if (settings_.speculation.wanted()) {
    const std::lock_guard lock(mutex_);
    guesses.emplace(open_, settings_, ranked.model(), ranked.ops());
  }
  const RunTakeover::Text text = taking.write(request, guesses ? guesses->options() : SpeculationOptions(),
                                              [](TokenId, std::span<const double>) {});
  ranked.model().keep_company(ranked.ops());
  at_all_ranks(ranked, {1, 0});
  if (with.shape.rank != 0) return;
  ids_ = text.made.ids;
  reason_ = text.made.finish_reason;
  as_text_ = taking.ticket().text;
  document_["handoff"] = taking.to_json();
  document_["handoff"]["ranks"] = ranked.place().grid.ranks();
  if (!guesses) return;
  const ServingCounts& counts = text.counts;
  const Speculation result{text.made, counts, counts.guessed, counts.accepted, counts.steps};
  document_["speculation"] = guesses->to_json(result);
  for (const std::string& line : guesses->lines(result)) write_message(line);
}

void RankHandoff::tell(const Output& output) {
  document_["schema"] = "assay.run/1";
  document_["model"] = describe_run(open_, settings_);
  const RankSettings& r = settings_.ranks;
  document_["grid"] = RankGrid{.tp = r.tp, .pp = r.pp, .ep = r.ep, .dp = r.dp}.text();
  if (!settings_.handoff.from.empty()) {
    std::string shown = fmt::format("{}", fmt::join(ids_, ","));
    document_["ids"] = ids_;
    document_["finish_reason"] = name(reason_);
    if (as_text_) {
      ShownText stream(open_.tokenizer(), settings_.stop);
      shown.clear();
      for (const TokenId id : ids_) shown += stream.push(id);
      shown += stream.finish();
      document_["text"] = shown;
    }
    output.line(shown);
  }
  output.json(document_);
}

}  // namespace assay
