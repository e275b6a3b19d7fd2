// A recorded workload: who came when, with how long a prompt, and how long the answer was.
//
//   Mooncake (FAST'25): a JSON object a line: timestamp (ms), input_length, output_length, hash_ids: a number for each
//                       block of 512 tokens of the prompt, the last one perhaps partly filled; equal numbers, equal
//                       prefixes
//   Azure LLM inference: csv of TIMESTAMP,ContextTokens,GeneratedTokens; nothing is known of what prompts share
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace assay {

struct TraceRequest {
  double arrival = 0;  // ms after the first
  std::size_t input = 0, output = 0;
  std::vector<std::uint64_t> blocks;  // by block of the prompt; empty: not known
};

struct Trace {
  std::size_t block_tokens = 0;  // of hash_ids; 0: none are known
  bool knows_answers = false;    // blocks go on behind the prompts
  std::vector<TraceRequest> requests;
  std::size_t distinct_blocks() const;
};

// Throws Error::input naming the line.
Trace read_trace(const std::filesystem::path& file);
Trace parse_trace(std::istream& in, const std::string& name);

}  // namespace assay
