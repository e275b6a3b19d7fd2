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

// Some files write a quotation mark within the expression with a backslash before it, and line ends as they are,
// which mean the same.
std::string spelled_alike(std::string pattern) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (auto at = pattern.find(from); at != std::string::npos; at = pattern.find(from, at + to.size()))
      pattern.replace(at, from.size(), to);
  };
  replace("\\\"", "\"");
  replace("\r", "\\r");
  replace("\n", "\\n");
  return pattern;
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
  if (pattern != pre_tokenizer.end() && pattern->is_object())
    cutter.pattern = spelled_alike(text_of(*pattern, "Regex"));
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
constexpr std::string_view kLlama3Words =
    ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ASSAY_REST;
constexpr std::string_view kQwen2Words =
    ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" ASSAY_REST;
constexpr std::string_view kGpt4oWords =
    ASSAY_UPPER "*" ASSAY_LOWER "+" ASSAY_CONTRACTIONS "?|" ASSAY_UPPER "+" ASSAY_LOWER "*" ASSAY_CONTRACTIONS
                R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ASSAY_REST;
// One Split, then bytes.
constexpr std::array<Known, 9> kSingle = {{
    {kLlama3Words, "llama-bpe"},
    {kQwen2Words, "qwen2"},
    {ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" ASSAY_REST,
     "qwen35"},
    {ASSAY_UPPER "*" ASSAY_LOWER "+|" ASSAY_UPPER "+" ASSAY_LOWER
                 R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" ASSAY_REST,
     "tekken"},
    {kGpt4oWords, "gpt-4o"},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     "bailingmoe"},
    {ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" ASSAY_REST,
     "seed-coder"},
    {ASSAY_CONTRACTIONS
     R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)",
     "exaone-moe"},
    {ASSAY_CONTRACTIONS
     R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})",
     "jais-2"},
}};
// Two, then bytes.
struct KnownPair {
  std::string_view first, second, name;
};
constexpr std::array<KnownPair, 3> kPairs = {{
    {R"([^\n]+|[\n]+)", kQwen2Words, "laguna"},
    {R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4oWords, "tiny_aya"},
    {R"(\p{N}{1,3})",
     ASSAY_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)" ASSAY_REST,
     "minicpm5"},
}};
// How an expression begins that no other tokenizer's does.
constexpr std::array<Known, 4> kBeginnings = {{
    {R"([\p{Han}]+|)", "kimi-k2"},
    {R"( ?[^(\s|)", "bloom"},
    {R"([가-힣ㄱ-ㆎ]+|[！…)", "youtu"},
    {R"([一-鿿㐀-䶿豈-﫿)", "afmoe"},
}};
// Llama 3's rule with merges for words that are tokens, too; and GLM-4's, which puts nothing before a text.
constexpr std::string_view kMergedLlama3 = "dbrx", kGlm4 = "glm4", kGlmMask = "[gMASK]";
// What the converter calls the rule of a family's published models, where the oldest name of that rule is another.
struct KnownFamily {
  std::string_view family, oldest, name;
};
constexpr std::array<KnownFamily, 24> kNamesOfFamilies = {{
    {"lfm2", "llama-bpe", "lfm2"},
    {"lfm2_moe", "llama-bpe", "lfm2"},
    {"falcon_h1", "llama-bpe", "falcon-h1"},
    {"smollm3", "dbrx", "smaug-bpe"},
    {"solar_open", "qwen2", "solar-open"},
    {"hunyuan_v1_moe", "qwen2", "hunyuan"},
    {"stablelm", "qwen2", "stablelm2"},
    {"minimax_m2", "gpt-4o", "minimax-m2"},
    {"llama4", "gpt-4o", "llama4"},
    {"cohere2_moe", "tiny_aya", "cohere2moe"},
    {"hunyuan_v1_dense", "deepseek-v3", "hunyuan-dense"},
    {"hy_v4", "deepseek-v3", "hy_v4"},
    {"bailing_moe_v2", "bailingmoe", "bailingmoe2"},
    {"bailing_moe_v3", "bailingmoe", "bailingmoe2"},
    {"starcoder2", "smollm", "starcoder"},
    {"cohere", "smollm", "command-r"},
    {"cohere2", "smollm", "command-r"},
    {"exaone", "smollm", "exaone"},
    {"mellum", "smollm", "mellum2"},
    {"granite", "smollm", "refact"},
    {"granitemoe", "smollm", "refact"},
    {"exaone4", "gpt-2", "exaone4"},
    {"mpt", "gpt-2", "mpt"},
    {"olmo", "gpt-2", "olmo"},
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

bool has_added(const ParsedJson& tokenizer_json, std::string_view text) {
  const auto added = tokenizer_json.find("added_tokens");
  return added != tokenizer_json.end() && added->is_array() &&
         std::any_of(added->begin(), added->end(), [&](const ParsedJson& token) {
           return token.is_object() && text_of(token, "content") == text;
         });
}

bool takes_words_whole(const ParsedJson& tokenizer_json) {
  const auto model = tokenizer_json.find("model");
  return model != tokenizer_json.end() && model->is_object() && flag_of(*model, "ignore_merges", false);
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

// The oldest name with the same expression.
std::string_view rule_of(std::string_view name) {
  if (name == kDistilledQwen) return "qwen2";
  for (const KnownFamily& known : kNamesOfFamilies) {
    if (known.name == name) name = known.oldest;
  }
  return name == kGlm4 || name == kMergedLlama3 || name == "smaug-bpe" ? "llama-bpe" : name;
}

// Falcon's: runs of punctuation, GPT-2's words, runs of digits, and those three by three.
bool is_falcons(const std::vector<Cutter>& cutters) {
  return cutters.size() == 4 && cutters[0].type == "Punctuation" && cutters[1].type == "ByteLevel" &&
         cutters[1].flag && cutters[2].type == "Digits" && !cutters[2].flag &&
         cutters[3].pattern == "[0-9][0-9][0-9]";
}

std::string_view name_of_one(std::string_view pattern, const ParsedJson& tokenizer_json) {
  for (const Known& known : kSingle) {
    if (known.pattern != pattern) continue;
    if (known.name == "qwen2" && has_added(tokenizer_json, kDeepseekBegin)) return kDistilledQwen;
    if (known.name != "llama-bpe") return known.name;
    if (has_added(tokenizer_json, kGlmMask)) return kGlm4;
    return takes_words_whole(tokenizer_json) ? known.name : kMergedLlama3;
  }
  return {};
}

std::string_view oldest_name(const std::vector<Cutter>& cutters, const ParsedJson& tokenizer_json) {
  if (is_falcons(cutters)) return "falcon";
  if (cutters.empty() || cutters.back().type != "ByteLevel") return {};
  const bool by_gpt2 = cutters.back().flag;
  if (by_gpt2) {
    if (cutters.size() == 1) return "gpt-2";
    const bool digits_first = cutters.size() == 2 && cutters[0].type == "Digits" && cutters[0].flag;
    return digits_first ? "smollm" : "";
  }
  for (const Cutter& cutter : cutters) {
    for (const Known& known : kBeginnings) {
      if (is_split(cutter) && cutter.pattern.starts_with(known.pattern)) return known.name;
    }
  }
  if (cutters.size() == 2 && is_split(cutters[0])) return name_of_one(cutters[0].pattern, tokenizer_json);
  for (const KnownPair& known : kPairs) {
    if (cutters.size() == 3 && cutters[0].pattern == known.first && cutters[1].pattern == known.second)
      return known.name;
  }
  if (cutters.size() == 4 && cutters[0].pattern == R"(\p{N}{1,3})" && cutters[2].pattern == kDeepseekV3Words)
    return "deepseek-v3";
  if (cutters.size() < 4 || !is_split(cutters[1])) return {};
  if (cutters[1].pattern.starts_with(kDeepseekLlmWords)) return "deepseek-llm";
  if (cutters[1].pattern == kDeepseekCoderWords) return "deepseek-coder";
  return {};
}

}  // namespace

ParsedJson pre_tokenizer_json(std::string_view name) {
  const std::string_view rule = rule_of(name);
  if (rule == "gpt-2") return byte_level_json(true);
  if (rule == "smollm") {
    return sequence_json(
        ParsedJson::array({{{"type", "Digits"}, {"individual_digits", true}}, byte_level_json(true)}));
  }
  if (rule == "deepseek-v3") {
    return sequence_json(ParsedJson::array({split_json(R"(\p{N}{1,3})"), split_json("[一-龥\u3040-ゟ゠-ヿ]+"),
                                            split_json(kDeepseekV3Words), byte_level_json(false)}));
  }
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

std::string pre_tokenizer_name(const ParsedJson& tokenizer_json, std::string_view family) {
  const auto found = tokenizer_json.find("pre_tokenizer");
  if (found == tokenizer_json.end()) return {};
  const std::string oldest(oldest_name(cutters_of(*found), tokenizer_json));
  for (const KnownFamily& known : kNamesOfFamilies) {
    if (known.family == family && known.oldest == oldest) return std::string(known.name);
  }
  return oldest;
}

}  // namespace assay
