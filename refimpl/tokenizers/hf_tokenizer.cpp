#include "refimpl/tokenizers/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/bpe.h"
#include "refimpl/tokenizers/json_access.h"
#include "refimpl/tokenizers/patterns.h"
#include "refimpl/tokenizers/pipeline.h"
#include "refimpl/tokenizers/unigram.h"
#include "refimpl/tokenizers/wordpiece.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostBytes = 256ull << 20;  // the largest in use have some 35 MB

class TokenizerReader {
 public:
  TokenizerReader(const ParsedJson& file, const TokenizerNeighbours& neighbours, const fs::path& source)
      : file_(file), model_(member(file, "model")), neighbours_(neighbours), source_(source) {}

  std::unique_ptr<Tokenizer> read() {
    if (!model_.is_object()) throw Error::input("tokenizer.json has no model").in(source_);
    const std::string type = model_type();
    PipelineParts parts;
    vocabulary(type, parts.vocabulary);
    parts.model = model(type, parts.vocabulary);
    parts.added = added(parts.vocabulary);
    parts.normalizer = read_normalizer(member(file_, "normalizer"), source_);
    parts.pre_tokenizer = read_pre_tokenizer(member(file_, "pre_tokenizer"), source_);
    parts.decoder = read_decoder(member(file_, "decoder"), source_);
    parts.special = special_tokens(neighbours_, parts.vocabulary);
    if (!parts.special.unk) parts.special.unk = unknown(parts.vocabulary);
    parts.frame = frame(member(file_, "post_processor"), parts.vocabulary);
    if (!parts.special.bos && parts.frame.size() > 1 && parts.frame.front())
      parts.special.bos = parts.frame.front();
    auto tokenizer = make_pipeline(std::move(parts));
    tokenizer->describe("tokenizer.json: " + type);
    return tokenizer;
  }

 private:
  // Files of before 2021 leave the type out.
  std::string model_type() const {
    std::string named = string_member(model_, "type", "", source_);
    if (!named.empty()) return named;
    if (member(model_, "merges").is_array()) return "BPE";
    if (member(model_, "vocab").is_array()) return "Unigram";
    return member(model_, "continuing_subword_prefix").is_string() ? "WordPiece" : "WordLevel";
  }

  TokenId checked_id(const ParsedJson& value) const {
    const std::uint64_t id = json_u64(value, "a token's id", source_);
    if (id >= kMostPieces)
      throw Error::input(fmt::format("token id {} is beyond any vocabulary", id)).in(source_);
    return static_cast<TokenId>(id);
  }

  void vocabulary(const std::string& type, Vocabulary& vocabulary) {
    const ParsedJson& vocab = member(model_, "vocab");
    if (type == "Unigram") {
      TokenId id = 0;
      for (const ParsedJson& piece : list_member(model_, "vocab", source_)) {
        const bool well_formed =
            piece.is_array() && piece.size() == 2 && piece[0].is_string() && piece[1].is_number();
        if (!well_formed) throw Error::input("vocab holds something other than [piece, score]").in(source_);
        vocabulary.set(id++, piece[0].get_ref<const std::string&>());
        scores_.push_back(piece[1].get<double>());
      }
      return;
    }
    if (!vocab.is_object()) throw Error::input("vocab is no object").in(source_);
    for (const auto& [piece, id] : vocab.items()) vocabulary.set(checked_id(id), piece);
  }

  std::unique_ptr<SubwordModel> model(const std::string& type, const Vocabulary& vocabulary) {
    if (type == "BPE") return bpe(vocabulary);
    if (type == "Unigram") {
      UnigramOptions options;
      options.unk = unknown(vocabulary);
      options.byte_fallback = bool_member(model_, "byte_fallback", false, source_);
      return make_unigram(vocabulary, std::move(scores_), options);
    }
    if (type == "WordPiece") {
      WordPieceOptions options;
      const auto unk = unknown(vocabulary);
      if (!unk) throw Error::input("WordPiece without an unk_token in its vocabulary").in(source_);
      options.unk = *unk;
      options.continuing_prefix = string_member(model_, "continuing_subword_prefix", "##", source_);
      options.most_characters =
          std::min<std::uint64_t>(u64_member(model_, "max_input_chars_per_word", 100, source_), 10'000);
      return make_wordpiece(std::move(options));
    }
    if (type == "WordLevel") return make_word_level(unknown(vocabulary));
    throw Error::input(fmt::format("model of a type we do not know: {}", type)).in(source_);
  }

  std::unique_ptr<SubwordModel> bpe(const Vocabulary& vocabulary) {
    const ParsedJson& dropout = member(model_, "dropout");
    if (dropout.is_number() && dropout.get<double>() > 0) {
      throw Error::input("BPE with dropout gives another result each time")
          .in(source_)
          .remedy("set \"dropout\" to null: it is for training");
    }
    BpeOptions options;
    options.unk = unknown(vocabulary);
    options.fuse_unk = bool_member(model_, "fuse_unk", false, source_);
    options.byte_fallback = bool_member(model_, "byte_fallback", false, source_);
    options.ignore_merges = bool_member(model_, "ignore_merges", false, source_);
    options.continuing_prefix = string_member(model_, "continuing_subword_prefix", "", source_);
    options.end_suffix = string_member(model_, "end_of_word_suffix", "", source_);
    try {
      return make_bpe(vocabulary, merges(vocabulary), std::move(options));
    } catch (Error& error) {
      throw error.in(source_);
    }
  }

  // Each "left right", or ["left", "right"] where pieces may hold spaces.
  std::vector<MergePair> merges(const Vocabulary& vocabulary) const {
    std::vector<MergePair> pairs;
    for (const ParsedJson& merge : list_member(model_, "merges", source_)) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        pairs.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      const std::string& text = json_string(merge, "a merge", source_);
      pairs.push_back(cut_merge(text, vocabulary, pairs.size()));
    }
    return pairs;
  }

  // Pieces may hold spaces themselves: then the first cut between two known pieces is meant.
  MergePair cut_merge(std::string_view text, const Vocabulary& vocabulary, std::size_t rank) const {
    const std::size_t first = text.find(' ');
    const bool sure = first != std::string_view::npos && text.find(' ', first + 1) == std::string_view::npos;
    for (std::size_t at = first; at != std::string_view::npos; at = text.find(' ', at + 1)) {
      const std::string_view left = text.substr(0, at), right = text.substr(at + 1);
      if (sure || (vocabulary.find(left) && vocabulary.find(right)))
        return {std::string(left), std::string(right)};
    }
    throw Error::input(fmt::format("merge {} is not two pieces", rank)).in(source_);
  }

  std::optional<TokenId> unknown(const Vocabulary& vocabulary) const {
    const ParsedJson& id = member(model_, "unk_id");
    if (id.is_number_unsigned() && vocabulary.kind(checked_id(id)) != PieceKind::absent)
      return checked_id(id);
    const ParsedJson& piece = member(model_, "unk_token");
    return piece.is_string() ? vocabulary.find(piece.get_ref<const std::string&>()) : std::nullopt;
  }

  std::vector<AddedToken> added(Vocabulary& vocabulary) {
    std::vector<AddedToken> tokens;
    if (member(file_, "added_tokens").is_array()) {
      for (const ParsedJson& each : member(file_, "added_tokens")) {
        AddedToken token = read_added_token(each, checked_id(member(each, "id")), source_);
        if (token.content.empty()) continue;
        // What the model's vocabulary has keeps the model's id.
        if (const auto id = vocabulary.find(token.content)) token.id = *id;
        tokens.push_back(std::move(token));
      }
    }
    return merge_added(neighbours_, std::move(tokens), vocabulary);
  }

  // What the post-processor puts around a single text.
  SpecialFrame frame(const ParsedJson& processor, const Vocabulary& vocabulary) const {
    SpecialFrame plain = {std::nullopt};
    if (processor.is_null()) return plain;
    const std::string type = component_type(processor, "the post_processor", source_);
    if (type == "ByteLevel") return plain;
    if (type == "TemplateProcessing") return template_frame(processor);
    if (type == "RobertaProcessing" || type == "BertProcessing")
      return {pair_id(processor, "cls", vocabulary), std::nullopt, pair_id(processor, "sep", vocabulary)};
    if (type == "Sequence") {
      for (const ParsedJson& each : list_member(processor, "processors", source_)) {
        const SpecialFrame inner = frame(each, vocabulary);
        const auto text = std::find(plain.begin(), plain.end(), std::nullopt);
        if (text != plain.end()) plain.insert(plain.erase(text), inner.begin(), inner.end());
      }
      return plain;
    }
    throw Error::input(fmt::format("post_processor of a type we do not know: {}", type)).in(source_);
  }

  // ["[CLS]", 101]
  TokenId pair_id(const ParsedJson& processor, std::string_view key, const Vocabulary& vocabulary) const {
    const ParsedJson& pair = list_member(processor, key, source_);
    if (pair.size() != 2) throw Error::input(fmt::format("{} is not [piece, id]", key)).in(source_);
    const TokenId id = checked_id(pair[1]);
    vocabulary.at(id);
    return id;
  }

  SpecialFrame template_frame(const ParsedJson& processor) const {
    SpecialFrame frame;
    const ParsedJson& tokens = member(processor, "special_tokens");
    for (const ParsedJson& part : list_member(processor, "single", source_)) {
      if (member(part, "Sequence").is_object()) {
        frame.emplace_back();
        continue;
      }
      const std::string name = string_member(member(part, "SpecialToken"), "id", "", source_);
      for (const ParsedJson& id : list_member(member(tokens, name), "ids", source_))
        frame.emplace_back(checked_id(id));
    }
    return frame;
  }

  const ParsedJson& file_;
  const ParsedJson& model_;
  const TokenizerNeighbours& neighbours_;
  const fs::path& source_;
  std::vector<double> scores_;
};

std::vector<MergePair> merge_lines(std::string_view text, const fs::path& source) {
  std::vector<MergePair> pairs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos)
      throw Error::input(fmt::format("merge {} is not two pieces", pairs.size())).in(source);
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return pairs;
}

}  // namespace

std::unique_ptr<Tokenizer> read_hf_tokenizer(std::string_view text, const TokenizerNeighbours& neighbours,
                                             const fs::path& source) {
  const ParsedJson file = parse_json(text, source, {.max_bytes = kMostBytes, .duplicate_keys = true});
  return TokenizerReader(file, neighbours, source).read();
}

std::unique_ptr<Tokenizer> read_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                                 const TokenizerNeighbours& neighbours,
                                                 const fs::path& source) {
  const ParsedJson ids = parse_json(vocab, source, {.max_bytes = kMostBytes, .duplicate_keys = true});
  if (!ids.is_object()) throw Error::input("vocabulary is no object of pieces and ids").in(source);
  PipelineParts parts;
  for (const auto& [piece, id] : ids.items()) {
    const std::uint64_t value = json_u64(id, "a token's id", source);
    if (value >= kMostPieces)
      throw Error::input(fmt::format("token id {} is beyond any vocabulary", value)).in(source);
    parts.vocabulary.set(static_cast<TokenId>(value), piece);
  }
  BpeOptions options;
  options.unk = neighbours.unk.empty() ? std::nullopt : parts.vocabulary.find(neighbours.unk);
  try {
    parts.model = make_bpe(parts.vocabulary, merge_lines(merges, source), options);
  } catch (Error& error) {
    throw error.in(source);
  }
  const WordPattern& pattern = pattern_of_class(neighbours.tokenizer_class, neighbours.model_type);
  parts.added = merge_added(neighbours, {}, parts.vocabulary);
  parts.special = special_tokens(neighbours, parts.vocabulary);
  if (pattern.nfc) parts.normalizer = make_nfc_normalizer();
  parts.pre_tokenizer = make_byte_level(pattern, neighbours.add_prefix_space);
  parts.frame =
      bos_eos_frame(parts.special, neighbours.add_bos.value_or(false), neighbours.add_eos.value_or(false));
  parts.decoder = byte_level_decoder();
  auto tokenizer = make_pipeline(std::move(parts));
  tokenizer->describe(fmt::format("vocab.json and merges.txt: BPE, words cut as {} does", pattern.name));
  return tokenizer;
}

}  // namespace assay
