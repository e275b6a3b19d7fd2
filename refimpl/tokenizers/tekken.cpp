#include "refimpl/tokenizers/tekken.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/bpe.h"
#include "refimpl/tokenizers/charsmap.h"
#include "refimpl/tokenizers/json_access.h"
#include "refimpl/tokenizers/patterns.h"
#include "refimpl/tokenizers/pipeline.h"

namespace assay {
namespace {

// Of files that name none, which those up to version 7 are.
constexpr std::array<std::string_view, 20> kEarlySpecial = {"<unk>",
                                                            "<s>",
                                                            "</s>",
                                                            "[INST]",
                                                            "[/INST]",
                                                            "[AVAILABLE_TOOLS]",
                                                            "[/AVAILABLE_TOOLS]",
                                                            "[TOOL_RESULTS]",
                                                            "[/TOOL_RESULTS]",
                                                            "[TOOL_CALLS]",
                                                            "[IMG]",
                                                            "<pad>",
                                                            "[IMG_BREAK]",
                                                            "[IMG_END]",
                                                            "[PREFIX]",
                                                            "[MIDDLE]",
                                                            "[SUFFIX]",
                                                            "[SYSTEM_PROMPT]",
                                                            "[/SYSTEM_PROMPT]",
                                                            "[TOOL_CONTENT]"};
constexpr std::uint64_t kLastWithoutNames = 7;

class TekkenFile {
 public:
  TekkenFile(const ParsedJson& file, const fs::path& source) : file_(file), source_(source) {
    const ParsedJson& config = member(file_, "config");
    if (!config.is_object()) fail("config is no object");
    special_ = count(config, "default_num_special_tokens");
    const std::uint64_t all = count(config, "default_vocab_size");
    if (all <= special_) fail("default_vocab_size is not more than default_num_special_tokens");
    pieces_ = all - special_;
    pattern = string_member(config, "pattern", "", source_);
    if (pattern.empty()) fail("config has no pattern");
    version_ = string_member(config, "version", "", source_);
  }

  std::string pattern;

  // Piece `rank` has the id `special tokens + rank`.
  void read_pieces(Vocabulary& vocabulary) const {
    const ParsedJson& list = member(file_, "vocab");
    if (!list.is_array()) fail("vocab is no list");
    std::vector<bool> seen(pieces_);
    for (const ParsedJson& piece : list) {
      const ParsedJson& rank = member(piece, "rank");
      const ParsedJson& text = member(piece, "token_bytes");
      if (!rank.is_number_unsigned() || !text.is_string())
        fail("vocab holds what has no rank or token_bytes");
      const auto place = rank.get<std::uint64_t>();
      if (place >= pieces_) continue;
      const auto bytes = decode_base64(text.get_ref<const std::string&>());
      if (!bytes || bytes->empty()) fail(fmt::format("token_bytes of rank {} are no base64", place));
      if (seen[place]) fail(fmt::format("rank {} is there twice", place));
      seen[place] = true;
      vocabulary.set(static_cast<TokenId>(special_ + place), *bytes);
    }
    for (std::uint64_t rank = 0; rank < pieces_; ++rank)
      if (!seen[rank]) fail(fmt::format("rank {} is missing", rank));
  }

  // Those that nobody named are called by their number.
  std::vector<AddedToken> special_tokens() const {
    std::vector<AddedToken> tokens = named_tokens();
    std::set<TokenId> ids;
    std::set<std::string> names;
    for (const AddedToken& token : tokens)
      if (!ids.insert(token.id).second || !names.insert(token.content).second)
        fail(fmt::format("special token {} is there twice", token.id));
    for (TokenId id = 0; id < special_; ++id)
      if (!ids.contains(id)) tokens.push_back({id, fmt::format("<SPECIAL_{}>", id), true});
    return tokens;
  }

 private:
  std::vector<AddedToken> named_tokens() const {
    std::vector<AddedToken> tokens;
    const ParsedJson& list = member(file_, "special_tokens");
    if (list.is_null()) {
      const auto number = parse_u64(std::string_view(version_).substr(version_.empty() ? 0 : 1));
      if (number.value_or(0) > kLastWithoutNames) fail("special_tokens are not there");
      for (TokenId id = 0; id < kEarlySpecial.size() && id < special_; ++id)
        tokens.push_back({id, std::string(kEarlySpecial[id]), true});
      return tokens;
    }
    if (!list.is_array()) fail("special_tokens are no list");
    for (const ParsedJson& token : list) {
      const ParsedJson& rank = member(token, "rank");
      const ParsedJson& text = member(token, "token_str");
      if (!rank.is_number_unsigned() || !text.is_string() || rank.get<std::uint64_t>() >= special_)
        fail("special_tokens holds what has no token_str, or a rank beyond default_num_special_tokens");
      tokens.push_back(
          {rank.get<TokenId>(), text.get<std::string>(), bool_member(token, "is_control", true, source_)});
    }
    return tokens;
  }

  std::uint64_t count(const ParsedJson& config, const char* key) const {
    const ParsedJson& value = member(config, key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostPieces)
      fail(fmt::format("config.{} is no number of tokens", key));
    return value.get<std::uint64_t>();
  }
  [[noreturn]] void fail(const std::string& message) const { throw Error::input(message).in(source_); }

  const ParsedJson& file_;
  const fs::path& source_;
  std::uint64_t special_ = 0, pieces_ = 0;
  std::string version_;
};

// The pattern of every tekken.json published so far is known, and faster than one that is read.
std::unique_ptr<PreTokenizer> words_of(const std::string& pattern) {
  const WordPattern* known = find_pattern("tekken");
  if (known != nullptr && known->regexes.size() == 1 && known->regexes.front() == pattern)
    return make_words(*known);
  return make_split(pattern, RegexDialect::rust, SplitBehavior::isolated);
}

}  // namespace

bool is_tekken(const fs::path& file) {
  return file.extension() == ".json" && file.filename().string().find("tekken") != std::string::npos;
}

std::unique_ptr<Tokenizer> read_tekken(std::string_view text, const TokenizerNeighbours& neighbours,
                                       const fs::path& source) {
  constexpr std::uint64_t kMostBytes = 256ull << 20;
  const ParsedJson document = parse_json(text, source, {.max_bytes = kMostBytes});
  const TekkenFile file(document, source);
  PipelineParts parts;
  file.read_pieces(parts.vocabulary);
  parts.added = merge_added(neighbours, file.special_tokens(), parts.vocabulary);
  parts.special = special_tokens(neighbours, parts.vocabulary);
  const auto by_name = [&](std::optional<TokenId>& token, std::string_view name) {
    if (!token) token = parts.vocabulary.find(name);
  };
  by_name(parts.special.bos, "<s>");
  by_name(parts.special.eos, "</s>");
  by_name(parts.special.unk, "<unk>");
  by_name(parts.special.pad, "<pad>");
  find_end_of_generation(parts.special, parts.vocabulary);
  parts.pre_tokenizer = words_of(file.pattern);
  parts.model = make_tiktoken_bpe();
  parts.frame =
      bos_eos_frame(parts.special, neighbours.add_bos.value_or(true), neighbours.add_eos.value_or(false));
  parts.decoder = verbatim_decoder();
  auto tokenizer = make_pipeline(std::move(parts));
  tokenizer->describe("tekken: tiktoken ranks behind special tokens");
  return tokenizer;
}

}  // namespace assay
