// What was seen of one request: the raw times, of which every figure is made (latency.h). Seconds of one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/endpoint/stream_chunk.h"

namespace assay {

// A part of the answer that bears tokens. One that names a role, or tells usage, bears none.
struct ChunkArrival {
  double at = 0;
  std::optional<std::size_t> tokens;  // as the server tells; none where it does not
};

enum class RequestEnd : std::uint8_t {
  whole,   // to its [DONE], or its finish_reason
  failed,  // `error` says how
  cut,     // by us, who were stopped
};

struct RequestRecord {
  std::size_t index = 0;
  double due = 0;    // when it should have been sent
  double sent = 0;   // … and was
  double ended = 0;  // the answer was over, with all that comes behind its tokens
  std::vector<ChunkArrival> chunks;
  std::size_t prompt_wanted = 0, output_wanted = 0;  // tokens
  std::optional<UsageTold> usage;
  std::string finish_reason;
  RequestEnd end = RequestEnd::failed;
  std::string error;
  // The tokens that its logprobs name are not the text that came with them.
  bool pieces_differ = false;

  // Tokens of the answer: by the server's usage, else by what its chunks tell, else one a chunk.
  std::size_t output_tokens() const;
  // Of the prompt and the answer.
  std::size_t all_tokens() const { return (usage ? usage->prompt_tokens : prompt_wanted) + output_tokens(); }
  // "length", before as many were made as were asked.
  bool cut_short() const {
    return end == RequestEnd::whole && finish_reason == "length" && output_tokens() < output_wanted;
  }
  // Those its chunks tell; none where one of them does not.
  std::optional<std::size_t> told_by_chunks() const;
};

}  // namespace assay
