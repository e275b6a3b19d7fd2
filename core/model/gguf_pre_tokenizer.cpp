// Which of llama.cpp's pre-tokenizers cuts text as a tokenizer.json does (src/llama-vocab.cpp; the
// expressions are those of the models' own tokenizer.json).
#include <algorithm>
#include <array>
#include <vector>

#include "core/model/gguf_tokenizer.h"
#include "core/system/json.h"

namespace assay {
namespace {

struct Cutter {
  std::string type;     // "Split", "Digits", "ByteLevel"
  std::string pattern;  // of a Split
  bool flag = false;    // Digits: one by one; ByteLevel: by GPT-2's expression
};

std::string text_of(const ParsedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
bool flag_of(const ParsedJson& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

std::vector<Cutter> cutters_of(const ParsedJson& pre_tokenizer) {
  std::vector<Cutter> cutters;
  if (!pre_tokenizer.is_object()) return cutters;
  const auto parts = pre_tokenizer.find("pretokenizers");
  if (parts != pre_tokenizer.end() && parts->is_array()) {
    for (const ParsedJson& part : *parts) {
      for (Cutter& cutter : cutters_of(part)) cutters.push_back(std::move(cutter));
    }
    return cutters;
  }
  Cutter cutter{text_of(pre_tokenizer, "type"), {}, false};
  const auto pattern = pre_tokenizer.find("pattern");
  if (pattern != pre_tokenizer.end() && pattern->is_object()) cutter.pattern = text_of(*pattern, "Regex");
  if (cutter.type == "Digits") cutter.flag = flag_of(pre_tokenizer, "individual_digits", false);
  if (cutter.type == "ByteLevel") cutter.flag = flag_of(pre_tokenizer, "use_regex", true);
  cutters.push_back(std::move(cutter));
  return cutters;
}

#define ASSAY_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define ASSAY_REST R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define ASSAY_UPPER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define ASSAY_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

struct Known {
  std::string_view pattern, name;
};
// One Split, then bytes.
constexpr std::array<Known, 5> kSingle = {{
    {ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ASSAY_REST,
     "llama-bpe"},
    {ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ASSAY_REST, "qwen2"},
    {ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" ASSAY_REST,
     "qwen35"},
    {ASSAY_UPPER "*" ASSAY_LOWER "+|" ASSAY_UPPER "+" ASSAY_LOWER
                 R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ASSAY_REST,
     "tekken"},
    {ASSAY_UPPER "*" ASSAY_LOWER "+" ASSAY_CONTRACTIONS "?|" ASSAY_UPPER "+" ASSAY_LOWER
                 "*" ASSAY_CONTRACTIONS R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ASSAY_REST,
     "gpt-4o"},
}};
// DeepSeek's distilled Qwens cut as Qwen2 does, and do not bring text to NFC.
constexpr std::string_view kDistilledQwen = "deepseek-r1-qwen", kDeepseekBegin = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kDeepseekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" ASSAY_REST;
constexpr std::string_view kDeepseekLlmWords = R"(\s?[A-Za-zµ)";  // and every alphabet with cases
constexpr std::string_view kDeepseekCoderWords = R"(\s?\p{L}+)";

#undef ASSAY_CONTRACTIONS
#undef ASSAY_REST
#undef ASSAY_UPPER
#undef ASSAY_LOWER

// Some files write a quotation mark within the expression with a backslash before it, which means the same.
std::string without_escaped_quotes(std::string pattern) {
  for (auto at = pattern.find("\\\""); at != std::string::npos; at = pattern.find("\\\"", at + 1))
    pattern.erase(at, 1);
  return pattern;
}

bool is_deepseeks(const ParsedJson& tokenizer_json) {
  const auto added = tokenizer_json.find("added_tokens");
  return added != tokenizer_json.end() && added->is_array() &&
         std::any_of(added->begin(), added->end(), [](const ParsedJson& token) {
           return token.is_object() && text_of(token, "content") == kDeepseekBegin;
         });
}

bool is_split(const Cutter& cutter) {
  return cutter.type == "Split";
}

ParsedJson split_json(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", std::string(pattern)}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}
ParsedJson byte_level_json(bool by_gpt2) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", by_gpt2}};
}
ParsedJson sequence_json(ParsedJson parts) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

}  // namespace

ParsedJson pre_tokenizer_json(std::string_view name) {
  if (name == "gpt-2") return byte_level_json(true);
  if (name == "smollm") {
    return sequence_json(
        ParsedJson::array({{{"type", "Digits"}, {"individual_digits", true}}, byte_level_json(true)}));
  }
  if (name == "deepseek-v3") {
    return sequence_json(ParsedJson::array({split_json(R"(\p{N}{1,3})"), split_json("[一-龥\u3040-ゟ゠-ヿ]+"),
                                            split_json(kDeepseekV3Words), byte_level_json(false)}));
  }
  const std::string_view rule = name == kDistilledQwen ? "qwen2" : name;
  for (const Known& known : kSingle) {
    if (known.name == rule)
      return sequence_json(ParsedJson::array({split_json(known.pattern), byte_level_json(false)}));
  }
  return nullptr;
}

ParsedJson normalizer_json(std::string_view name) {
  if (name != "qwen2" && name != "qwen35") return nullptr;
  return {{"type", "NFC"}};
}

std::string pre_tokenizer_name(const ParsedJson& tokenizer_json) {
  const auto found = tokenizer_json.find("pre_tokenizer");
  if (found == tokenizer_json.end()) return {};
  const std::vector<Cutter> cutters = cutters_of(*found);
  if (cutters.empty() || cutters.back().type != "ByteLevel") return {};
  const bool by_gpt2 = cutters.back().flag;
  if (by_gpt2) {
    if (cutters.size() == 1) return "gpt-2";
    const bool digits_first = cutters.size() == 2 && cutters[0].type == "Digits" && cutters[0].flag;
    return digits_first ? "smollm" : "";
  }
  if (cutters.size() == 2 && is_split(cutters[0])) {
    for (const Known& known : kSingle) {
      if (known.pattern != cutters[0].pattern) continue;
      const bool distilled = known.name == "qwen2" && is_deepseeks(tokenizer_json);
      return std::string(distilled ? kDistilledQwen : known.name);
    }
    return {};
  }
  if (cutters.size() == 4 && cutters[0].pattern == R"(\p{N}{1,3})" &&
      without_escaped_quotes(cutters[2].pattern) == kDeepseekV3Words)
    return "deepseek-v3";
  if (cutters.size() < 4 || !is_split(cutters[1])) return {};
  if (cutters[1].pattern.starts_with(kDeepseekLlmWords)) return "deepseek-llm";
  if (cutters[1].pattern == kDeepseekCoderWords) return "deepseek-coder";
  return {};
}

}  // namespace assay
