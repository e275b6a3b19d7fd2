#include "core/model/gguf_general.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <regex>

#include "core/formats/gguf_write.h"
#include "core/formats/json.h"

namespace assay {
namespace {

constexpr std::size_t kLongestId = 200;  // regular expressions recurse; folder names are at most 255 bytes

bool matches(const std::string& text, const char* pattern) {
  return std::regex_match(text, std::regex(pattern, std::regex::icase));
}

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}
bool all_letters(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

struct NamePart {
  std::string text;
  bool basename = false, size = false, finetune = false, version = false, type = false;
  bool plain() const { return !basename && !size && !finetune && !version && !type; }
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "7b1" is 7.1B, "1_5b" is 1.5B, and so on; what the size is compared with decides whether it is one.
void read_size(NamePart& part, std::uint64_t parameters) {
  std::string& text = part.text;
  std::replace(text.begin(), text.end(), '_', '.');
  if (is_digit(text.back()))
    text = text.substr(0, text.size() - 2) + "." + text.back() + text[text.size() - 2];
  const bool number_first = text.size() > 1 && is_digit(text[text.size() - 2]);
  if (number_first && std::string_view("kmbt").find(text.back()) != std::string_view::npos)
    text.back() = static_cast<char>(std::toupper(text.back()));
  constexpr std::string_view kUnits = " KMBT";
  char* end = nullptr;
  const std::string digits = text.substr(0, text.size() - 1);
  const double number = std::strtod(digits.c_str(), &end);
  const auto unit = kUnits.find(text.back());
  if (parameters != 0 && !digits.empty() && *end == '\0' && unit != std::string_view::npos) {
    const double label = number * std::pow(1000.0, static_cast<double>(unit));
    const std::uint64_t most_off = 7 * parameters / 8;
    if (std::abs(label - static_cast<double>(parameters)) > static_cast<double>(most_off)) {
      part.finetune = true;  // rather a context length
      text.back() = static_cast<char>(std::tolower(text.back()));
    }
  }
  if (part.plain()) part.size = true;
}

void annotate(std::vector<NamePart>& parts, std::uint64_t parameters) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    NamePart& part = parts[i];
    if (matches(part.text, R"((v|iter)?\d+([.]\d+)*)")) {
      part.version = true;
    } else if (matches(part.text, R"(i?q\d(_\w)*|b?fp?(16|32))")) {
      part.type = true;
      for (char& c : part.text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    } else if (i > 0 && matches(part.text,
                                R"((([A]|\d+[x])?\d+([._]\d+)?[KMBT][\d]?|small|mini|medium|large|x?xl))")) {
      read_size(part, parameters);
    } else if (i > 0 && matches(part.text, "chat|instruct|vision|lora")) {
      part.finetune = true;
    }
  }
  const bool numbered =
      std::any_of(parts.begin(), parts.end(), [](const NamePart& p) { return p.size && has_digit(p.text); });
  for (NamePart& part : parts) {
    if (numbered && all_letters(part.text)) part.size = false;
  }
  bool at_start = true;
  for (NamePart& part : parts) {
    const bool letter_first = std::isalpha(static_cast<unsigned char>(part.text.front())) != 0;
    if (at_start && ((part.plain() && letter_first) || part.version)) {
      part.basename = true;
    } else {
      at_start = false;
      if (part.plain()) part.finetune = true;
    }
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->basename || !part->version) break;
    part->basename = false;
  }
}

std::string joined(const std::vector<NamePart>& parts, bool NamePart::*kind, bool once) {
  std::vector<std::string> chosen;
  for (const NamePart& part : parts) {
    if (!(part.*kind) || (once && std::find(chosen.begin(), chosen.end(), part.text) != chosen.end()))
      continue;
    chosen.push_back(part.text);
  }
  return fmt::format("{}", fmt::join(chosen, "-"));
}

std::string rounded(double parameters) {
  static constexpr std::array<std::pair<double, char>, 4> kScales = {
      {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {0, 'K'}}};
  for (const auto& [above, unit] : kScales) {
    if (!(parameters > above)) continue;
    const double scaled = parameters * (unit == 'K' ? 1e-3 : 1 / above);
    const std::string whole = fmt::format("{:.0f}", scaled);
    const std::size_t digits = whole == "0" ? 0 : whole.size();
    return fmt::format("{:.{}f}{}", scaled, digits < 2 ? 2 - digits : 0, unit);
  }
  return "0.00K";
}

std::uint64_t elements_of(const GgufTensor& tensor) {
  return element_count(tensor.made.shape).value_or(0);
}

void add_text(std::vector<gguf::KeyValue>& keys, const char* key, const std::string& text) {
  if (!text.empty()) keys.push_back(gguf::text_value(key, text));
}

// The sampling that generation_config.json recommends.
void add_sampling(std::vector<gguf::KeyValue>& keys, const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / "generation_config.json", error)) return;
  const ParsedJson config = read_json(folder / "generation_config.json", {.duplicate_keys = true});
  if (!config.is_object()) return;
  struct Setting {
    const char *key, *from;
    bool whole;
  };
  static constexpr Setting kSettings[] = {{"top_k", "top_k", true},
                                          {"top_p", "top_p", false},
                                          {"min_p", "min_p", false},
                                          {"xtc_probability", "xtc_probability", false},
                                          {"xtc_threshold", "xtc_threshold", false},
                                          {"temp", "temperature", false},
                                          {"penalty_last_n", "penalty_last_n", true},
                                          {"penalty_repeat", "repetition_penalty", false}};
  for (const Setting& setting : kSettings) {
    const auto found = config.find(setting.from);
    if (found == config.end() || !found->is_number()) continue;
    const std::string key = fmt::format("general.sampling.{}", setting.key);
    if (setting.whole)
      keys.push_back(gguf::i32_value(key, found->get<std::int32_t>()));
    else
      keys.push_back(gguf::f32_value(key, found->get<double>()));
  }
}

}  // namespace

std::string title_of_id(std::string_view id) {
  std::string spaced(id);
  std::replace(spaced.begin(), spaced.end(), '-', ' ');
  std::string title;
  for (std::string& word : split(spaced, ' ')) {
    const auto is_lower = [](unsigned char c) { return std::islower(c) != 0; };
    const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
    const bool lower =
        std::any_of(word.begin(), word.end(), is_lower) && std::none_of(word.begin(), word.end(), is_upper);
    // A letter is raised where none stands before it; versions and numbers stay.
    if (lower && word.size() <= kLongestId && !std::regex_match(word, std::regex(R"((v\d+(\.\d+)*|\d.*))"))) {
      bool after_letter = false;
      for (char& c : word) {
        const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
        if (letter && !after_letter) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        after_letter = letter;
      }
    }
    title += (title.empty() ? "" : " ") + word;
  }
  return title;
}

ModelNameParts model_name_parts(std::string_view id, std::uint64_t parameters) {
  ModelNameParts result;
  result.name = id;
  if (id.find(' ') != std::string_view::npos || id.size() > kLongestId) return result;
  if (const auto slash = id.find('/'); slash != std::string_view::npos) {
    if (id[0] != '.') result.organization = id.substr(0, slash);
    result.name = id.substr(slash + 1);
  }
  std::vector<NamePart> parts;
  for (std::string& text : split(result.name, '-')) parts.push_back({std::move(text)});
  annotate(parts, parameters);
  result.basename = joined(parts, &NamePart::basename, false);
  result.size_label = joined(parts, &NamePart::size, true);
  result.finetune = joined(parts, &NamePart::finetune, false);
  for (NamePart& part : parts) part.version &= !part.basename;
  result.version = joined(parts, &NamePart::version, false);
  if (result.size_label.empty() && result.finetune.empty() && result.version.empty()) result.basename.clear();
  return result;
}

std::string size_label(const std::vector<GgufTensor>& tensors) {
  double total = 0, beside = 0, of_one_expert = 0;
  std::uint64_t experts = 0, stacks = 0;
  for (const GgufTensor& tensor : tensors) {
    const auto elements = static_cast<double>(elements_of(tensor));
    total += elements;
    const bool stacked =
        tensor.made.name.find("_exps.") != std::string::npos && tensor.made.shape.size() >= 3;
    if (!stacked) {
      beside += elements;
      continue;
    }
    const std::uint64_t count = tensor.made.shape[tensor.made.shape.size() - 3];
    of_one_expert += elements / static_cast<double>(count);
    experts += count;
    ++stacks;
  }
  if (stacks == 0) return rounded(total);
  return fmt::format("{}x{}", experts / stacks, rounded(beside + of_one_expert));
}

std::vector<gguf::KeyValue> gguf_general(const fs::path& folder, const ModelConfig& config,
                                         std::string_view architecture,
                                         const std::vector<GgufTensor>& tensors) {
  std::vector<gguf::KeyValue> keys = {gguf::text_value("general.architecture", std::string(architecture)),
                                      gguf::text_value("general.type", "model")};
  add_sampling(keys, folder);
  std::uint64_t parameters = 0;
  for (const GgufTensor& tensor : tensors) parameters += elements_of(tensor);
  // config.json's _name_or_path first, if it is a name and no path; then the folder's.
  ModelNameParts known;
  const auto merge = [&](const ModelNameParts& parts) {
    const auto take = [](std::string& to, const std::string& from) {
      if (to.empty()) to = from;
    };
    take(known.name, title_of_id(parts.name));
    if (!parts.organization.empty()) take(known.organization, title_of_id(parts.organization));
    take(known.basename, parts.basename);
    take(known.finetune, parts.finetune);
    take(known.version, parts.version);
    take(known.size_label, parts.size_label);
  };
  const auto path = config.document().find("_name_or_path");
  if (path != config.document().end() && path->is_string() && !path->get_ref<const std::string&>().empty() &&
      std::count(path->get_ref<const std::string&>().begin(), path->get_ref<const std::string&>().end(),
                 '/') <= 1)
    merge(model_name_parts(path->get_ref<const std::string&>(), parameters));
  std::error_code error;
  fs::path named = fs::canonical(folder, error);
  merge(model_name_parts(named.filename().string(), parameters));
  add_text(keys, "general.name", known.name);
  add_text(keys, "general.version", known.version);
  add_text(keys, "general.organization", known.organization);
  add_text(keys, "general.finetune", known.finetune);
  add_text(keys, "general.basename", known.basename);
  add_text(keys, "general.size_label", known.size_label.empty() ? size_label(tensors) : known.size_label);
  return keys;
}

}  // namespace assay
