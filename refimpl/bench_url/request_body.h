// The JSON of a request, in the words that the server was found to take.
#pragma once

#include <string>

#include "core/system/report.h"
#include "refimpl/bench_url/prompts.h"
#include "refimpl/endpoint/endpoint_url.h"

namespace assay {

struct RequestShape {
  EndpointKind kind = EndpointKind::completions;
  std::string model;  // empty: none is named
  double temperature = 0;
  std::uint64_t seed = 0;
  bool ignore_end = false;        // ignore_eos
  bool token_ids = false;         // return_token_ids
  bool stream_usage = false;      // stream_options.include_usage
  bool continuous_usage = false;  // … and beside every chunk
  bool log_probabilities = false;
};

std::string request_body(const RequestShape& shape, const PromptSent& prompt, std::size_t output_tokens,
                         bool stream);

}  // namespace assay
