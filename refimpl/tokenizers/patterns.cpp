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
constexpr std::string_view kCjk = "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+";
constexpr std::string_view kCjkOld = "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+";
// Characters beyond ASCII are written as code points throughout: an editor or a version control that
// normalizes text turns U+1FD3 into U+0390 and U+F900 into U+8C48, and the ranges that end in them into
// nonsense. DeepSeek LLM's: the letters that have cases, of Unicode 12 and without the mathematical ones.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-z)"
    R"(\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC})"
    R"(\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE})"
    R"(\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";
constexpr std::string_view kBloom =
    " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+";
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
// AFMoE's: Han, kana, Thai, Lao, Khmer, Myanmar, Hangul.
constexpr std::string_view kAsia =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF})"
    R"(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F})"
    R"(\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
// DeepSeek V3's without the ends of lines behind symbols, each end of line a word, and digits one by one at
// last.
constexpr std::string_view kSpark =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr std::string_view kHorizon = ASSAY_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\x{200C}|\\x{200D})+|\\p{N}{1,3}|" ASSAY_SYMBOLS
    "|" ASSAY_SPACES;

const std::vector<WordPattern>& patterns() {
  static const std::vector<WordPattern> known = {
      {"gpt-2", {kGpt2Pattern}},
      {"llama-bpe", {kLlama3}, true, true},
      {"cl100k_base", {kCl100k}},
      {"glm4", {kLlama3}, true},
      {"chatglm-bpe", {kLlama3}},
      {"dbrx", {kLlama3}},
      {"qwen2", {kQwen2}},
      {"qwen2-nfc", {kQwen2}, false, false, true},
      {"qwen35", {kQwen35}},
      {"gpt-4o", {kO200k}},
      {"granite-embed-multi-97m", {kO200k}, true},
      {"tekken", {kTekken}, true, true},
      {"kimi-k2", {kKimi}},
      {"deepseek-llm",
       {"[\\r\\n]", kDeepSeekLetters,
        "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "\\s+$",
        kCjkOld, "\\p{N}+"}},
      {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kCjkOld, "\\p{N}"}},
      {"deepseek-v3", {"\\p{N}{1,3}", kCjk, kDeepSeek3}},
      {"spark2_5", {"\\p{N}{1,3}", kCjk, kSpark, "\\p{N}"}},
      {"k2-horizon", {kHorizon}},
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
       {"[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}"
        "\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|"
        "[\\x{4E00}-\\x{9FA5}\\x{3040}-"
        "\\x{309F}\\x{30A0}-"
        "\\x{30FF}]"
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
                                             {"glm5", "glm4"},
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

// Beginnings of a class or a model type, and how it cuts words.
struct ByClass {
  std::string_view tokenizer_class, model_type, pattern;
};
constexpr ByClass kByClass[] = {{"Qwen2", "qwen", "qwen2-nfc"}};

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
  for (const ByClass& known : kByClass) {
    if (tokenizer_class.starts_with(known.tokenizer_class) || model_type.starts_with(known.model_type))
      return *find_pattern(known.pattern);
  }
  return *find_pattern("gpt-2");
}

bool is_marked_pattern(std::string_view name) {
  return name == "gemma4" || name == "granite-embed-multi-311m" || name == "mmbert" || name == "sarvam-moe";
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
