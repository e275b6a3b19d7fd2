#include "refimpl/serve/text_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "refimpl/grammar/syntax.h"
#include "refimpl/models/placeholder_tokens.h"
#include "refimpl/sampling/stop_text.h"
#include "refimpl/tokenizers/chat_template.h"
#include "refimpl/tokenizers/token_stream.h"
#include "refimpl/tokenizers/token_text.h"

namespace assay {
namespace {

constexpr std::size_t kBlockTokens = 16;
constexpr std::size_t kKeptGrammars = 16;
constexpr const char* kPromptField = "prompt";
constexpr const char* kMessagesField = "messages";

// Blocks that go to other levels go as numbers.
bool keeps_codes(const ServiceOptions& asked) {
  return asked.method != nullptr && !asked.tiers.wanted();
}

// As many as the bytes allow, but no more than a few texts of the full length need, and enough for one short text.
std::size_t blocks_for(const LanguageModel& model, Real storage, const ServiceOptions& asked) {
  const std::uint64_t a_token = bytes_a_token(model.cache_widths(), storage, keeps_codes(asked));
  const std::size_t affordable = asked.cache_bytes / std::max<std::uint64_t>(1, a_token * kBlockTokens);
  const std::size_t of_a_text = model.context() / kBlockTokens + 1;
  return std::clamp<std::size_t>(affordable, 4, of_a_text * 64);
}

ServingOptions serving_options(const OpenModel& open, std::size_t blocks, const ServiceOptions& asked) {
  // Blocks that stay in the process: its weights, precision and kernels are one each.
  return {.cache = {.blocks = blocks, .block_tokens = kBlockTokens},
          .identity = asked.identity.empty() ? open.title() : asked.identity,
          .method = asked.method,
          .coded_blocks = keeps_codes(asked)};
}

void check_below(std::span<const TokenId> ids, std::size_t vocabulary, std::string_view field) {
  for (const TokenId id : ids) {
    if (id >= vocabulary)
      throw field_error(field, fmt::format("names token {}, but the vocabulary has {}", id, vocabulary));
  }
}

}  // namespace

TextService::TextService(OpenModel& open, const ServiceOptions& options)
    : open_(open),
      tokenizer_(options.ids_only ? nullptr : &open.tokenizer()),
      names_(tokenizer_),
      ends_(open.stop_tokens()),
      name_(options.model_name),
      fingerprint_(fmt::format("assay {}; {}", ASSAY_VERSION, open.title())),
      capacity_(blocks_for(*open.model, open.arithmetic.storage(), options) * kBlockTokens),
      tiers_(options.tiers),
      engine_(*open.model, *open.ops, serving_options(open, capacity_ / kBlockTokens, options),
              options.under_way, tiers_.parts()) {
  tiers_.attend(engine_.scheduler());
}

void TextService::check_ids(std::span<const TokenId> ids, std::string_view field) const {
  check_below(ids, open_.model->vocabulary(), field);
}
void TextService::check_names(std::span<const TokenId> ids, std::string_view field) const {
  check_below(ids, tokenizer_for(field).vocab_size(), field);
}

const Tokenizer& TextService::tokenizer_for(std::string_view field) const {
  if (tokenizer_ == nullptr)
    throw field_error(field, "asks for a tokenizer, and the model is served without one: token ids alone");
  return *tokenizer_;
}

void TextService::check(const Prompt& prompt, std::string_view field) const {
  const std::size_t limit = std::min(context(), capacity_);
  if (prompt.tokens.empty()) throw field_error(field, "is empty: a text needs a token to go on from");
  if (prompt.tokens.size() > limit)
    throw field_error(field,
                      fmt::format("has {} tokens; at most {} can be read here", prompt.tokens.size(), limit));
  check_ids(prompt.tokens, field);
  try {
    require_text(prompt.tokens, open_.weights.config());
  } catch (const Error& error) {
    throw field_error(field, error.message());
  }
}

std::vector<TextService::Prompt> TextService::prompts_of(const TextRequest& request) const {
  std::vector<Prompt> prompts;
  for (const PromptGiven& given : request.prompts) {
    Prompt prompt;
    if (const auto* text = std::get_if<std::string>(&given)) {
      prompt = {tokenizer_for(kPromptField).encode(*text, {.add_special = request.add_special}), *text};
    } else {
      prompt.tokens = std::get<std::vector<TokenId>>(given);
      check_ids(prompt.tokens, kPromptField);
      if (request.echo && tokenizer_ != nullptr) {
        TokenStream stream(*tokenizer_);
        for (const TokenId id : prompt.tokens) prompt.text += stream.push(id);
        prompt.text += stream.finish();
      }
    }
    check(prompt, kPromptField);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

TextService::Prompt TextService::prompt_of(const ChatRequestBody& request) const {
  ChatRequest chat = {.messages = request.messages,
                      .tools = request.tools,
                      .documents = request.documents,
                      .variables = request.variables,
                      .add_generation_prompt = request.add_generation_prompt,
                      .continue_final_message = request.continue_final_message};
  Prompt prompt;
  const Tokenizer& tokenizer = tokenizer_for(kMessagesField);
  try {
    const bool with_tools = !request.tools.is_missing();
    prompt.text = ChatTemplate::of(tokenizer, "", with_tools).render(chat);
  } catch (const Error& error) {
    throw field_error(kMessagesField, error.message());
  }
  prompt.tokens = tokenizer.encode(prompt.text, {.add_special = false});
  check(prompt, kMessagesField);
  return prompt;
}

// Made once: going over a vocabulary takes longer than most answers.
std::shared_ptr<grammar::TokenGrammar> TextService::grammar_of(const std::string& gbnf) {
  const Tokenizer& tokenizer = tokenizer_for("grammar");
  const std::lock_guard lock(mutex_);
  if (const auto found = grammars_.find(gbnf); found != grammars_.end()) return found->second;
  try {
    const grammar::Grammar rules = grammar::parse_gbnf(gbnf, "");
    TextOfTokens texts = text_of_tokens(tokenizer);
    auto made = std::make_shared<grammar::TokenGrammar>(
        rules, grammar::TokenTexts{std::move(texts.later), std::move(texts.first)}, ends_);
    if (grammars_.size() >= kKeptGrammars) grammars_.erase(grammars_.begin());
    grammars_.emplace(gbnf, made);
    return made;
  } catch (const Error& error) {
    throw field_error("grammar", error.message());
  }
}

std::vector<TextOrder> TextService::orders_of(const TextRequest& request,
                                              const std::vector<Prompt>& prompts) {
  for (const auto& [id, bias] : request.sampling.logit_bias) check_ids(std::span(&id, 1), "logit_bias");
  check_ids(request.sampling.stop_tokens, "stop_token_ids");
  ServingRequest order = {.samples = request.samples,
                          .salt = request.salt,
                          .prompt_logits = request.echo && request.log_probabilities.has_value()};
  order.text.sampling = request.sampling;
  if (!request.ignore_end)
    order.text.sampling.stop_tokens.insert(order.text.sampling.stop_tokens.end(), ends_.begin(), ends_.end());
  if (!request.grammar.empty())
    order.text.constraint = std::make_shared<grammar::GrammarConstraint>(grammar_of(request.grammar));
  if (!request.stops.empty()) {
    order.text.watch_text = [&tokenizer = tokenizer_for("stop"), stops = request.stops] {
      return [stream = std::make_shared<TokenStream>(tokenizer),
              stop = std::make_shared<StopText>(stops)](TokenId id) {
        stop->push(stream->push(id));
        return stop->stopped();
      };
    };
  }
  std::vector<TextOrder> orders;
  for (const Prompt& prompt : prompts) {
    order.text.prompt = prompt.tokens;
    order.text.max_new_tokens = request.most_tokens.value_or(context());
    orders.push_back({order, request.log_probabilities});
  }
  return orders;
}

}  // namespace assay
