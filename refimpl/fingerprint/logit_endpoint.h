// A server asked for the log-probabilities of the one token that follows each of some prompts.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "refimpl/bench_url/prompts.h"
#include "refimpl/endpoint/endpoint_client.h"

namespace assay {

struct NextTokens {
  std::vector<logprobs::SavedToken>
      tokens;           // of each prompt what follows, chosen greedily, with the likeliest beside it
  std::string refused;  // why there are none: the server's words
};

// A token as this server names it: "token_id:17", or its text.
std::string name_of(const std::optional<std::uint32_t>& id, const std::string& text);

class LogitEndpoint {
 public:
  // `model`: empty: none is named.
  LogitEndpoint(EndpointClient& client, EndpointKind kind, std::string model);

  // Which of the words that make answers easier to read the server takes, and whether it takes several prompts at once. False, with
  // its words in why(): it refuses the plainest request, or tells no log-probability.
  bool learn(const PromptSent& prompt);
  const std::string& why() const { return why_; }
  std::size_t most_prompts() const { return most_prompts_; }
  std::size_t requests() const { return requests_; }

  // `top`: so many of the likeliest. Throws Error::io where nobody answers.
  NextTokens ask(std::span<const PromptSent> prompts, std::size_t top,
                 const std::vector<std::pair<TokenNumber, double>>& biases = {});

 private:
  std::string body(std::span<const PromptSent> prompts, std::size_t top,
                   const std::vector<std::pair<TokenNumber, double>>& biases) const;
  EndpointClient& client_;
  EndpointKind kind_;
  std::string model_, why_;
  bool ids_as_names_ = true, ignore_end_ = true;
  std::size_t most_prompts_ = 1, requests_ = 0;
};

}  // namespace assay
