#include "refimpl/run_sampling.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "refimpl/grammar/json_schema.h"
#include "refimpl/tokenizers/token_text.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostGrammar = 4 << 20;
constexpr std::size_t kMostStops = 64;

const CLI::Validator kWholeCount(
    [](const std::string& text) {
      return parse_u64(text) ? std::string() : fmt::format("\"{}\" is no whole number from 0 up", text);
    },
    "", "whole number");

std::pair<TokenId, double> bias_from_text(const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto id = parse_u64(text.substr(0, equals));
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  char* end = nullptr;
  const double bias = std::strtod(value.c_str(), &end);
  if (!id || *id > 0xFFFFFFFF || value.empty() || *end != '\0')
    throw Error::usage(fmt::format("--logit-bias takes ID=VALUE, not \"{}\"", escape_for_terminal(text)))
        .remedy("write --logit-bias 42=-3.5");
  return {static_cast<TokenId>(*id), bias};
}

grammar::Grammar read_grammar(const RunSettings& settings) {
  if (!settings.grammar.empty())
    return grammar::parse_gbnf(read_small_file(settings.grammar, kMostGrammar), settings.grammar);
  const std::string text =
      grammar::gbnf_of_schema(read_small_file(settings.json_schema, kMostGrammar), settings.json_schema);
  return grammar::parse_gbnf(text, settings.json_schema);
}

}  // namespace

void add_sampling_options(CLI::App& command, RunSettings& s) {
  SamplingParams& p = s.sampling;
  command.add_option("--temperature", s.temperature, "0: the likeliest token (default)")->type_name("T");
  command.add_option("--top-k", p.top_k, "Only of the K likeliest")->check(kWholeCount)->type_name("K");
  command.add_option("--top-p", p.top_p, "Only of the likeliest that make up P together")->type_name("P");
  command.add_option("--min-p", p.min_p, "Only of those with P times the likeliest's probability")
      ->type_name("P");
  command.add_option("--typical-p", p.typical_p, "Only of the most typical that make up P together")
      ->type_name("P");
  command
      .add_option("--repetition-penalty", p.repetition_penalty,
                  "Of tokens seen, prompt and text (default: 1)")
      ->type_name("X");
  command
      .add_option("--presence-penalty", p.presence_penalty, "Off the logit of a token that is in the text")
      ->type_name("X");
  command
      .add_option("--frequency-penalty", p.frequency_penalty,
                  "Off a token's logit, as often as it is in the text")
      ->type_name("X");
  command.add_option("--logit-bias", s.logit_bias, "Added to a token's logit; several are allowed")
      ->type_name("ID=V")
      ->allow_extra_args(false);
  command.add_option("--seed", p.seed, "Of sampling (default: 0)")->check(kWholeCount)->type_name("N");
  command.add_flag("--ignore-eos", s.ignore_eos, "Go on after a token that ends the text");
  command.add_option("--min-tokens", p.min_tokens, "No token that ends the text before N were made")
      ->check(kWholeCount)
      ->type_name("N");
  command.add_option("--stop", s.stop, "The text ends before this string; several are allowed")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_option("--grammar", s.grammar, "The text is one of this grammar, in GBNF")->type_name("FILE");
  command.add_option("--json-schema", s.json_schema, "The text is JSON that holds this schema")
      ->type_name("FILE");
}

void check_sampling_options(RunSettings& s) {
  SamplingParams& p = s.sampling;
  p.temperature = s.temperature.value_or(0);
  // Without a temperature the likeliest token is taken, and no rule of drawing has any say.
  const bool drawn = p.top_k != 0 || p.top_p != 1 || p.min_p != 0 || p.typical_p != 1;
  if (drawn && !s.temperature)
    throw Error::usage(
        "--top-k, --top-p, --min-p and --typical-p say how tokens are drawn, and none is drawn without "
        "--temperature")
        .remedy("add --temperature 1, or --temperature 0 for the likeliest token all the same");
  p.logit_bias.clear();
  for (const std::string& text : s.logit_bias) p.logit_bias.push_back(bias_from_text(text));
  if (!(p.temperature >= 0)) throw Error::usage("--temperature takes a number from 0 up");
  if (!(p.top_p > 0 && p.top_p <= 1)) throw Error::usage("--top-p takes a number above 0, at most 1");
  if (!(p.min_p >= 0 && p.min_p <= 1)) throw Error::usage("--min-p takes a number from 0 to 1");
  if (!(p.typical_p > 0 && p.typical_p <= 1))
    throw Error::usage("--typical-p takes a number above 0, at most 1");
  if (!(p.repetition_penalty > 0)) throw Error::usage("--repetition-penalty takes a number above 0");
  check_sampling(p);
  if (s.stop.size() > kMostStops) throw Error::usage(fmt::format("more than {} stop strings", kMostStops));
  const StopText examined(s.stop);  // none is empty
  if (!s.grammar.empty() && !s.json_schema.empty())
    throw Error::usage("--grammar and --json-schema exclude one another");
  if (s.ignore_eos && p.min_tokens > 0) throw Error::usage("--min-tokens has no say beside --ignore-eos");
}

RequestRules::RequestRules(OpenModel& model, const RunSettings& settings)
    : settings_(settings), sampling_(settings.sampling) {
  if (settings.needs_text()) tokenizer_ = &model.tokenizer();
  for (const auto& [id, bias] : sampling_.logit_bias)
    if (id >= model.model->vocabulary())
      throw Error::usage(fmt::format("--logit-bias names token {}, the model's vocabulary has {}", id,
                                     model.model->vocabulary()));
  const std::vector<TokenId> ends = model.stop_tokens();
  if (!settings.ignore_eos) sampling_.stop_tokens = ends;
  if (settings.grammar.empty() && settings.json_schema.empty()) return;
  const grammar::Grammar rules = read_grammar(settings);  // before the vocabulary, which takes longer
  TextOfTokens texts = text_of_tokens(*tokenizer_);
  grammar_ = std::make_shared<grammar::TokenGrammar>(
      rules, grammar::TokenTexts{std::move(texts.later), std::move(texts.first)}, ends);
}

void RequestRules::apply(GenerationRequest& request) const {
  request.sampling = sampling_;
  if (grammar_) request.constraint = std::make_shared<grammar::GrammarConstraint>(grammar_);
  if (settings_.stop.empty()) return;
  request.watch_text = [this] {
    return [text = std::make_shared<ShownText>(*tokenizer_, settings_.stop)](TokenId id) {
      text->push(id);
      return text->stopped();
    };
  };
}

}  // namespace assay
