// What engines said of tokens, as it was saved: of each token its log-probability, and of some the likeliest
// others. The readers of all formats give this.
//
//   const SavedResponses saved = read_responses("vllm.json");     // which format it is, its content says
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::logprobs {

struct SavedCandidate {
  std::optional<std::uint32_t> id;
  std::string text;
  double logprob = 0;
};

// A token that is named by its text alone, by which it may be one of several: what is no whole character is U+FFFD to SGLang and
// nothing at all to vLLM, and an object of such names holds one of them.
inline bool may_be_several(const std::optional<std::uint32_t>& id, std::string_view text) {
  return !id && (text.empty() || text.find("\xEF\xBF\xBD") != std::string_view::npos);
}

struct SavedToken {
  std::optional<std::uint32_t> id;
  std::string text;               // its bytes, where they are given
  std::optional<double> logprob;  // natural; none: the engine gave none, as of a prompt's first token
  double resolution = 0;          // what is saved may be so far from what was computed
  bool at_most = false;           // the value is the lowest that the format can hold
  std::optional<std::uint64_t> rank;
  bool generated = false;
  // No value, for a reason of the format's: llama-server tells none of a token that ends within a character.
  bool within_character = false;
  std::vector<SavedCandidate> top;  // the likeliest at this place, as far as they were saved
};

struct SavedText {
  std::string name;  // "0", "line 7"
  std::vector<SavedToken> tokens;
  std::size_t unknown_before = 0;          // tokens that stood before the first of these, and are not told
  std::optional<std::string> prompt_text;  // what stood before, as text
  bool bos_over_first = false;  // the engine read BOS in place of the first, where the tokenizer adds one
};

enum class ResponseFormat : std::uint8_t { vllm, sglang, llama_server, openai, perplexity_base, table };
std::string_view name(ResponseFormat format);  // "vLLM", "llama-perplexity --kl-divergence-base", …

struct SavedResponses {
  ResponseFormat format = ResponseFormat::table;
  std::vector<SavedText> texts;
  bool processed = false;  // probabilities after temperature and samplers, not the model's
};

// Throws Error::input for what is in none of the formats, cut, or says what no probability is: NaN, above 1.
SavedResponses read_responses(const std::filesystem::path& path);
SavedResponses parse_responses(std::string_view bytes, const std::filesystem::path& source);

}  // namespace assay::logprobs
