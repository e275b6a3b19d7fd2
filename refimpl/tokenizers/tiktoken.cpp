// Special tokens and their ids: tiktoken_ext/openai_public.py; Qwen's tokenization_qwen.py; Kimi's
// tokenization_kimi.py; Llama 3's tokenizer.py.
#include "refimpl/tokenizers/tiktoken.h"

#include <fmt/format.h>

#include <array>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/bpe.h"
#include "refimpl/tokenizers/charsmap.h"
#include "refimpl/tokenizers/patterns.h"
#include "refimpl/tokenizers/pipeline.h"

namespace assay {
namespace {

struct NumberedName {
  TokenId id;
  std::string name;
};

struct Family {
  std::string_view name, pattern;
  std::size_t ranks;  // by which a file without a telling name is known; 0: by name only
  std::vector<NumberedName> special;
  std::string_view bos = {}, eos = {};
  std::size_t reserved = 0;  // ids behind the ranks that no piece has
};

// `count` names made of a number each: first_id + i gets name(first_number + i).
template <class Name>
void add_numbered(std::vector<NumberedName>& names, TokenId first_id, int count, Name name) {
  for (int i = 0; i < count; ++i) names.push_back({first_id + static_cast<TokenId>(i), name(i)});
}

std::vector<NumberedName> llama3_special() {
  const auto reserved = [](int i) { return fmt::format("<|reserved_special_token_{}|>", i); };
  std::vector<NumberedName> names = {{128000, "<|begin_of_text|>"},
                                     {128001, "<|end_of_text|>"},
                                     {128002, reserved(0)},
                                     {128003, reserved(1)},
                                     {128004, "<|finetune_right_pad_id|>"},
                                     {128005, reserved(2)},
                                     {128006, "<|start_header_id|>"},
                                     {128007, "<|end_header_id|>"},
                                     {128008, "<|eom_id|>"},
                                     {128009, "<|eot_id|>"},
                                     {128010, "<|python_tag|>"}};
  add_numbered(names, 128011, 245, [&](int i) { return reserved(i + 3); });
  return names;
}

std::vector<NumberedName> qwen_special() {
  std::vector<NumberedName> names = {
      {151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}};
  add_numbered(names, 151646, 205, [](int i) { return fmt::format("<|extra_{}|>", i); });
  return names;
}

std::vector<NumberedName> harmony_special() {
  std::vector<NumberedName> names = {
      {199998, "<|startoftext|>"}, {199999, "<|endoftext|>"}, {200002, "<|return|>"},
      {200003, "<|constrain|>"},   {200005, "<|channel|>"},   {200006, "<|start|>"},
      {200007, "<|end|>"},         {200008, "<|message|>"},   {200012, "<|call|>"}};
  for (TokenId id = 200000; id < 201088; ++id) {
    const bool named = (id >= 200002 && id <= 200008 && id != 200004) || id == 200012;
    if (!named) names.push_back({id, id == 200018 ? "<|endofprompt|>" : fmt::format("<|reserved_{}|>", id)});
  }
  return names;
}

const std::vector<Family>& families() {
  static const std::vector<Family> known = {
      {"cl100k_base",
       "cl100k_base",
       100256,
       {{100257, "<|endoftext|>"},
        {100258, "<|fim_prefix|>"},
        {100259, "<|fim_middle|>"},
        {100260, "<|fim_suffix|>"},
        {100276, "<|endofprompt|>"}},
       "",
       "<|endoftext|>"},
      {"o200k_harmony", "gpt-4o", 0, harmony_special(), "<|startoftext|>", "<|return|>"},
      {"o200k_base",
       "gpt-4o",
       199998,
       {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}},
       "",
       "<|endoftext|>"},
      {"p50k_edit",
       "gpt-2",
       0,
       {{50256, "<|endoftext|>"},
        {50281, "<|fim_prefix|>"},
        {50282, "<|fim_middle|>"},
        {50283, "<|fim_suffix|>"}},
       "",
       "<|endoftext|>"},
      {"p50k_base", "gpt-2", 50280, {{50256, "<|endoftext|>"}}, "", "<|endoftext|>"},
      {"r50k_base", "gpt-2", 50256, {{50256, "<|endoftext|>"}}, "", "<|endoftext|>"},
      {"gpt2", "gpt-2", 0, {{50256, "<|endoftext|>"}}, "", "<|endoftext|>"},
      {"qwen", "qwen2-nfc", 151643, qwen_special(), "", "<|endoftext|>"},
      {"llama3", "llama-bpe", 128000, llama3_special(), "<|begin_of_text|>", "<|end_of_text|>"},
      {"kimi", "kimi-k2", 163584, {}, "[BOS]", "[EOS]", 256}};
  return known;
}

const Family* family_of(std::string_view pattern, const std::string& file_name, const std::string& model_type,
                        std::size_t ranks) {
  const auto contains = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  for (const Family& family : families()) {
    if (pattern.empty() ? contains(file_name, family.name)
                        : pattern == family.name || pattern == family.pattern)
      return &family;
  }
  for (const Family& family : families()) {
    if (pattern.empty() && contains(model_type, family.name)) return &family;
  }
  for (const Family& family : families()) {
    if (pattern.empty() && family.ranks == ranks) return &family;
  }
  return nullptr;
}

void read_ranks(std::string_view text, Vocabulary& vocabulary, const fs::path& source) {
  std::uint64_t offset = 0;
  while (offset < text.size()) {
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    std::string_view line = text.substr(offset, end - offset);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t space = line.find(' ');
    if (!line.empty()) {
      const auto bytes =
          space == std::string_view::npos ? std::nullopt : decode_base64(line.substr(0, space));
      const auto rank = space == std::string_view::npos ? std::nullopt : parse_u64(line.substr(space + 1));
      if (!bytes || bytes->empty() || !rank || *rank >= kMostPieces)
        throw Error::input("line is not \"base64 rank\"").in(source).at(offset);
      vocabulary.set(static_cast<TokenId>(*rank), *bytes);
    }
    offset = end + 1;
  }
}

}  // namespace

bool looks_like_ranks(std::string_view beginning) {
  const std::string_view line = beginning.substr(0, beginning.find('\n'));
  const std::size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 && decode_base64(line.substr(0, space)) &&
         parse_u64(trim(line.substr(space + 1)));
}

std::unique_ptr<Tokenizer> read_tiktoken(std::string_view text, std::string_view pattern,
                                         const TokenizerNeighbours& neighbours, const fs::path& source) {
  PipelineParts parts;
  read_ranks(text, parts.vocabulary, source);
  const std::size_t ranks = parts.vocabulary.size();
  const Family* family = family_of(pattern, source.filename().string(), neighbours.model_type, ranks);
  const WordPattern* words = find_pattern(family != nullptr ? family->pattern : pattern);
  if (words == nullptr && pattern.empty()) {
    throw Error::input(fmt::format("a rank file of {} pieces of no family we know", ranks))
        .in(source)
        .remedy("say with --pattern how words are cut: a name such as cl100k_base, or a regular expression");
  }
  std::vector<AddedToken> added;
  if (family != nullptr && neighbours.added.empty()) {
    for (const NumberedName& name : family->special) added.push_back({name.id, name.name, true});
  }
  parts.added = merge_added(neighbours, std::move(added), parts.vocabulary);
  // Those without a name of their own have this one.
  if (family != nullptr) {
    for (TokenId id = static_cast<TokenId>(ranks); id < ranks + family->reserved; ++id) {
      if (parts.vocabulary.kind(id) != PieceKind::absent) continue;
      parts.added.push_back({id, fmt::format("<|reserved_token_{}|>", id), true});
      parts.vocabulary.add(id, parts.added.back().content, PieceKind::control);
    }
  }
  parts.special = special_tokens(neighbours, parts.vocabulary);
  if (family != nullptr && !parts.special.bos) parts.special.bos = parts.vocabulary.find(family->bos);
  if (family != nullptr && !parts.special.eos) parts.special.eos = parts.vocabulary.find(family->eos);
  find_end_of_generation(parts.special, parts.vocabulary);
  if (words != nullptr && words->nfc) parts.normalizer = make_nfc_normalizer();
  parts.pre_tokenizer = words != nullptr ? make_words(*words)
                                         : make_split(pattern, RegexDialect::rust, SplitBehavior::isolated);
  parts.model = make_tiktoken_bpe();
  const bool add_bos = neighbours.add_bos.value_or(words != nullptr && words->add_bos);
  parts.frame = bos_eos_frame(parts.special, add_bos, neighbours.add_eos.value_or(false));
  parts.decoder = verbatim_decoder();
  auto tokenizer = make_pipeline(std::move(parts));
  tokenizer->describe(fmt::format("tiktoken ranks: {}", family != nullptr  ? family->name
                                                        : words != nullptr ? words->name
                                                                           : "a pattern of your own"));
  return tokenizer;
}

}  // namespace assay
