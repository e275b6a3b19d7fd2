#include "refimpl/run_speculation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/system/error.h"
#include "core/system/message.h"
#include "core/system/text.h"
#include "refimpl/speculation/layer_drafter.h"
#include "refimpl/speculation/lookup_drafter.h"
#include "refimpl/speculation/model_drafter.h"

namespace assay {
namespace {

constexpr std::size_t kMostGuesses = 256, kUsualGuesses = 4;

// "3,2,1": guesses behind each, level by level.
TreeShape parse_shape(const std::string& text) {
  TreeShape shape;
  std::size_t first = 0;
  while (first <= text.size()) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    const auto width = parse_u64(text.substr(first, end - first));
    if (!width || *width == 0 || *width > kMostGuesses || shape.size() == kMostGuesses)
      throw Error::usage(fmt::format("\"{}\" is no shape of a tree", escape_for_terminal(text)))
          .remedy("give guesses behind each, level by level: 3,2,1");
    shape.push_back(*width);
    if (guesses_of(shape) > kMostGuesses)
      throw Error::usage(fmt::format("a tree of more than {} guesses", kMostGuesses));
    first = end + 1;
  }
  return shape;
}

// A draft's tokens must mean what the model's do.
void require_same_vocabulary(OpenModel& model, OpenModel& draft, const std::string& path, bool with_text) {
  const auto refuse = [&](const std::string& why) {
    throw Error::input(fmt::format("{}: {}", escape_for_terminal(path), why))
        .remedy("a draft model needs the vocabulary of the model");
  };
  if (draft.model->vocabulary() != model.model->vocabulary())
    refuse(fmt::format("a vocabulary of {} and the model's of {}", draft.model->vocabulary(),
                       model.model->vocabulary()));
  if (!with_text) return;
  const Tokenizer &own = model.tokenizer(), &other = draft.tokenizer();
  if (own.vocab_size() != other.vocab_size())
    refuse(
        fmt::format("a tokenizer of {} pieces and the model's of {}", other.vocab_size(), own.vocab_size()));
  for (TokenId id = 0; id < own.vocab_size(); ++id) {
    if (own.piece(id) != other.piece(id))
      refuse(fmt::format("token {} is \"{}\" and the model's \"{}\"", id,
                         escape_for_terminal(other.piece(id)), escape_for_terminal(own.piece(id))));
  }
}

std::shared_ptr<const AcceptanceRule> rule_of(const std::string& name) {
  if (name == "rejection") return std::make_shared<RejectionSampling>();
  return std::make_shared<SampleAndMatch>();
}

double ratio(double a, double b) {
  return b == 0 ? 0 : a / b;
}

}  // namespace

void add_speculation_options(CLI::App& command, SpeculationSettings& s) {
  command
      .add_option("--speculate", s.source,
                  "Guess ahead and check: by lookup in the text, a draft model, or (default) the model's own "
                  "multi-token prediction")
      ->expected(0, 1)
      ->default_str("mtp")
      ->check(CLI::IsMember({"lookup", "draft", "mtp"}))
      ->type_name("SOURCE");
  command.add_option("--draft-model", s.model, "The model that guesses, of the same vocabulary")
      ->type_name("DIR");
  command
      .add_option("--draft-tokens", s.tokens,
                  "Tokens guessed in a row (default: 4; of mtp as many as it has modules)")
      ->check(CLI::Range(std::size_t{1}, kMostGuesses))
      ->type_name("K");
  command.add_option("--draft-tree", s.tree, "A tree of guesses: how many behind each, level by level")
      ->type_name("3,2,1");
  command
      .add_option("--accept", s.rule,
                  "match (default): the text without guesses, token for token; rejection: its law")
      ->check(CLI::IsMember({"match", "rejection"}));
}

void check_speculation_options(const SpeculationSettings& s) {
  if (!s.model.empty() && !s.source.empty() && s.source != "draft")
    throw Error::usage("--draft-model goes with --speculate draft");
  if (s.source == "draft" && s.model.empty())
    throw Error::usage("--speculate draft needs a model").remedy("give --draft-model DIR");
  if (!s.wanted() && (s.tokens != 0 || !s.tree.empty() || !s.rule.empty()))
    throw Error::usage("--draft-tokens, --draft-tree and --accept go with --speculate or --draft-model");
  if (s.tokens != 0 && !s.tree.empty())
    throw Error::usage("--draft-tokens and --draft-tree exclude one another");
  if (!s.tree.empty()) parse_shape(s.tree);
  if (!s.tree.empty() && s.source == "lookup") throw Error::usage("lookup guesses a chain: no --draft-tree");
}

RunSpeculation::RunSpeculation(OpenModel& model, const RunSettings& settings)
    : RunSpeculation(model, settings, *model.model, *model.ops) {}

RunSpeculation::RunSpeculation(OpenModel& model, const RunSettings& settings, const LanguageModel& own,
                               Ops& ops)
    : settings_(settings.speculation) {
  std::size_t usual = kUsualGuesses;
  if (!settings_.model.empty()) {
    RunSettings other = settings;
    other.variant.clear();
    draft_ = std::make_unique<OpenModel>(settings_.model, other);
    require_same_vocabulary(model, *draft_, settings_.model, settings.needs_text());
    options_.source = std::make_shared<ModelDrafts>(*draft_->model, *draft_->ops);
  } else if (settings_.source == "lookup") {
    options_.source = std::make_shared<LookupDrafts>();
  } else {
    options_.source = std::make_shared<LayerDrafts>(own, ops);
    usual = own.draft_layers();
  }
  options_.shape = settings_.tree.empty() ? TreeShape(settings_.tokens == 0 ? usual : settings_.tokens, 1)
                                          : parse_shape(settings_.tree);
  options_.rule = rule_of(settings_.rule);
}

Json RunSpeculation::to_json(const Speculation& made) const {
  const ServingCounts& counts = made.counts;
  Json places = Json::array();
  for (std::size_t i = 0; i < counts.tried.size(); ++i)
    places.push_back(
        {{"tried", counts.tried[i]},
         {"right", counts.right[i]},
         {"acceptance", ratio(static_cast<double>(counts.right[i]), static_cast<double>(counts.tried[i]))}});
  const double alpha = acceptance(counts);
  return {{"drafted", made.drafted},
          {"accepted", made.accepted},
          {"acceptance", made.acceptance()},
          {"steps", made.steps},
          {"rule", settings_.rule.empty() ? "match" : settings_.rule},
          {"shape", options_.shape},
          {"positions", places},
          {"alpha", alpha},
          {"tokens_a_step",
           ratio(static_cast<double>(counts.guessing_tokens), static_cast<double>(counts.guessing_steps))},
          {"expected_tokens_a_step", expected_tokens(alpha, options_.shape.size())},
          {"target_rows", counts.tokens},
          {"draft_rows", counts.draft_rows},
          {"target_seconds", counts.target_seconds},
          {"draft_seconds", counts.draft_seconds}};
}

std::vector<std::string> RunSpeculation::lines(const Speculation& made) const {
  const ServingCounts& counts = made.counts;
  std::vector<std::string> places;
  for (std::size_t i = 0; i < counts.tried.size(); ++i)
    places.push_back(fmt::format(
        "{:.1f}%", 100 * ratio(static_cast<double>(counts.right[i]), static_cast<double>(counts.tried[i]))));
  const double alpha = acceptance(counts), tokens = static_cast<double>(made.made.ids.size());
  return {
      fmt::format("speculation: {} of {} guesses accepted ({:.1f}%), {} steps for {} tokens", made.accepted,
                  made.drafted, 100 * made.acceptance(), made.steps, made.made.ids.size()),
      fmt::format(
          "right by position: {}; {:.2f} tokens a step, (1 - a^{}) / (1 - a) = {:.2f} for a = {:.3f}",
          places.empty() ? "nothing was guessed" : fmt::format("{}", fmt::join(places, " ")),
          ratio(static_cast<double>(counts.guessing_tokens), static_cast<double>(counts.guessing_steps)),
          options_.shape.size() + 1, expected_tokens(alpha, options_.shape.size()), alpha),
      fmt::format("cost: {:.2f} rows of the model and {:.2f} of the draft a token; {} of drafts beside {}",
                  ratio(static_cast<double>(counts.tokens), tokens),
                  ratio(static_cast<double>(counts.draft_rows), tokens), human_duration(counts.draft_seconds),
                  human_duration(counts.target_seconds))};
}

}  // namespace assay
