// How a text is cut into words: the "pre_tokenizer" of tokenizer.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json.h"
#include "refimpl/tokenizers/regex.h"

namespace assay {

// A stretch of text and the words it is cut into; what lies between words is dropped.
struct Words {
  struct Span {
    std::uint32_t begin = 0, end = 0;
    bool first = false;  // begins where the whole text begins
  };
  std::string text;
  std::vector<Span> spans;

  std::string_view of(const Span& span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
};

// `config`: the JSON object (null: the text is one word, nullptr). Error::input for a type we do not know.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const ParsedJson& config,
                                                 const std::filesystem::path& source);

// What becomes of a match ("behavior" in tokenizer.json).
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Cuts at the pattern's matches, or with `invert` at what lies between them.
std::unique_ptr<PreTokenizer> make_split(std::string_view pattern, RegexDialect dialect,
                                         SplitBehavior behavior, bool invert = false);
// Writes bytes in GPT-2's alphabet, without cutting.
std::unique_ptr<PreTokenizer> make_byte_alphabet();
// A space before each word that begins with none.
std::unique_ptr<PreTokenizer> make_prefix_space();
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();
std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> steps);

// GPT-2's pattern, that "ByteLevel" uses.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace assay
