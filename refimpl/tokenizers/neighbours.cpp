#include "refimpl/tokenizers/neighbours.h"

#include <algorithm>
#include <set>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/json_access.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostTemplateBytes = 1 << 20;

// "<s>", or {"content": "<s>", …}, or null.
std::string token_text(const ParsedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  const ParsedJson& content = member(value, "content");
  return content.is_string() ? content.get<std::string>() : "";
}

std::optional<bool> optional_bool(const ParsedJson& object, std::string_view key) {
  const ParsedJson& value = member(object, key);
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

// A string, or a list of named templates.
std::vector<NamedTemplate> named_templates(const ParsedJson& value, const std::string& file) {
  const std::string source = file + ": chat_template";
  if (value.is_string()) return {{"default", value.get<std::string>(), source}};
  std::vector<NamedTemplate> all;
  if (!value.is_array()) return all;
  for (const ParsedJson& each : value) {
    const ParsedJson& name = member(each, "name");
    const ParsedJson& text = member(each, "template");
    if (name.is_string() && text.is_string())
      all.push_back(
          {name.get<std::string>(), text.get<std::string>(), source + " '" + name.get<std::string>() + "'"});
  }
  return all;
}

// bos_token, eos_token and whatever else is called so: templates may name them.
std::vector<std::pair<std::string, std::string>> tokens_for_templates(const ParsedJson& config) {
  std::vector<std::pair<std::string, std::string>> tokens;
  if (!config.is_object()) return tokens;
  const auto add = [&](const std::string& name, const ParsedJson& value) {
    if (value.is_string() || member(value, "content").is_string())
      tokens.emplace_back(name, token_text(value));
  };
  for (const auto& [key, value] : config.items()) {
    if (key.ends_with("_token")) add(key, value);
  }
  const ParsedJson& extra = member(config, "extra_special_tokens");
  if (!extra.is_object()) return tokens;
  for (const auto& [key, value] : extra.items()) add(key, value);
  return tokens;
}

// chat_template.jinja, and others under additional_chat_templates/: they go before those of tokenizer_config.json.
void read_template_files(const fs::path& folder, TokenizerNeighbours& neighbours) {
  std::vector<NamedTemplate> all;
  const auto read = [&](std::string name, const fs::path& file, std::string shown) {
    all.push_back({std::move(name), read_small_file(file, kMostTemplateBytes), std::move(shown)});
  };
  if (fs::is_regular_file(folder / "chat_template.jinja"))
    read("default", folder / "chat_template.jinja", "chat_template.jinja");
  std::error_code error;
  std::vector<fs::path> more;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", error)) {
    if (entry.is_regular_file() && entry.path().extension() == ".jinja") more.push_back(entry.path());
  }
  std::sort(more.begin(), more.end());
  for (const fs::path& file : more)
    read(file.stem().string(), file, "additional_chat_templates/" + file.filename().string());
  if (!all.empty()) neighbours.chat_templates = std::move(all);
}

void read_tokenizer_config(const fs::path& path, TokenizerNeighbours& neighbours) {
  const ParsedJson config = read_json(path, {.duplicate_keys = true});
  neighbours.has_config = true;
  neighbours.tokenizer_class = string_member(config, "tokenizer_class", "", path);
  neighbours.bos = token_text(member(config, "bos_token"));
  neighbours.eos = token_text(member(config, "eos_token"));
  neighbours.unk = token_text(member(config, "unk_token"));
  neighbours.pad = token_text(member(config, "pad_token"));
  neighbours.add_bos = optional_bool(config, "add_bos_token");
  neighbours.add_eos = optional_bool(config, "add_eos_token");
  neighbours.add_prefix_space = optional_bool(config, "add_prefix_space").value_or(false);
  neighbours.chat_templates = named_templates(member(config, "chat_template"), "tokenizer_config.json");
  neighbours.template_tokens = tokens_for_templates(config);
  const ParsedJson& decoder = member(config, "added_tokens_decoder");
  if (!decoder.is_object()) return;
  for (const auto& [key, value] : decoder.items()) {
    const auto id = parse_u64(key);
    if (!id || *id >= kMostPieces)
      throw Error::input("added_tokens_decoder has a key that is no token id").in(path);
    neighbours.added.push_back(read_added_token(value, static_cast<TokenId>(*id), path));
  }
}

void read_added_tokens_file(const fs::path& path, TokenizerNeighbours& neighbours) {
  const ParsedJson tokens = read_json(path, {.duplicate_keys = true});
  if (!tokens.is_object()) return;
  std::set<TokenId> known;
  for (const AddedToken& token : neighbours.added) known.insert(token.id);
  for (const auto& [content, value] : tokens.items()) {
    const std::uint64_t id = json_u64(value, "an id", path);
    if (id >= kMostPieces) throw Error::input("an added token's id is beyond any vocabulary").in(path);
    if (known.insert(static_cast<TokenId>(id)).second)
      neighbours.added.push_back({static_cast<TokenId>(id), content, true, false, false, false, false});
  }
}

void read_generation_ends(const fs::path& path, TokenizerNeighbours& neighbours) {
  const ParsedJson config = read_json(path, {.duplicate_keys = true});
  const ParsedJson& ends = member(config, "eos_token_id");
  const auto take = [&](const ParsedJson& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() < kMostPieces)
      neighbours.generation_ends.push_back(value.get<TokenId>());
  };
  if (ends.is_array()) {
    for (const ParsedJson& each : ends) take(each);
  } else {
    take(ends);
  }
}

}  // namespace

AddedToken read_added_token(const ParsedJson& object, TokenId id, const fs::path& source) {
  AddedToken token;
  token.id = id;
  token.content = string_member(object, "content", "", source);
  token.special = bool_member(object, "special", false, source);
  token.single_word = bool_member(object, "single_word", false, source);
  token.lstrip = bool_member(object, "lstrip", false, source);
  token.rstrip = bool_member(object, "rstrip", false, source);
  token.normalized = bool_member(object, "normalized", !token.special, source);
  return token;
}

TokenizerNeighbours read_neighbours(const fs::path& folder) {
  TokenizerNeighbours neighbours;
  const auto present = [&](const char* name) { return fs::is_regular_file(folder / name); };
  if (present("tokenizer_config.json")) read_tokenizer_config(folder / "tokenizer_config.json", neighbours);
  if (present("added_tokens.json")) read_added_tokens_file(folder / "added_tokens.json", neighbours);
  if (present("generation_config.json")) read_generation_ends(folder / "generation_config.json", neighbours);
  if (present("config.json")) {
    const ParsedJson config = read_json(folder / "config.json", {.duplicate_keys = true});
    neighbours.model_type = string_member(config, "model_type", "", folder / "config.json");
  }
  read_template_files(folder, neighbours);
  // Of processors, which models that see had before chat_template.jinja; what reads text alone does not look there.
  if (neighbours.chat_templates.empty() && present("chat_template.json")) {
    const ParsedJson file = read_json(folder / "chat_template.json", {.duplicate_keys = true});
    neighbours.chat_templates = named_templates(member(file, "chat_template"), "chat_template.json");
  }
  return neighbours;
}

SpecialTokens special_tokens(const TokenizerNeighbours& neighbours, const Vocabulary& vocabulary) {
  const auto id_of = [&](const std::string& piece) {
    return piece.empty() ? std::nullopt : vocabulary.find(piece);
  };
  SpecialTokens special;
  special.bos = id_of(neighbours.bos);
  special.eos = id_of(neighbours.eos);
  special.unk = id_of(neighbours.unk);
  special.pad = id_of(neighbours.pad);
  for (const TokenId id : neighbours.generation_ends) {
    if (vocabulary.kind(id) != PieceKind::absent) special.end_of_generation.push_back(id);
  }
  find_end_of_generation(special, vocabulary);
  return special;
}

std::vector<AddedToken> merge_added(const TokenizerNeighbours& neighbours, std::vector<AddedToken> have,
                                    Vocabulary& vocabulary) {
  std::vector<AddedToken> all = std::move(have);
  std::set<std::string> known;
  for (const AddedToken& token : all) known.insert(token.content);
  for (const AddedToken& token : neighbours.added) {
    if (!token.content.empty() && known.insert(token.content).second) all.push_back(token);
  }
  for (const AddedToken& token : all) {
    const PieceKind kind = token.special ? PieceKind::control : PieceKind::user_defined;
    vocabulary.add(token.id, token.content, kind);
  }
  return all;
}

}  // namespace assay
