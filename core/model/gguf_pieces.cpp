#include "core/model/gguf_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr float kPaddingScore = -10000.0F;
// What InternLM 2 has for a token of one zero byte, which a C string would end at.
constexpr std::string_view kZeroByte("\0", 1), kDragon = "\xF0\x9F\x90\x89";

std::int32_t number_of(TokenKind kind) {
  return static_cast<std::int32_t>(kind);
}

class Pieces {
 public:
  Pieces(const fs::path& folder, std::uint64_t size, PiecesOf of) : folder_(folder), size_(size), of_(of) {
    for (std::uint64_t i = 0; i < size_; ++i) vocabulary_.texts.push_back(padding_token(i));
    vocabulary_.scores.assign(size_, kPaddingScore);
    vocabulary_.kinds.assign(size_, number_of(TokenKind::unused));
  }

  GgufVocabulary read(const ParsedJson& settings) {
    read_model();
    if (there("added_tokens.json")) {
      const ParsedJson added = read_json(folder_ / "added_tokens.json", kTokenizerFileLimits);
      for (const auto& [text, id] : added.items()) {
        if (id.is_number_unsigned()) set(id.get<std::uint64_t>(), text, number_of(TokenKind::user_defined));
      }
    }
    const auto take = [&](std::uint64_t id, std::string text, bool special) {
      if (of_ == PiecesOf::any) {
        const std::int32_t kind = classify_added_token(text, special);
        set(id, std::move(text), kind);
      } else {
        set(id, std::move(text), number_of(special ? TokenKind::control : TokenKind::user_defined));
      }
    };
    for_each_decoder_entry(settings, take);
    if (of_ != PiecesOf::any && there("tokenizer.json"))
      for_each_added_token(read_json(folder_ / "tokenizer.json", kTokenizerFileLimits), take);
    return std::move(vocabulary_);
  }

 private:
  bool there(const char* name) const {
    std::error_code error;
    return fs::exists(folder_ / name, error);
  }

  void read_model() {
    const fs::path path = folder_ / "tokenizer.model";
    const auto pieces =
        parse_sentencepiece_vocab(read_small_file(path, kTokenizerFileLimits.max_bytes), path);
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces.size(), size_); ++i) {
      const SentencePiece& piece = pieces[i];
      const bool user = piece.type == SentencePiece::Type::user_defined;  // as the converter has it
      vocabulary_.texts[i] = piece.text;
      vocabulary_.scores[i] = piece.score;
      vocabulary_.kinds[i] = static_cast<std::int32_t>(user ? SentencePiece::Type::normal : piece.type);
      if (of_ != PiecesOf::internlm2) continue;
      if (piece.text == kZeroByte) vocabulary_.texts[i] = kDragon;
      if (piece.text.starts_with("[UNUSED")) vocabulary_.kinds[i] = number_of(TokenKind::unused);
    }
  }

  void set(std::uint64_t id, std::string text, std::int32_t kind) {
    if (id >= size_) return;
    vocabulary_.texts[id] = std::move(text);
    vocabulary_.scores[id] = kNoScore;
    vocabulary_.kinds[id] = kind;
  }

  const fs::path& folder_;
  std::uint64_t size_;
  PiecesOf of_;
  GgufVocabulary vocabulary_;
};

std::int32_t kind_of_plamo(const std::string& text, std::string_view named) {
  if (named == "UNKNOWN") return number_of(TokenKind::unknown);
  if (named == "CONTROL") return number_of(TokenKind::control);
  if (named == "BYTE") return number_of(TokenKind::byte);
  const bool looks_so = text.starts_with("<|plamo:") && text.ends_with("|>");
  return number_of(looks_so ? TokenKind::control : TokenKind::normal);
}

}  // namespace

std::string padding_token(std::uint64_t id) {
  return fmt::format("[PAD{}]", id);
}

std::int32_t classify_added_token(std::string& text, bool special) {
  if (special || looks_special(text)) return number_of(TokenKind::control);
  constexpr std::string_view kSpace = "\xe2\x96\x81";
  for (auto at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at + 1))
    text.replace(at, kSpace.size(), " ");
  return number_of(TokenKind::user_defined);
}

void for_each_decoder_entry(const ParsedJson& settings, const TakeAddedToken& take) {
  const auto decoder = settings.find("added_tokens_decoder");
  if (decoder == settings.end() || !decoder->is_object()) return;
  for (const auto& [key, token] : decoder->items()) {
    const auto id = parse_u64(key);
    if (!id || !token.is_object() || !token.contains("content") || !token.at("content").is_string()) continue;
    const auto special = token.find("special");
    take(*id, token.at("content").get<std::string>(), special != token.end() && *special == true);
  }
}

void for_each_added_token(const ParsedJson& tokenizer_json, const TakeAddedToken& take) {
  const auto added = tokenizer_json.find("added_tokens");
  if (added == tokenizer_json.end() || !added->is_array()) return;
  for (const ParsedJson& token : *added) {
    if (!token.is_object() || !token.contains("id") || !token.at("id").is_number_unsigned()) continue;
    if (!token.contains("content") || !token.at("content").is_string()) continue;
    const auto special = token.find("special");
    take(token.at("id").get<std::uint64_t>(), token.at("content").get<std::string>(),
         special != token.end() && *special == true);
  }
}

GgufVocabulary read_sentencepiece(const fs::path& folder, const ParsedJson& settings, std::uint64_t size,
                                  PiecesOf of) {
  return Pieces(folder, size, of).read(settings);
}

GgufVocabulary read_plamo_pieces(const fs::path& folder, std::uint64_t size) {
  const fs::path path = folder / "tokenizer.jsonl";
  const std::string bytes = read_small_file(path, kTokenizerFileLimits.max_bytes);
  GgufVocabulary vocabulary;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = trim(std::string_view(bytes).substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    const ParsedJson row = parse_json(line, path, kTokenizerFileLimits);
    if (!row.is_array() || row.size() < 2 || !row[0].is_string() || !row[1].is_number())
      throw Error::input("a line is no [token, score, kind]").in(path);
    const auto text = row[0].get<std::string>();
    const bool named = row.size() > 2 && row[2].is_string();
    vocabulary.texts.push_back(text);
    vocabulary.scores.push_back(row[1].get<float>());
    vocabulary.kinds.push_back(kind_of_plamo(text, named ? row[2].get<std::string>() : "NORMAL"));
  }
  for (std::uint64_t i = 1; vocabulary.texts.size() < size; ++i) {  // these count from 1
    vocabulary.texts.push_back(padding_token(i));
    vocabulary.scores.push_back(kNoScore);
    vocabulary.kinds.push_back(number_of(TokenKind::unused));
  }
  return vocabulary;
}

}  // namespace assay
