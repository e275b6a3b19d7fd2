// What a server takes and tells, found by asking: few short requests before any that is measured.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "refimpl/bench_url/request_body.h"
#include "refimpl/endpoint/endpoint_client.h"

namespace assay {

enum class PromptForm : std::uint8_t { automatic, ids, text };

struct ProbeWishes {
  EndpointKind kind = EndpointKind::completions;
  std::string model;  // empty: the first that /v1/models names
  PromptForm form = PromptForm::automatic;
  std::optional<std::pair<TokenNumber, TokenNumber>> ids;  // from, to: what prompts of ids are made of
  double temperature = 0;
  bool log_probabilities = false;
};

struct ServerTraits {
  RequestShape shape;
  PromptPool pool;
  std::optional<std::size_t> context;  // tokens of a prompt and its answer, where the server tells
  std::string counted_by;              // who tells how many tokens a chunk bears: "token_ids"; empty: nobody
};

// Throws Error::io where nobody answers, Error::input where the simplest request is refused.
ServerTraits probe_server(EndpointClient& client, const ProbeWishes& wishes);
// Only what prompts are made of, of a server that may not stream.
ServerTraits probe_prompts(EndpointClient& client, const ProbeWishes& wishes);

}  // namespace assay
