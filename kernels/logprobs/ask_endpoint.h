// A server asked for the log-probabilities of given prompts and of what it writes behind them: by whichever of the known ways
// it gives most.
//
//   EndpointAsker asker(client, "name");
//   SavedResponses alone = asker.ask(prompts, 16);             // one after the other
//   SavedResponses together = asker.ask_at_once(…);            // all at the same time
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "refimpl/endpoint/endpoint_client.h"
#include "refimpl/models/model.h"

namespace assay::logprobs {

struct EndpointPrompt {
  std::string name;  // "long", "65 tokens"
  std::vector<TokenId> ids;
};

// Short, long, repeated, several languages, and lengths around those of blocks, none longer than `longest`. Ids of the last kind are
// drawn by seed. `encode` may be empty: then all are drawn.
using Encode = std::function<std::vector<TokenId>(std::string_view)>;
std::vector<EndpointPrompt> built_in_prompts(const Encode& encode, std::size_t vocabulary,
                                             std::size_t longest, std::uint64_t seed);

// How a server is asked, what its answer is read as.
struct AskingWay {
  const char* name;   // "echo", "prompt_logprobs", …: for people
  const char* route;  // "/v1/completions"
  bool scores_prompts;
  // The first answers of a run cannot come out of a cache: prompts are scored, caches are turned off, or the run's own salt is taken.
  bool excludes_cache;
  std::string (*body)(const std::string& model, const EndpointPrompt& prompt, std::size_t made,
                      const std::string& salt);
};

class EndpointAsker {
 public:
  using Connect = std::function<EndpointClient()>;
  // Tries the ways with `first`. Throws Error::io where nobody answers, Error::usage where a key is wanted, or the server
  // has no such model.
  EndpointAsker(Connect connect, std::string model, const EndpointPrompt& first);
  // Why no way gives log-probabilities; empty: one does, and the rest may be called.
  const std::string& refusal() const { return refusal_; }
  const AskingWay& way() const { return *way_; }
  const std::string& model() const { return model_; }

  // Texts in the order of the prompts, each beginning with its prompt's ids. `at_once`: a connection each, all at the same time.
  // Throws Error::input where an answer is an error.
  struct Answers {
    SavedResponses saved;
    std::string other_tokens;  // where the server made other tokens of a prompt: which
    std::size_t missing = 0;   // log-probabilities of tokens that such an answer has, and that did not come
    std::size_t within_characters = 0;  // those that did not come by the format's own rule (saved.h)
    bool cache_excluded =
        true;  // by the way of asking, or each answer tells that nothing of its prompt was cached
  };
  Answers ask(const std::vector<EndpointPrompt>& prompts, std::size_t made, bool at_once) const;

 private:
  static SavedText text_of(const HttpAnswer& answer, const EndpointPrompt& prompt);
  Connect connect_;
  std::string model_, refusal_, salt_;
  const AskingWay* way_ = nullptr;
};

}  // namespace assay::logprobs
