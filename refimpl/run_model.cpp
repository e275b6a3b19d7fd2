#include "refimpl/run_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/formats/two_models.h"
#include "core/system/error.h"
#include "core/system/message.h"
#include "core/system/text.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/chat_options.h"
#include "refimpl/engine/engine.h"
#include "refimpl/models/placeholder_tokens.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/token_list.h"

namespace assay {
namespace {

ModelOptions model_options(const RunSettings& settings) {
  ModelOptions options;
  options.variant = settings.variant;
  options.mla = settings.mla == "naive" ? MlaForm::naive : MlaForm::absorbed;
  options.moe = settings.experts == "dense" ? MoeForm::dense : MoeForm::sparse;
  return options;
}

LayerGroups layer_groups(const std::string& cache) {
  return cache.empty() ? LayerGroups{} : cache_method(cache)->groups();
}

// eos_token_id is a number, or a list of them.
void add_stops(const ParsedJson& document, std::vector<TokenId>& stops) {
  const auto found = document.find("eos_token_id");
  if (found == document.end()) return;
  const auto add = [&](const ParsedJson& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= 0xFFFFFFFF)
      stops.push_back(value.get<TokenId>());
  };
  if (!found->is_array()) return add(*found);
  for (const ParsedJson& value : *found) add(value);
}

}  // namespace

OpenModel::OpenModel(const std::string& path, const RunSettings& settings)
    : weights(path, settings.common.jobs),
      options(model_options(settings)),
      kernels(settings.select(settings.kernels)),
      arithmetic{precision_from_text(settings.precision).value()},
      ops(kernels.make(arithmetic, settings.common.jobs)),
      model(make_model(weights.regroup(layer_groups(settings.kv_cache)), options)) {
  for (const Finding& finding : weights.checkpoint().findings)
    if (finding.code == kTwoModels) write_message("assay: " + escape_for_terminal(to_line(finding)));
}

const Tokenizer& OpenModel::tokenizer() {
  if (tokenizer_) return *tokenizer_;
  tokenizer_ = load_tokenizer(weights.checkpoint(), model->vocabulary());
  return *tokenizer_;
}

std::vector<TokenId> OpenModel::stop_tokens() {
  std::vector<TokenId> stops;
  const Checkpoint& checkpoint = weights.checkpoint();
  add_stops(weights.config().document(), stops);
  const fs::path generation = checkpoint.root / "generation_config.json";
  if (!checkpoint.gguf && fs::exists(generation)) add_stops(read_json(generation), stops);
  if (tokenizer_) {
    const std::vector<TokenId>& own = tokenizer_->special().end_of_generation;
    stops.insert(stops.end(), own.begin(), own.end());
  }
  return stops;
}

std::string OpenModel::title() const {
  return fmt::format("{} in {}, {} kernels", weights.tree().family, name(arithmetic.precision), kernels.name);
}

std::vector<Prompt> read_prompts(OpenModel& model, const RunSettings& settings) {
  std::vector<Prompt> prompts;
  std::optional<Chat> chat;
  const auto add_chat = [&](std::optional<std::string_view> text) {
    const std::string prompt = chat->prompt(text);
    prompts.push_back(
        {std::string(text.value_or(prompt)), model.tokenizer().encode(prompt, {.add_special = false})});
  };
  if (settings.chat.wanted() && settings.has_text()) chat.emplace(model.tokenizer(), settings.chat);
  if (chat && settings.prompts.empty()) add_chat(std::nullopt);
  for (const std::string& text : settings.prompts) {
    if (chat) {
      add_chat(text);
    } else {
      prompts.push_back({text, model.tokenizer().encode(text)});
    }
  }
  for (const std::string& list : settings.token_lists) prompts.push_back({"", parse_tokens(list)});
  if (prompts.empty()) throw Error::usage("no prompt").remedy("give -p TEXT or --tokens 1,2,3");
  for (const Prompt& prompt : prompts) {
    check_tokens(prompt.tokens, *model.model);
    require_text(prompt.tokens, model.weights.config());
  }
  return prompts;
}

}  // namespace assay
