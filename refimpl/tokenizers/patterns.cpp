// Sources: the tokenizer.json and tokenization_*.py of the models, tiktoken_ext/openai_public.py; which names
// GGUF files use for them: llama.cpp src/llama-vocab.cpp.
#include "refimpl/tokenizers/patterns.h"

#include <algorithm>
#include <array>
#include <string>

namespace assay {
namespace {

#define ASSAY_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define ASSAY_WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define ASSAY_SYMBOLS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define ASSAY_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define ASSAY_UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define ASSAY_LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define ASSAY_CASED(less, tail)                                               \
  "[^\\r\\n\\p{L}\\p{N}]?[" ASSAY_UPPER less "]*[" ASSAY_LOWER less "]+" tail \
  "|[^\\r\\n\\p{L}\\p{N}]?[" ASSAY_UPPER less "]+[" ASSAY_LOWER less "]*" tail

constexpr std::string_view kLlama3 =
    ASSAY_CONTRACTIONS "|" ASSAY_WORD "|\\p{N}{1,3}|" ASSAY_SYMBOLS "|" ASSAY_SPACES;
constexpr std::string_view kCl100k =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++\\z"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
constexpr std::string_view kQwen2 =
    ASSAY_CONTRACTIONS "|" ASSAY_WORD "|\\p{N}|" ASSAY_SYMBOLS "|" ASSAY_SPACES;
constexpr std::string_view kQwen35 = ASSAY_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" ASSAY_SPACES;
constexpr std::string_view kO200k =
    ASSAY_CASED("", ASSAY_CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" ASSAY_SPACES;
constexpr std::string_view kTekken =
    ASSAY_CASED("", "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" ASSAY_SPACES;
constexpr std::string_view kYoutu =
    ASSAY_CASED("", ASSAY_CONTRACTIONS "?") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" ASSAY_SPACES;
constexpr std::string_view kKimi = "[\\p{Han}]+|" ASSAY_CASED(
    "&&[^\\p{Han}]", ASSAY_CONTRACTIONS "?") "|\\p{N}{1,3}|" ASSAY_SYMBOLS "|" ASSAY_SPACES;
constexpr std::string_view kDeepSeek3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" ASSAY_SPACES;
constexpr std::string_view kCjk = "[一-龥\\x{3040}-ゟ゠-ヿ]+";
constexpr std::string_view kCjkOld = "[一-龥ࠀ-一가-\\x{D7FF}]+";
// clang-format off: it would cut between the halves of ranges, and elsewhere each time.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
// clang-format on
constexpr std::string_view kBloom = " ?[^(\\s|.,!?…。，、।۔،)]+";
constexpr std::string_view kBailing =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!"
    "\\S)|\\s+";
constexpr std::string_view kJais2 =
    ASSAY_CONTRACTIONS "|" ASSAY_WORD "|\\p{N}{1,3}|" ASSAY_SYMBOLS
                       "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}"
                       "(?!\\S)|\\s{16}(?!\\S)"
                       "|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}";
constexpr std::string_view kExaoneMoe = ASSAY_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr std::string_view kSeedCoder =
    ASSAY_CONTRACTIONS "|" ASSAY_WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" ASSAY_SPACES;
// clang-format off
constexpr std::string_view kAsia =
    R"([一-鿿㐀-䶿豈-\x{FAFF}\x{3040}-ゟ゠-ヿ･-ﾟ⼀-\x{2FDF}เ-\x{0E7F}\x{0E80}-\x{0EFF}ក-\x{17FF}က-႟ꩠ-ꩿꧠ-\x{A9FF}가-\x{D7AF}ᄀ-ᇿ]+)";
// clang-format on

const std::vector<WordPattern>& patterns() {
  static const std::vector<WordPattern> known = {
      {"gpt-2", {kGpt2Pattern}},
      {"llama-bpe", {kLlama3}, true, true},
      {"cl100k_base", {kCl100k}},
      {"glm4", {kLlama3}},
      {"dbrx", {kLlama3}},
      {"qwen2", {kQwen2}},
      {"qwen2-nfc", {kQwen2}, false, false, true},
      {"qwen35", {kQwen35}},
      {"gpt-4o", {kO200k}},
      {"granite-embed-multi-97m", {kO200k}, true},
      {"tekken", {kTekken}, true, true},
      {"kimi-k2", {kKimi}},
      {"deepseek-llm",
       {"[\\r\\n]", kDeepSeekLetters, "\\s?[!-/:-~！-／：-～‘-‟\\x{3000}-。]+", "\\s+$", kCjkOld, "\\p{N}+"}},
      {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kCjkOld, "\\p{N}"}},
      {"deepseek-v3", {"\\p{N}{1,3}", kCjk, kDeepSeek3}},
      {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2Pattern, "[0-9][0-9][0-9]"}},
      {"starcoder", {"\\p{N}", kGpt2Pattern}},
      {"bloom", {kBloom}},
      {"viking", {kBloom, "\\p{N}"}},
      {"chameleon",
       {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
        "[\\p{P}!-/:-@\\[-`{-~]", kGpt2Pattern},
       false,
       true},
      {"bailingmoe", {kBailing}},
      {"jais-2", {kJais2}},
      {"exaone-moe", {kExaoneMoe}},
      {"seed-coder", {kSeedCoder}},
      {"superbpe", {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
      {"tiny_aya", {"\\d{1,3}(?=(?:\\d{3})*\\b)", kO200k}},
      {"afmoe", {"\\p{N}{1,3}(?=(?:\\p{N}{3})*+(?!\\p{N}))", kAsia, kDeepSeek3}},
      {"youtu",
       {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\\x{3040}-"
        "ゟ゠-"
        "ヿ]"
        "+",
        kYoutu},
       true},
      {"minicpm5",
       {"\\p{N}{1,3}", ASSAY_CONTRACTIONS "|" ASSAY_WORD "|\\p{N}+|" ASSAY_SYMBOLS "|" ASSAY_SPACES},
       true},
      {"laguna", {"[^\\n]+|[\\n]+", kQwen2}},
      {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2Pattern, "\\p{N}+", "[0-9][0-9][0-9]"}}};
  return known;
}

struct Alias {
  std::string_view name, pattern;
};
constexpr std::array<Alias, 62> kAliases = {{{"llama3", "llama-bpe"},
                                             {"llama-v3", "llama-bpe"},
                                             {"falcon3", "llama-bpe"},
                                             {"falcon-h1", "llama-bpe"},
                                             {"pixtral", "llama-bpe"},
                                             {"midm-2.0", "llama-bpe"},
                                             {"lfm2", "llama-bpe"},
                                             {"jina-v5-nano", "llama-bpe"},
                                             {"smaug-bpe", "dbrx"},
                                             {"chatglm-bpe", "glm4"},
                                             {"hunyuan-dense", "deepseek-v3"},
                                             {"joyai-llm", "deepseek-v3"},
                                             {"hy_v4", "deepseek-v3"},
                                             {"mpt", "gpt-2"},
                                             {"phi-2", "gpt-2"},
                                             {"jina-es", "gpt-2"},
                                             {"jina-de", "gpt-2"},
                                             {"jina-v2-es", "gpt-2"},
                                             {"jina-v2-de", "gpt-2"},
                                             {"jina-v1-en", "gpt-2"},
                                             {"jina-v2-code", "gpt-2"},
                                             {"roberta-bpe", "gpt-2"},
                                             {"gigachat", "gpt-2"},
                                             {"a.x-4.0", "gpt-2"},
                                             {"mellum", "gpt-2"},
                                             {"modern-bert", "gpt-2"},
                                             {"olmo", "gpt-2"},
                                             {"jais", "gpt-2"},
                                             {"trillion", "gpt-2"},
                                             {"granite-docling", "gpt-2"},
                                             {"exaone4", "gpt-2"},
                                             {"r50k_base", "gpt-2"},
                                             {"p50k_base", "gpt-2"},
                                             {"p50k_edit", "gpt-2"},
                                             {"gpt2", "gpt-2"},
                                             {"refact", "starcoder"},
                                             {"command-r", "starcoder"},
                                             {"smollm", "starcoder"},
                                             {"codeshell", "starcoder"},
                                             {"exaone", "starcoder"},
                                             {"minerva-7b", "starcoder"},
                                             {"mellum2", "starcoder"},
                                             {"deepseek-r1-qwen", "qwen2"},
                                             {"kormo", "qwen2"},
                                             {"f2llmv2", "qwen2"},
                                             {"stablelm2", "qwen2"},
                                             {"hunyuan", "qwen2"},
                                             {"solar-open", "qwen2"},
                                             {"megrez", "qwen2"},
                                             {"grok-2", "qwen2"},
                                             {"qwen", "qwen2-nfc"},
                                             {"poro-chat", "bloom"},
                                             {"gpt3-finnish", "bloom"},
                                             {"bailingmoe2", "bailingmoe"},
                                             {"llada-moe", "bailingmoe"},
                                             {"llama4", "gpt-4o"},
                                             {"kanana2", "gpt-4o"},
                                             {"talkie", "gpt-4o"},
                                             {"minimax-m2", "gpt-4o"},
                                             {"o200k_base", "gpt-4o"},
                                             {"kimi", "kimi-k2"},
                                             {"cohere2moe", "tiny_aya"}}};

}  // namespace

const WordPattern* find_pattern(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) name = alias.pattern;
  }
  const auto it = std::find_if(patterns().begin(), patterns().end(),
                               [&](const WordPattern& p) { return p.name == name; });
  return it == patterns().end() ? nullptr : &*it;
}

const WordPattern& pattern_of_class(std::string_view tokenizer_class, std::string_view model_type) {
  const bool qwen = tokenizer_class.starts_with("Qwen2") || model_type.starts_with("qwen");
  return *find_pattern(qwen ? "qwen2-nfc" : "gpt-2");
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const WordPattern& pattern : patterns()) names.push_back(pattern.name);
  for (const Alias& alias : kAliases) names.push_back(alias.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<PreTokenizer> make_words(const WordPattern& pattern) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const std::string_view regex : pattern.regexes)
    steps.push_back(make_split(regex, RegexDialect::oniguruma, SplitBehavior::isolated));
  return make_sequence(std::move(steps));
}

std::unique_ptr<PreTokenizer> make_byte_level(const WordPattern& pattern, bool add_prefix_space) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  if (add_prefix_space) steps.push_back(make_prefix_space());
  steps.push_back(make_words(pattern));
  steps.push_back(make_byte_alphabet());
  return make_sequence(std::move(steps));
}

}  // namespace assay
