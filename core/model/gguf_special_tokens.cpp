// The special tokens of a folder, by the rules of gguf-py's SpecialVocab (gguf/vocab.py): tokenizer.json's
// post-processor says what is put around a text, tokenizer_config.json which token has which part,
// config.json the ids that are still unknown.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/formats/gguf_write.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"
#include "core/system/json.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

ParsedJson read_if_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return ParsedJson::object();
  ParsedJson json = read_json(path, kPythonJson);  // Nemotron-H's config.json has an Infinity
  if (!json.is_object()) throw Error::input("is no JSON object").in(path);
  return json;
}

const ParsedJson& member(const ParsedJson& object, const char* key) {
  static const ParsedJson kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}
// "" and null alike: nothing is there.
bool is_given(const ParsedJson& value) {
  return !value.is_null() && !(value.is_string() && value.get_ref<const std::string&>().empty());
}

// The name and the GGUF key of each part a token can play; those without a key are looked for all the same.
struct SpecialPart {
  std::string_view name;
  const char* id_key;
  const char* add_key;
};
constexpr std::array<SpecialPart, 9> kParts = {
    {{"bos", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"},
     {"eos", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token"},
     {"unk", "tokenizer.ggml.unknown_token_id", nullptr},
     {"sep", "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.add_sep_token"},
     {"pad", "tokenizer.ggml.padding_token_id", nullptr},
     {"cls", nullptr, nullptr},
     {"mask", "tokenizer.ggml.mask_token_id", nullptr},
     {"eot", "tokenizer.ggml.eot_token_id", nullptr},
     {"eom", "tokenizer.ggml.eom_token_id", nullptr}}};
const SpecialPart& part_of(std::string_view name) {
  return *std::find_if(kParts.begin(), kParts.end(),
                       [&](const SpecialPart& part) { return part.name == name; });
}

class SpecialTokens {
 public:
  SpecialTokens(const fs::path& folder, const SpecialTokenRules& rules)
      : folder_(folder),
        rules_(rules),
        tokenizer_(read_if_there(folder / "tokenizer.json")),
        settings_(read_if_there(folder / "tokenizer_config.json")) {
    if (!rules.padding) std::erase(parts_, "pad");
  }

  std::vector<gguf::KeyValue> metadata() {
    if (!tokenizer_.empty()) read_post_processor();
    if (!settings_.empty()) read_settings();
    read_config();
    for (const auto& [part, text] : rules_.named) set_id_of(part, text);
    std::vector<gguf::KeyValue> keys;
    for (const auto& [name, id] : ids_) {
      if (part_of(name).id_key != nullptr) keys.push_back(gguf::u32_value(part_of(name).id_key, id));
    }
    for (const auto& [name, value] : added_) {
      if (part_of(name).add_key != nullptr) keys.push_back(gguf::bool_value(part_of(name).add_key, value));
    }
    add_chat_template(keys);
    add_normalizer(keys, member(tokenizer_, "normalizer"));
    return keys;
  }

 private:
  using Name = std::string_view;

  bool* added(Name name) {
    for (auto& [known, value] : added_) {
      if (known == name) return &value;
    }
    return nullptr;
  }
  void set_added(Name name, bool value) {
    if (bool* known = added(name))
      *known = value;
    else
      added_.emplace_back(name, value);
  }

  void set_id(Name name, std::uint64_t id) {
    if (rules_.tokens != 0 && id >= rules_.tokens) return;
    for (const auto& known : ids_) {
      if (known.first == name) return;
    }
    ids_.emplace_back(name, id);
  }

  // The first added token of this text.
  void set_id_of(Name part, std::string_view text) {
    const ParsedJson& tokens = member(tokenizer_, "added_tokens");
    if (!tokens.is_array()) return;
    const auto token = std::find_if(tokens.begin(), tokens.end(), [&](const ParsedJson& candidate) {
      return member(candidate, "content") == text;
    });
    if (token != tokens.end() && member(*token, "id").is_number_unsigned())
      set_id(part, member(*token, "id").get<std::uint64_t>());
  }

  ParsedJson& setting(const char* key) { return settings_[key]; }

  void read_post_processor() {
    if (!settings_.empty()) {
      if (!is_given(member(settings_, "bos_token")) && is_given(member(settings_, "cls_token")))
        setting("bos_token") = settings_["cls_token"];
      if (!is_given(member(settings_, "eos_token")) && is_given(member(settings_, "sep_token")))
        setting("eos_token") = settings_["sep_token"];
    }
    bos_ = member(settings_, "bos_token");
    cls_ = member(settings_, "cls_token");
    eos_ = member(settings_, "eos_token");
    sep_ = member(settings_, "sep_token");
    const ParsedJson& processor = member(tokenizer_, "post_processor");
    if (!processor.is_object()) return;
    const ParsedJson& several = member(processor, "processors");
    if (!several.is_array()) return read_processor(processor);
    for (const ParsedJson& one : several) read_processor(one);
  }

  void read_processor(const ParsedJson& processor) {
    const ParsedJson& type = member(processor, "type");
    if (type == "ByteLevel") {
      if (added("bos") == nullptr) set_added("bos", false);
      if (added("eos") == nullptr) set_added("eos", false);
    } else if (type == "RobertaProcessing") {
      for (const Name name : {"bos", "eos", "sep"}) set_added(name, true);
      name_enclosing(cls_, "cls_token", member(processor, "cls"), bos_);
      name_enclosing(sep_, "sep_token", member(processor, "sep"), eos_);
    } else if (type == "TemplateProcessing") {
      read_template(member(processor, "single"), member(processor, "pair"));
    }
  }

  // `enclosing`: ["[CLS]", 101].
  void name_enclosing(ParsedJson& known, const char* key, const ParsedJson& enclosing,
                      const ParsedJson& otherwise) {
    if (is_given(known) || settings_.empty()) return;
    const bool listed = enclosing.is_array() && !enclosing.empty();
    setting(key) = known = listed ? enclosing.front() : otherwise;
  }

  static ParsedJson special_at(const ParsedJson& piece) {
    return member(member(piece, "SpecialToken"), "id");
  }

  void read_template(const ParsedJson& single, const ParsedJson& pair) {
    ParsedJson first, last;
    if (single.is_array() && single.size() > 1) {
      first = special_at(single.front());
      if (is_given(first)) take_first(first);
      last = special_at(single.back());
      if (is_given(last)) take_last(last);
    }
    if (pair.is_array() && !pair.empty()) read_pair(pair, first, last);
  }

  void take_first(const ParsedJson& first) {
    if (settings_.empty()) {
      bos_ = first;
    } else if (first != bos_ && first != cls_) {
      if (!is_given(bos_)) setting("bos_token") = bos_ = first;
      if (!is_given(cls_)) setting("cls_token") = cls_ = first;
    }
    set_added("bos", first == bos_ || first == cls_);
  }

  void take_last(const ParsedJson& last) {
    if (settings_.empty()) {
      eos_ = last;
    } else if (last != eos_) {
      // The token that ends a text is eos; the one so named in tokenizer_config.json ends a turn.
      const Name replaced = !contains("eot") ? "eot" : !contains("eom") ? "eom" : "";
      if (!replaced.empty()) {
        parts_.push_back(replaced);
        setting(replaced == "eot" ? "eot_token" : "eom_token") = eos_;
      }
      setting("eos_token") = eos_ = last;
    }
    set_added("eos", last == eos_);
  }
  bool contains(Name name) const { return std::find(parts_.begin(), parts_.end(), name) != parts_.end(); }

  // A [separator] [eos] B, between the tokens that also enclose a single text.
  void read_pair(const ParsedJson& pair, const ParsedJson& first, const ParsedJson& last) {
    std::size_t begin = 0, end = pair.size();
    if (is_given(first) && special_at(pair.front()) == first) begin = 1;
    if (is_given(last) && special_at(pair.back()) == last) --end;
    if (begin >= end) return;
    const auto sequence = [](const ParsedJson& piece) { return member(member(piece, "Sequence"), "id"); };
    if (sequence(pair[begin]) != "A" || sequence(pair[end - 1]) != "B" || end - begin < 3) return;
    const auto separates = [&](const ParsedJson& token) {
      return is_given(token) && (token == sep_ || token == eos_);
    };
    bool add = separates(special_at(pair[begin + 1])) && !is_given(last);
    if (end - begin == 4) add |= separates(special_at(pair[begin + 2]));
    set_added("sep", add);
    if (add && !is_given(sep_) && !settings_.empty()) setting("sep_token") = eos_;
  }

  void read_settings() {
    for (const Name name : parts_) {
      const ParsedJson& add = member(settings_, fmt::format("add_{}_token", name).c_str());
      if (add.is_boolean() && added(name) == nullptr) set_added(name, add.get<bool>());
      const ParsedJson& entry = member(settings_, fmt::format("{}_token", name).c_str());
      const ParsedJson& content = entry.is_object() ? member(entry, "content") : entry;
      if (content.is_string()) set_id_of(name, content.get_ref<const std::string&>());
    }
  }

  void read_config() {
    const ParsedJson config = read_if_there(folder_ / "config.json");
    for (const Name name : parts_) {
      const std::string key = fmt::format("{}_token_id", name);
      const ParsedJson& own = member(config, key.c_str());
      const ParsedJson& id = own.is_null() ? member(member(config, "text_config"), key.c_str()) : own;
      if (id.is_number_unsigned()) set_id(name, id.get<std::uint64_t>());
    }
  }

  ParsedJson chat_template() const {
    if (settings_.empty()) return {};
    ParsedJson of_file = template_file();
    if (rules_.template_of_file && of_file.is_string()) return of_file;
    return settings_.contains("chat_template") ? settings_.at("chat_template") : of_file;
  }

  ParsedJson template_file() const {
    std::error_code error;
    constexpr std::uint64_t kLargest = 16 << 20;
    if (!fs::exists(folder_ / "chat_template.jinja", error))
      return member(read_if_there(folder_ / "chat_template.json"), "chat_template");
    ParsedJson main = read_small_file(folder_ / "chat_template.jinja", kLargest);
    std::vector<fs::path> more;
    for (fs::directory_iterator entry(folder_ / "additional_chat_templates", error), end;
         !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".jinja") more.push_back(entry->path());
    }
    if (more.empty() || rules_.template_of_file) return main;
    std::sort(more.begin(), more.end());
    ParsedJson all = ParsedJson::array({{{"name", "default"}, {"template", std::move(main)}}});
    for (const fs::path& path : more)
      all.push_back({{"name", path.stem().string()}, {"template", read_small_file(path, kLargest)}});
    return all;
  }

  static void add_normalizer(std::vector<gguf::KeyValue>& keys, const ParsedJson& normalizer) {
    const auto set = [&](const char* name, const ParsedJson& value) {
      if (value.is_boolean())
        gguf::set_value(
            keys, gguf::bool_value(fmt::format("tokenizer.ggml.normalizer.{}", name), value.get<bool>()));
    };
    const ParsedJson& type = member(normalizer, "type");
    if (type == "Lowercase") set("lowercase", true);
    if (type == "StripAccents") set("strip_accents", true);
    if (type == "BertNormalizer") {
      set("lowercase", member(normalizer, "lowercase"));
      set("strip_accents", member(normalizer, "strip_accents"));
    }
    const ParsedJson& several = member(normalizer, "normalizers");
    if (type != "Sequence" || !several.is_array()) return;
    for (const ParsedJson& one : several) add_normalizer(keys, one);
  }

  void add_chat_template(std::vector<gguf::KeyValue>& keys) const {
    const ParsedJson chat = chat_template();
    if (chat.is_string() && !chat.get_ref<const std::string&>().empty())
      keys.push_back(gguf::text_value("tokenizer.chat_template", chat.get<std::string>()));
    if (!chat.is_array()) return;
    std::vector<std::string> names;
    std::string main;
    for (const ParsedJson& choice : chat) {
      const ParsedJson &name = member(choice, "name"), &text = member(choice, "template");
      if (!name.is_string() || !text.is_string() || name.get_ref<const std::string&>().empty()) continue;
      std::string safe = name.get<std::string>();
      for (char& c : safe) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      if (safe == "default") {
        main = text.get<std::string>();
        continue;
      }
      keys.push_back(gguf::text_value("tokenizer.chat_template." + safe, text.get<std::string>()));
      names.push_back(std::move(safe));
    }
    std::sort(names.begin(), names.end());
    if (!names.empty()) keys.push_back(gguf::texts_value("tokenizer.chat_templates", names));
    if (!main.empty()) keys.push_back(gguf::text_value("tokenizer.chat_template", std::move(main)));
  }

  const fs::path& folder_;
  const SpecialTokenRules& rules_;
  ParsedJson tokenizer_, settings_;
  ParsedJson bos_, cls_, eos_, sep_;
  std::vector<Name> parts_ = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
  std::vector<std::pair<Name, std::uint64_t>> ids_;
  std::vector<std::pair<Name, bool>> added_;
};

}  // namespace

std::vector<gguf::KeyValue> special_token_metadata(const fs::path& folder, const SpecialTokenRules& rules) {
  return SpecialTokens(folder, rules).metadata();
}

}  // namespace assay
