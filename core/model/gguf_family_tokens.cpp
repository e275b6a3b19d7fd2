// What the converter of a family does to special tokens beside the common rules of gguf_special_tokens.cpp.
// Source: set_vocab of the classes in llama.cpp's conversion/*.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/formats/gguf_write.h"
#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_pieces.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/file.h"
#include "core/system/json.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Kind = GgufRules::Tokenizer;
using FamilyKeys = std::vector<gguf::KeyValue>;

constexpr NamedToken kChatglmTokens[] = {
    {"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}};
constexpr NamedToken kGlm4Tokens[] = {
    {"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"bos", "<|endoftext|>"}};
constexpr NamedToken kGlmTokens[] = {
    {"bos", "[gMASK]"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"eom", "<|observation|>"}};
constexpr NamedToken kSolarTokens[] = {
    {"eos", "<|endoftext|>"}, {"eot", "<|endoftext|>"}, {"unk", "<unk>"}, {"bos", "<|startoftext|>"}};
constexpr NamedToken kDots3Tokens[] = {{"eot", "<|endofassistant|>"}};
constexpr std::string_view kChatEnd = "<|im_end|>", kMuseTurnEnd = "<|eot|>";
constexpr std::uint64_t kHunyuanBegin = 127959;

void set_id(FamilyKeys& keys, std::string_view part, std::uint64_t id) {
  gguf::set_value(keys, gguf::u32_value(fmt::format("tokenizer.ggml.{}_token_id", part), id));
}
void set_space_prefix(FamilyKeys& keys, bool before) {
  gguf::set_value(keys, gguf::bool_value("tokenizer.ggml.add_space_prefix", before));
}

const ParsedJson* member_of(const ParsedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool is_there(const TokenizerFolder& folder, const char* name) {
  std::error_code error;
  return fs::exists(folder.path / name, error);
}

void set_named_space_prefix(const TokenizerFolder& folder, FamilyKeys& keys) {
  const ParsedJson* named = member_of(folder.settings, "add_prefix_space");
  if (named != nullptr && named->is_boolean()) set_space_prefix(keys, named->get<bool>());
}

// The id of an added token; the last file that has it decides.
std::optional<std::uint64_t> added_id(const TokenizerFolder& folder, std::string_view text, bool special) {
  std::optional<std::uint64_t> found;
  const auto take = [&](std::uint64_t id, const std::string& content, bool is_special) {
    if (content == text && (is_special || !special)) found = id;
  };
  for_each_decoder_entry(folder.settings, take);
  if (is_there(folder, "tokenizer.json"))
    for_each_added_token(read_json(folder.path / "tokenizer.json", kTokenizerFileLimits), take);
  return found;
}

// A model that chats ends its turns by <|im_end|>, which is then its eos, if it has one.
void end_turns(const TokenizerFolder& folder, bool special, FamilyKeys& keys) {
  const auto chat = added_id(folder, kChatEnd, special);
  const bool has_eos = std::any_of(keys.begin(), keys.end(), [](const gguf::KeyValue& key) {
    return key.key == "tokenizer.ggml.eos_token_id";
  });
  if (chat && has_eos) set_id(keys, "eos", *chat);
}

void add_hunyuans(const TokenizerFolder& folder, FamilyKeys& keys) {
  const ParsedJson* end = member_of(folder.config, "eod_token_id");
  if (end != nullptr && end->is_number_unsigned()) set_id(keys, "eos", end->get<std::uint64_t>());
  if (!is_there(folder, "generation_config.json")) return;
  const ParsedJson generation = read_json(folder.path / "generation_config.json", kTokenizerFileLimits);
  const ParsedJson* ends = member_of(generation, "eos_token_id");
  if (ends != nullptr && ends->is_array() && ends->size() >= 2 && ends->front().is_number_unsigned())
    set_id(keys, "eot", ends->front().get<std::uint64_t>());
}

// Of several ends of a text, the first that is not its beginning ends a turn.
void add_lagunas(const TokenizerFolder& folder, FamilyKeys& keys) {
  const ParsedJson* ends = member_of(folder.config, "eos_token_id");
  if (ends == nullptr || !ends->is_array()) return;
  const ParsedJson* begin = member_of(folder.config, "bos_token_id");
  const auto turn = std::find_if(ends->begin(), ends->end(),
                                 [&](const ParsedJson& end) { return begin == nullptr || end != *begin; });
  if (turn != ends->end() && turn->is_number_unsigned()) set_id(keys, "eot", turn->get<std::uint64_t>());
}

}  // namespace

SpecialTokenRules special_token_rules(Kind kind, const TokenizerFolder& folder) {
  SpecialTokenRules rules;
  switch (kind) {
    case Kind::chatglm: rules.named = kChatglmTokens; break;
    case Kind::glm4: rules.named = kGlm4Tokens; break;
    case Kind::glm: rules.named = kGlmTokens; break;
    case Kind::solar_open: rules.named = kSolarTokens; break;
    case Kind::dots3: rules.named = kDots3Tokens; break;
    case Kind::hunyuan: {
      const ParsedJson* padding = member_of(folder.config, "pad_token_id");
      rules.padding = padding == nullptr || !padding->is_number_integer() || !(*padding < 0);
      break;
    }
    case Kind::laguna:
    case Kind::minimax_01: rules.template_of_file = true; break;
    default: break;
  }
  return rules;
}

void add_keys_between(Kind kind, const TokenizerFolder& folder, FamilyKeys& keys) {
  if (kind == Kind::internlm3) set_named_space_prefix(folder, keys);
  if (kind != Kind::internlm2 || !is_there(folder, "tokenizer.model")) return;
  const fs::path path = folder.path / "tokenizer.model";
  set_space_prefix(keys,
                   sentencepiece_adds_prefix(read_small_file(path, kTokenizerFileLimits.max_bytes), path));
}

void add_keys_after(Kind kind, const TokenizerFolder& folder, FamilyKeys& keys) {
  const bool pieces = is_there(folder, "tokenizer.model");
  switch (kind) {
    case Kind::code_gemma:
      for (const auto& [part, id] :
           {std::pair("prefix", 67), {"suffix", 69}, {"middle", 68}, {"fsep", 70}, {"eot", 107}})
        set_id(keys, part, static_cast<std::uint64_t>(id));
      [[fallthrough]];
    case Kind::gemma:
      if (pieces) set_space_prefix(keys, false);
      break;
    case Kind::gemma4:
      set_space_prefix(keys, false);
      gguf::set_value(keys, gguf::bool_value("tokenizer.ggml.add_bos_token", true));
      break;
    case Kind::ernie: set_named_space_prefix(folder, keys); break;
    case Kind::jamba:
      if (!pieces) set_space_prefix(keys, false);
      break;
    case Kind::internlm2: end_turns(folder, false, keys); break;
    case Kind::internlm3: end_turns(folder, true, keys); break;
    case Kind::nemotron: set_id(keys, "padding", 0), set_id(keys, "unknown", 1); break;
    case Kind::hunyuan: add_hunyuans(folder, keys); break;
    case Kind::hunyuan_moe:
      if (folder.tokens > kHunyuanBegin) set_id(keys, "bos", kHunyuanBegin);
      break;
    case Kind::muse_glimmer:
      if (const auto end = added_id(folder, kMuseTurnEnd, false)) set_id(keys, "eot", *end);
      break;
    case Kind::laguna: add_lagunas(folder, keys); break;
    case Kind::kimi_k3: {
      const ParsedJson* end = member_of(folder.config, "eos_token_id");
      if (end != nullptr && end->is_number_unsigned()) set_id(keys, "eos", end->get<std::uint64_t>());
      break;
    }
    default: break;
  }
}

}  // namespace assay
