// The components of tokenizers/src/pre_tokenizers.
#include "refimpl/tokenizers/pre_tokenizer.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>

#include "core/system/error.h"
#include "refimpl/tokenizers/byte_level.h"
#include "refimpl/tokenizers/json_access.h"
#include "refimpl/tokenizers/scripts.h"
#include "refimpl/tokenizers/split.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Cuts at matches of a pattern.
class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(TextPattern pattern, SplitBehavior behavior, bool invert = false)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Words& words) const override {
    cut_words(words, behavior_, [&](std::string_view word, std::vector<Section>& sections) {
      std::size_t done = 0;
      pattern_.for_each_match(word, [&](std::size_t begin, std::size_t end) {
        if (begin > done) sections.push_back({done, begin, invert_});
        sections.push_back({begin, end, !invert_});
        done = end;
      });
      if (done < word.size()) sections.push_back({done, word.size(), invert_});
    });
  }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Cuts at characters: each that `matches` is a match of its own.
class CharacterSplit : public PreTokenizer {
 public:
  using Test = std::function<bool(char32_t)>;
  CharacterSplit(Test matches, SplitBehavior behavior) : matches_(std::move(matches)), behavior_(behavior) {}

  void apply(Words& words) const override {
    cut_words(words, behavior_, [&](std::string_view word, std::vector<Section>& sections) {
      std::size_t at = 0, done = 0;
      unicode::for_each_character(word, [&](const unicode::Character& c, std::string_view bytes) {
        const std::size_t end = at + bytes.size();
        if (c.valid && matches_(c.code)) {
          if (at > done) sections.push_back({done, at, false});
          sections.push_back({at, end, true});
          done = end;
        }
        at = end;
      });
      if (done < word.size()) sections.push_back({done, word.size(), false});
    });
  }

 private:
  Test matches_;
  SplitBehavior behavior_;
};

// Writes every word anew: rewrite(span, word, text) appends it to `text`.
template <class Rewrite>
void rewrite_words(Words& words, Rewrite rewrite) {
  Words made;
  made.text.reserve(words.text.size() + words.text.size() / 4);
  made.spans.reserve(words.spans.size());
  for (const Words::Span& span : words.spans) {
    const auto begin = static_cast<std::uint32_t>(made.text.size());
    rewrite(span, words.of(span), made.text);
    made.spans.push_back({begin, static_cast<std::uint32_t>(made.text.size()), span.first});
  }
  words = std::move(made);
}

class ByteAlphabet : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    rewrite_words(words, [](const Words::Span&, std::string_view word, std::string& text) {
      byte_level::append_encoded(text, word);
    });
  }
};

class PrefixSpace : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    rewrite_words(words, [](const Words::Span&, std::string_view word, std::string& text) {
      if (!word.starts_with(' ')) text += ' ';
      text += word;
    });
  }
};

class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { never, first, always };
  Metaspace(std::string mark, Prepend prepend, bool cut)
      : mark_(std::move(mark)), prepend_(prepend), cut_(cut) {
    if (cut) split_.emplace(TextPattern::literal(mark_), SplitBehavior::merged_with_next);
  }

  void apply(Words& words) const override {
    rewrite_words(words, [&](const Words::Span& span, std::string_view word, std::string& text) {
      const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && span.first);
      if (wanted && !word.starts_with(' ') && !word.starts_with(mark_)) text += mark_;
      for (const char c : word) {
        if (c == ' ')
          text += mark_;
        else
          text += c;
      }
    });
    if (cut_) split_->apply(words);
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool cut_;
  std::optional<PatternSplit> split_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void apply(Words& words) const override {
    for (const auto& step : steps_) step->apply(words);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

// Pieces of so many characters each.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::uint64_t length) : length_(length) {}
  void apply(Words& words) const override {
    cut_words(words, SplitBehavior::isolated, [&](std::string_view word, std::vector<Section>& sections) {
      std::uint64_t characters = 0;
      std::size_t at = 0, begin = 0;
      unicode::for_each_character(word, [&](const unicode::Character&, std::string_view bytes) {
        at += bytes.size();
        if (++characters % length_ != 0) return;
        sections.push_back({begin, at, false});
        begin = at;
      });
      if (begin < at) sections.push_back({begin, at, false});
    });
  }

 private:
  std::uint64_t length_;
};

SplitBehavior read_behavior(const ParsedJson& config, std::string_view otherwise, const fs::path& source) {
  static const std::map<std::string, SplitBehavior> known = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  const auto found = known.find(string_member(config, "behavior", otherwise, source));
  if (found == known.end()) throw Error::input("Split has a behavior we do not know").in(source);
  return found->second;
}

std::unique_ptr<PreTokenizer> at_characters(CharacterSplit::Test test, SplitBehavior behavior) {
  return std::make_unique<CharacterSplit>(std::move(test), behavior);
}

bool is_any_punctuation(char32_t c) {
  return unicode::is_ascii_punctuation(c) || unicode::is_punctuation(c);
}

std::unique_ptr<PreTokenizer> read_byte_level(const ParsedJson& config, const fs::path& source) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  if (bool_member(config, "add_prefix_space", true, source)) steps.push_back(make_prefix_space());
  if (bool_member(config, "use_regex", true, source))
    steps.push_back(make_split(kGpt2Pattern, RegexDialect::oniguruma, SplitBehavior::isolated));
  steps.push_back(make_byte_alphabet());
  return make_sequence(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_metaspace(const ParsedJson& config, const fs::path& source) {
  const bool prefix =
      bool_member(config, "add_prefix_space", true, source);  // of files before prepend_scheme
  const std::string scheme = string_member(config, "prepend_scheme", prefix ? "always" : "never", source);
  using Prepend = Metaspace::Prepend;
  const Prepend prepend = scheme == "always"  ? Prepend::always
                          : scheme == "first" ? Prepend::first
                                              : Prepend::never;
  const std::string mark = string_member(config, "replacement", "▁", source);
  if (mark.empty() || mark.size() > 4)
    throw Error::input("Metaspace's replacement is not one character").in(source);
  return std::make_unique<Metaspace>(mark, prepend, bool_member(config, "split", true, source));
}

std::unique_ptr<PreTokenizer> read_sequence(const ParsedJson& config, const fs::path& source) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const ParsedJson& step : list_member(config, "pretokenizers", source)) {
    if (auto made = read_pre_tokenizer(step, source)) steps.push_back(std::move(made));
  }
  return make_sequence(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_delimiter(const ParsedJson& config, const fs::path& source) {
  const std::string delimiter = string_member(config, "delimiter", "", source);
  if (delimiter.empty()) throw Error::input("CharDelimiterSplit has no delimiter").in(source);
  const char32_t code = unicode::character_at(delimiter, 0).code;
  return at_characters([code](char32_t c) { return c == code; }, SplitBehavior::removed);
}

using PreTokenizerReader = std::function<std::unique_ptr<PreTokenizer>(const ParsedJson&, const fs::path&)>;

const std::map<std::string, PreTokenizerReader>& pre_tokenizer_readers() {
  static const std::map<std::string, PreTokenizerReader> known = {
      {"ByteLevel", read_byte_level},
      {"Metaspace", read_metaspace},
      {"Sequence", read_sequence},
      {"CharDelimiterSplit", read_delimiter},
      {"BertPreTokenizer", [](const auto&, const auto&) { return make_bert_pre_tokenizer(); }},
      {"Split",
       [](const ParsedJson& config, const fs::path& source) {
         return std::make_unique<PatternSplit>(pattern_member(config, source),
                                               read_behavior(config, "Isolated", source),
                                               bool_member(config, "invert", false, source));
       }},
      {"Whitespace",
       [](const auto&, const auto&) {
         return make_split(R"(\w+|[^\w\s]+)", RegexDialect::rust, SplitBehavior::removed, true);
       }},
      {"WhitespaceSplit",
       [](const auto&, const auto&) {
         return at_characters(unicode::is_whitespace, SplitBehavior::removed);
       }},
      {"Punctuation",
       [](const ParsedJson& config, const fs::path& source) {
         return at_characters(is_any_punctuation, read_behavior(config, "Isolated", source));
       }},
      {"Digits",
       [](const ParsedJson& config, const fs::path& source) {
         const bool each = bool_member(config, "individual_digits", false, source);
         return at_characters(unicode::is_numeric,
                              each ? SplitBehavior::isolated : SplitBehavior::contiguous);
       }},
      {"UnicodeScripts",
       [](const auto&, const auto&) {
         return make_split(script_run_pattern(), RegexDialect::oniguruma, SplitBehavior::removed, true);
       }},
      {"FixedLength", [](const ParsedJson& config, const fs::path& source) -> std::unique_ptr<PreTokenizer> {
         const std::uint64_t length = u64_member(config, "length", 5, source);
         if (length == 0) throw Error::input("FixedLength has length 0").in(source);
         return std::make_unique<FixedLength>(length);
       }}};
  return known;
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const ParsedJson& config, const fs::path& source) {
  if (config.is_null()) return nullptr;
  const std::string type = component_type(config, "the pre_tokenizer", source);
  const auto reader = pre_tokenizer_readers().find(type);
  if (reader == pre_tokenizer_readers().end()) {
    throw Error::input(fmt::format("pre_tokenizer of a type we do not know: {}", type)).in(source);
  }
  return reader->second(config, source);
}

std::unique_ptr<PreTokenizer> make_split(std::string_view pattern, RegexDialect dialect,
                                         SplitBehavior behavior, bool invert) {
  return std::make_unique<PatternSplit>(TextPattern::regex(pattern, dialect), behavior, invert);
}

std::unique_ptr<PreTokenizer> make_byte_alphabet() {
  return std::make_unique<ByteAlphabet>();
}

std::unique_ptr<PreTokenizer> make_prefix_space() {
  return std::make_unique<PrefixSpace>();
}

std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  steps.push_back(at_characters(unicode::is_whitespace, SplitBehavior::removed));
  steps.push_back(at_characters(is_any_punctuation, SplitBehavior::isolated));
  return make_sequence(std::move(steps));
}

std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace assay
