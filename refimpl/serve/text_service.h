// A model that answers: from what a client asks for to orders for the engine. Any number of threads may ask.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "refimpl/block_store/tiers.h"
#include "refimpl/grammar/token_grammar.h"
#include "refimpl/run_model.h"
#include "refimpl/serve/engine_thread.h"
#include "refimpl/serve/text_request.h"
#include "refimpl/serve/token_names.h"

namespace assay {

struct ServiceOptions {
  std::size_t cache_bytes = 1u << 30;  // of keys and values, together
  std::size_t under_way = 256;         // prompts, waiting and computed
  std::string model_name;
  bool ids_only = false;  // without a tokenizer
  TierOptions tiers = {};
  std::string identity = {};  // of blocks that later processes may read
  std::shared_ptr<const CacheMethod> method = {};
};

class TextService {
 public:
  TextService(OpenModel& open, const ServiceOptions& options);

  struct Prompt {
    std::vector<TokenId> tokens;
    std::string text;  // as it is echoed
  };
  // All throw Error::input naming the field.
  std::vector<Prompt> prompts_of(const TextRequest& request) const;
  Prompt prompt_of(const ChatRequestBody& request) const;
  std::vector<TextOrder> orders_of(const TextRequest& request, const std::vector<Prompt>& prompts);

  EngineThread& engine() { return engine_; }
  TieredLevel::Counts tier_counts() const { return tiers_.counts(); }
  const Tokenizer* tokenizer() const { return tokenizer_; }
  // Throws Error::input naming the field that asks for one, where the model is served without.
  const Tokenizer& tokenizer_for(std::string_view field) const;
  const TokenNames& names() const { return names_; }
  const std::string& model_name() const { return name_; }
  const std::string& fingerprint() const { return fingerprint_; }
  std::size_t context() const { return open_.model->context(); }
  // Throw Error::input where the model, or the tokenizer, knows no such token.
  void check_ids(std::span<const TokenId> ids, std::string_view field) const;
  void check_names(std::span<const TokenId> ids, std::string_view field) const;

 private:
  std::shared_ptr<grammar::TokenGrammar> grammar_of(const std::string& gbnf);
  void check(const Prompt& prompt, std::string_view field) const;

  OpenModel& open_;
  const Tokenizer* tokenizer_;
  TokenNames names_;
  std::vector<TokenId> ends_;
  std::string name_, fingerprint_;
  std::size_t capacity_;  // tokens that the cache holds
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grammar::TokenGrammar>> grammars_;  // by their GBNF, the latest few
  CacheTiers tiers_;
  EngineThread engine_;
};

}  // namespace assay
