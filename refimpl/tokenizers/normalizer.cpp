// The components of tokenizers/src/normalizers, as their documentation and behaviour define them.
#include "refimpl/tokenizers/normalizer.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <vector>

#include "core/system/error.h"
#include "refimpl/tokenizers/byte_level.h"
#include "refimpl/tokenizers/charsmap.h"
#include "refimpl/tokenizers/json_access.h"
#include "refimpl/tokenizers/text_pattern.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using unicode::Character;

// A normalizer that is one function.
class Function : public TextNormalizer {
 public:
  explicit Function(std::function<std::string(std::string_view)> function) : function_(std::move(function)) {}
  std::string apply(std::string_view text) const override { return function_(text); }

 private:
  std::function<std::string(std::string_view)> function_;
};

template <class F>
std::unique_ptr<TextNormalizer> from(F function) {
  return std::make_unique<Function>(std::move(function));
}

// Calls change(code, out) for each character; stray bytes are copied.
template <class Change>
std::string map_characters(std::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  unicode::for_each_character(text, [&](const Character& c, std::string_view bytes) {
    if (c.valid)
      change(c.code, out);
    else
      out += bytes;
  });
  return out;
}

std::string lowercase(std::string_view text) {
  return map_characters(text, [](char32_t c, std::string& out) { unicode::append_lower(out, c); });
}

std::string without(std::string_view text, bool (*dropped)(char32_t)) {
  return map_characters(text, [&](char32_t c, std::string& out) {
    if (!dropped(c)) unicode::append(out, c);
  });
}

// Control characters go, white space becomes a space, ideographs get spaces around them.
std::string bert_clean(std::string_view text) {
  return map_characters(text, [](char32_t c, std::string& out) {
    const bool space = unicode::is_whitespace(c);
    const bool layout = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (unicode::is_control(c) && !layout)) return;
    if (space)
      out += ' ';
    else
      unicode::append(out, c);
  });
}

std::string with_spaces_around_cjk(std::string_view text) {
  return map_characters(text, [](char32_t c, std::string& out) {
    const bool apart = unicode::is_cjk(c);
    if (apart) out += ' ';
    unicode::append(out, c);
    if (apart) out += ' ';
  });
}

// The rules that NMT training at Google used.
std::string nmt(std::string_view text) {
  return map_characters(text, [](char32_t c, std::string& out) {
    const bool dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                         c == 0x8F || c == 0x9F;
    if (dropped) return;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    unicode::append(out, space ? U' ' : c);
  });
}

std::string stripped(std::string_view text, bool left, bool right) {
  std::size_t begin = text.size(), end = 0, at = 0;  // of what is no white space
  unicode::for_each_character(text, [&](const Character& c, std::string_view bytes) {
    if (!unicode::is_whitespace(c.code)) {
      begin = std::min(begin, at);
      end = at + bytes.size();
    }
    at += bytes.size();
  });
  if (!left) begin = 0;
  if (!right) end = text.size();
  return std::string(begin < end ? text.substr(begin, end - begin) : std::string_view());
}

// A file could make gigabytes of a line, step by step.
void check_growth(std::string_view text, std::string_view made) {
  if (made.size() / 16 > text.size() + 4096)
    throw Error::input(fmt::format("the normalizer makes {} bytes of {}", made.size(), text.size()));
}

std::string replaced(std::string_view text, const TextPattern& pattern, std::string_view with) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  std::size_t done = 0;
  pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) {
    out += text.substr(done, begin - done);
    out += with;
    check_growth(text, out);
    done = end;
  });
  return out += text.substr(done);
}

std::unique_ptr<TextNormalizer> sequence(const ParsedJson& config, const fs::path& source) {
  std::vector<std::shared_ptr<TextNormalizer>> steps;
  for (const ParsedJson& step : list_member(config, "normalizers", source)) {
    if (auto normalizer = read_normalizer(step, source)) steps.push_back(std::move(normalizer));
  }
  return from([steps](std::string_view text) {
    std::string current(text);
    for (const auto& step : steps) {
      current = step->apply(current);
      check_growth(text, current);
    }
    return current;
  });
}

std::unique_ptr<TextNormalizer> bert(const ParsedJson& config, const fs::path& source) {
  BertNormalizerOptions options;
  options.clean_text = bool_member(config, "clean_text", true, source);
  options.cjk = bool_member(config, "handle_chinese_chars", true, source);
  options.lowercase = bool_member(config, "lowercase", true, source);
  options.strip_accents = bool_member(config, "strip_accents", options.lowercase, source);
  return make_bert_normalizer(options);
}

std::unique_ptr<TextNormalizer> precompiled(const ParsedJson& config, const fs::path& source) {
  const auto blob = decode_base64(string_member(config, "precompiled_charsmap", "", source));
  if (!blob) throw Error::input("precompiled_charsmap is not base64").in(source);
  const auto map = std::make_shared<const Charsmap>(*blob);
  return from([map](std::string_view text) { return map->normalize_graphemes(text); });
}

std::unique_ptr<TextNormalizer> replace(const ParsedJson& config, const fs::path& source) {
  const auto pattern = std::make_shared<const TextPattern>(pattern_member(config, source));
  const std::string content = string_member(config, "content", "", source);
  return from([pattern, content](std::string_view text) { return replaced(text, *pattern, content); });
}

std::unique_ptr<TextNormalizer> form(unicode::NormalForm form) {
  return from([form](std::string_view text) { return unicode::normalized(text, form); });
}

using NormalizerReader = std::function<std::unique_ptr<TextNormalizer>(const ParsedJson&, const fs::path&)>;

const std::map<std::string, NormalizerReader>& normalizer_readers() {
  using unicode::NormalForm;
  static const std::map<std::string, NormalizerReader> known = {
      {"NFC", [](const auto&, const auto&) { return form(NormalForm::nfc); }},
      {"NFD", [](const auto&, const auto&) { return form(NormalForm::nfd); }},
      {"NFKC", [](const auto&, const auto&) { return form(NormalForm::nfkc); }},
      {"NFKD", [](const auto&, const auto&) { return form(NormalForm::nfkd); }},
      {"Lowercase", [](const auto&, const auto&) { return from(lowercase); }},
      {"Nmt", [](const auto&, const auto&) { return from(nmt); }},
      {"StripAccents",
       [](const auto&, const auto&) {
         return from([](std::string_view text) { return without(text, unicode::is_mark); });
       }},
      {"ByteLevel",
       [](const auto&, const auto&) {
         return from([](std::string_view text) {
           std::string out;
           byte_level::append_encoded(out, text);
           return out;
         });
       }},
      {"Strip",
       [](const ParsedJson& config, const fs::path& source) {
         const bool left = bool_member(config, "strip_left", true, source);
         const bool right = bool_member(config, "strip_right", true, source);
         return from([=](std::string_view text) { return stripped(text, left, right); });
       }},
      {"Prepend",
       [](const ParsedJson& config, const fs::path& source) {
         const std::string prefix = string_member(config, "prepend", "", source);
         return from([=](std::string_view text) { return text.empty() ? "" : prefix + std::string(text); });
       }},
      {"Replace", replace},
      {"BertNormalizer", bert},
      {"Precompiled", precompiled},
      {"Sequence", sequence}};
  return known;
}

}  // namespace

std::unique_ptr<TextNormalizer> read_normalizer(const ParsedJson& config, const fs::path& source) {
  if (config.is_null()) return nullptr;
  const std::string type = component_type(config, "the normalizer", source);
  const auto reader = normalizer_readers().find(type);
  if (reader == normalizer_readers().end()) {
    throw Error::input(fmt::format("normalizer of a type we do not know: {}", type)).in(source);
  }
  return reader->second(config, source);
}

std::unique_ptr<TextNormalizer> make_bert_normalizer(BertNormalizerOptions options) {
  return from([options](std::string_view text) {
    std::string current(text);
    if (options.clean_text) current = bert_clean(current);
    if (options.cjk) current = with_spaces_around_cjk(current);
    if (options.strip_accents) {
      current = without(unicode::normalized(current, unicode::NormalForm::nfd), unicode::is_nonspacing_mark);
    }
    return options.lowercase ? lowercase(current) : current;
  });
}

std::unique_ptr<TextNormalizer> make_nfc_normalizer() {
  return form(unicode::NormalForm::nfc);
}

std::unique_ptr<TextNormalizer> make_replacing_normalizer(std::string_view from_text, std::string_view to) {
  const auto pattern = std::make_shared<const TextPattern>(TextPattern::literal(from_text));
  return from(
      [pattern, with = std::string(to)](std::string_view text) { return replaced(text, *pattern, with); });
}

}  // namespace assay
