#include "refimpl/tokenizers/gguf_vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/bpe.h"
#include "refimpl/tokenizers/patterns.h"
#include "refimpl/tokenizers/pipeline.h"
#include "refimpl/tokenizers/sentencepiece.h"
#include "refimpl/tokenizers/wordpiece.h"

namespace assay {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

class GgufReader {
 public:
  GgufReader(const gguf::Header& header, const fs::path& source) : header_(header), source_(source) {}

  std::unique_ptr<Tokenizer> read() {
    const auto model = header_.text("tokenizer.ggml.model");
    if (!model) {
      throw Error::input("this GGUF holds no vocabulary (tokenizer.ggml.model)")
          .in(source_)
          .remedy("name the file or folder that holds the tokenizer");
    }
    pieces();
    special();
    auto tokenizer = make(*model);
    tokenizer->set_chat_templates(chat_templates());
    return tokenizer;
  }

 private:
  // tokenizer.chat_template is the default one; tokenizer.chat_templates names the others.
  std::vector<NamedTemplate> chat_templates() const {
    std::vector<NamedTemplate> all;
    const auto add = [&](const std::string& name, const std::string& key) {
      if (const auto text = header_.text(key); text && !text->empty()) all.push_back({name, *text, key});
    };
    add("default", "tokenizer.chat_template");
    const gguf::KeyValue* others = header_.find("tokenizer.chat_templates");
    const auto* names = others != nullptr ? std::get_if<gguf::Array>(&others->value) : nullptr;
    if (names != nullptr && names->type == gguf::ValueType::string) {
      for (const std::string& name : names->strings()) add(name, "tokenizer.chat_template." + name);
    }
    return all;
  }

  std::unique_ptr<Tokenizer> make(const std::string& model) {
    if (model == "gpt2") return is_marked_pattern(pre()) ? marked_bpe(flag("add_bos_token", false)) : bpe();
    if (model == "gemma4") return marked_bpe(true);
    if (model == "llama") return sentencepiece(SentencePieceModel::Type::bpe);
    if (model == "t5") return sentencepiece(SentencePieceModel::Type::unigram);
    if (model == "bert") return wordpiece();
    throw Error::input(
        fmt::format("GGUF vocabulary of a kind we do not know: {}", escape_for_terminal(model)))
        .in(source_)
        .remedy("known are gpt2, llama, t5, bert and gemma4; use the model's tokenizer.json");
  }

  const gguf::Array* array(std::string_view name) const {
    const gguf::KeyValue* found = header_.find(std::string(kPrefix) + std::string(name));
    return found == nullptr ? nullptr : std::get_if<gguf::Array>(&found->value);
  }
  std::optional<TokenId> id(std::string_view name) const {
    const auto number = header_.number(fmt::format("{}{}_token_id", kPrefix, name));
    if (!number || *number >= parts_.vocabulary.size()) return std::nullopt;
    return static_cast<TokenId>(*number);
  }
  bool flag(std::string_view name, bool otherwise) const {
    const gguf::KeyValue* found = header_.find(std::string(kPrefix) + std::string(name));
    const bool* value = found == nullptr ? nullptr : std::get_if<bool>(&found->value);
    return value == nullptr ? otherwise : *value;
  }

  void pieces() {
    const gguf::Array* tokens = array("tokens");
    if (tokens == nullptr || tokens->type != gguf::ValueType::string)
      throw Error::input("tokenizer.ggml.tokens is missing or no list of strings").in(source_);
    if (tokens->count > kMostPieces)
      throw Error::input(fmt::format("{} pieces; at most {} are taken", tokens->count, kMostPieces))
          .in(source_);
    std::vector<std::int64_t> kinds;
    if (const gguf::Array* types = array("token_type")) kinds = types->integers();
    if (const gguf::Array* scores = array("scores")) scores_ = scores->numbers();
    TokenId next = 0;
    for (const std::string& text : tokens->strings()) {
      const std::int64_t kind = next < kinds.size() ? kinds[next] : 1;
      const bool known = kind >= 1 && kind <= 6;
      parts_.vocabulary.set(next, text.empty() ? fmt::format("[EMPTY_{}]", next) : text,
                            known ? static_cast<PieceKind>(kind) : PieceKind::normal);
      ++next;
    }
    scores_.resize(parts_.vocabulary.size());
    for (double& score : scores_) {
      if (!(score == score)) throw Error::input("tokenizer.ggml.scores holds a NaN").in(source_);
    }
  }

  void special() {
    SpecialTokens& special = parts_.special;
    special.bos = id("bos");
    special.eos = id("eos");
    special.unk = id("unknown");
    special.pad = id("padding");
    for (const std::string_view name : {"eot", "eom"}) {
      if (const auto end = id(name)) special.end_of_generation.push_back(*end);
    }
    find_end_of_generation(special, parts_.vocabulary);
    for (TokenId id = 0; id < parts_.vocabulary.size(); ++id) {
      const PieceKind kind = parts_.vocabulary.kind(id);
      if (kind != PieceKind::control && kind != PieceKind::user_defined && kind != PieceKind::unknown)
        continue;
      AddedToken token{id, parts_.vocabulary.at(id)};
      token.special = kind != PieceKind::user_defined;
      parts_.added.push_back(std::move(token));
    }
  }

  std::vector<MergePair> merges() const {
    const gguf::Array* list = array("merges");
    if (list == nullptr || list->type != gguf::ValueType::string)
      throw Error::input("tokenizer.ggml.merges is missing or no list of strings").in(source_);
    std::vector<MergePair> pairs;
    for (const std::string& merge : list->strings()) {
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string::npos) continue;  // the loader passes over these, too
      MergePair pair(merge.substr(0, space), merge.substr(space + 1));
      if (parts_.vocabulary.find(pair.first + pair.second)) pairs.push_back(std::move(pair));
    }
    return pairs;
  }

  std::string pre() const { return header_.text("tokenizer.ggml.pre").value_or("default"); }

  const WordPattern& pattern() const {
    const std::string name = pre();
    const WordPattern* found = find_pattern(name);
    if (found != nullptr) return *found;
    throw Error::input(fmt::format("pre-tokenizer of a name we do not know: {}", escape_for_terminal(name)))
        .in(source_)
        .remedy("use the model's tokenizer.json");
  }

  std::unique_ptr<Tokenizer> bpe() {
    const WordPattern& words = pattern();
    BpeOptions options;
    options.ignore_merges = words.ignore_merges;
    parts_.model = make_bpe(parts_.vocabulary, merges(), options);
    parts_.pre_tokenizer = make_byte_level(words, flag("add_space_prefix", false));
    const bool add_eos = flag("add_eos_token", false) || flag("add_sep_token", false);
    parts_.frame = bos_eos_frame(parts_.special, flag("add_bos_token", words.add_bos), add_eos);
    parts_.decoder = byte_level_decoder();
    return finish(make_pipeline(std::move(parts_)), fmt::format("BPE, words cut as {} does", words.name));
  }

  // Gemma 4: BPE by merges over text whose spaces are marks, as SentencePiece's are.
  std::unique_ptr<Tokenizer> marked_bpe(bool add_bos) {
    BpeOptions options;
    options.byte_fallback = true;
    options.unk = parts_.special.unk;
    parts_.model = make_bpe(parts_.vocabulary, merges(), options);
    parts_.normalizer = make_replacing_normalizer(" ", "▁");
    parts_.pre_tokenizer = make_split("[^\\n]+|[\\n]+", RegexDialect::oniguruma, SplitBehavior::isolated);
    parts_.frame = bos_eos_frame(parts_.special, add_bos, flag("add_eos_token", false));
    parts_.decoder = marked_decoder();
    return finish(make_pipeline(std::move(parts_)), "BPE with byte fallback");
  }

  std::unique_ptr<Tokenizer> wordpiece() {
    if (!parts_.special.unk)
      throw Error::input("a bert vocabulary needs tokenizer.ggml.unknown_token_id").in(source_);
    if (!parts_.special.bos) parts_.special.bos = id("cls");
    const auto separator = id("seperator") ? id("seperator") : id("separator");  // GGUF's own spelling first
    if (separator) parts_.special.eos = separator;
    WordPieceOptions options;
    options.unk = *parts_.special.unk;
    options.first_prefix = "▁";
    options.continuing_prefix = "";
    options.most_characters = 1000;
    parts_.model = make_wordpiece(options);
    BertNormalizerOptions normalizer;
    normalizer.lowercase = flag("normalizer.lowercase", true);
    normalizer.strip_accents = flag("normalizer.strip_accents", normalizer.lowercase);
    parts_.normalizer = make_bert_normalizer(normalizer);
    parts_.pre_tokenizer = make_bert_pre_tokenizer();
    parts_.frame = bos_eos_frame(parts_.special, flag("add_bos_token", true), flag("add_eos_token", true));
    parts_.decoder = marked_decoder();
    return finish(make_pipeline(std::move(parts_)), "WordPiece");
  }

  std::unique_ptr<Tokenizer> sentencepiece(SentencePieceModel::Type type) {
    const bool unigram = type == SentencePieceModel::Type::unigram;
    SentencePieceModel model;
    model.type = type;
    model.vocabulary = std::move(parts_.vocabulary);
    model.scores = std::move(scores_);
    model.special = parts_.special;
    if (!model.special.unk && model.vocabulary.kind(0) == PieceKind::unknown) model.special.unk = 0;
    model.byte_fallback = !unigram || model.vocabulary.find("<0x00>").has_value();
    model.add_dummy_prefix = flag("add_space_prefix", true);
    model.remove_extra_spaces = flag("remove_extra_whitespaces", false);
    if (const gguf::Array* map = array("precompiled_charsmap")) model.charsmap = map->encoded;
    SentencePieceOptions options;
    options.added = std::move(parts_.added);
    options.add_bos = flag("add_bos_token", !unigram);
    options.add_eos = flag("add_eos_token", unigram);
    options.as_llama_cpp = true;
    return finish(make_sentencepiece(std::move(model), std::move(options)),
                  unigram ? "SentencePiece Unigram" : "SentencePiece BPE");
  }

  std::unique_ptr<Tokenizer> finish(std::unique_ptr<Tokenizer> tokenizer, std::string_view kind) const {
    tokenizer->describe(fmt::format("GGUF vocabulary: {}", kind));
    return tokenizer;
  }

  const gguf::Header& header_;
  const fs::path& source_;
  PipelineParts parts_;
  std::vector<double> scores_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const gguf::Header& header, const fs::path& source) {
  try {
    return GgufReader(header, source).read();
  } catch (Error& error) {
    throw error.in(source);
  }
}

}  // namespace assay
