#include "core/formats/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostRanks = 65536;
constexpr std::size_t kWholeDigits = 64, kShortDigits = 16;
constexpr JsonLimits kLimits{1ull << 30, 64, false, false};

bool are_digits(std::string_view text) {
  return (text.size() == kWholeDigits || text.size() == kShortDigits) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string lower(std::string_view digits) {
  std::string text(digits);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >= kMostRanks) return std::nullopt;
  return value;
}

// "1:name", "dp=0/pp=0/tp=1/ep=0:name": the tensor-parallel rank and the rest; nullopt: the name has no rank.
std::optional<std::pair<std::uint64_t, std::string_view>> ranked(std::string_view key) {
  const auto colon = key.find(':');
  if (colon == key.npos) return std::nullopt;
  const std::string_view before = key.substr(0, colon), name = key.substr(colon + 1);
  if (const auto rank = whole_number(before)) return std::pair{*rank, name};
  const auto at = before.starts_with("tp=") ? 0 : before.find("/tp=");
  if (at == before.npos) return std::nullopt;
  std::string_view number = before.substr(before.find('=', at) + 1);
  number = number.substr(0, number.find('/'));
  const auto rank = whole_number(number);
  return rank ? std::optional(std::pair{*rank, name}) : std::nullopt;
}

class ListReader {
 public:
  explicit ListReader(const std::filesystem::path& source) : source_(source) {}

  void read(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos) throw Error::input("holds no tensors").in(source_);
    const bool of_json = text[first] == '{' || text[first] == '[';
    if (!of_json || is_of_lines(text.substr(first)))
      read_lines(text, of_json);
    else
      take_any(parse_json(text, source_, kLimits), 0);
    if (list_.tensors.empty())
      throw Error::input("holds no name with a SHA-256 beside it")
          .in(source_)
          .remedy("docs/tensors.md has the forms that are read");
  }
  TensorList take() && { return std::move(list_); }

 private:
  // A JSON text a line: the first line is a whole one, and another follows.
  static bool is_of_lines(std::string_view text) {
    const auto end = text.find('\n');
    if (end == text.npos || text[0] != '{') return false;
    const auto last = text.find_last_not_of(" \t\r", end - 1);
    const auto next = text.find_first_not_of(" \t\r\n", end);
    return last != text.npos && text[last] == '}' && next != text.npos && text[next] == '{';
  }

  void read_lines(std::string_view text, bool of_json) {
    for (std::size_t line = 1; !text.empty(); ++line) {
      const auto end = std::min(text.find('\n'), text.size());
      std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(text.size(), end + 1));
      while (!one.empty() && (one.back() == '\r' || one.back() == ' ')) one.remove_suffix(1);
      if (one.empty() || one[0] == '#') continue;
      if (of_json)
        take_any(parse_json(one, source_, kLimits), 0);
      else
        take_line(one, line);
    }
  }
  void take_line(std::string_view line, std::size_t number) {
    const auto space = line.find_first_of(" \t");
    const auto name = space == line.npos ? space : line.find_first_not_of(" \t*", space);
    if (name == line.npos || !are_digits(line.substr(0, space)))
      throw Error::input(fmt::format("line {} is no digest and a name", number)).in(source_);
    add(std::string(line.substr(name)), 0, line.substr(0, space));
  }

  void take_any(const ParsedJson& value, std::uint64_t rank) {
    if (value.is_array()) {  // one entry a rank, where they say nothing of it
      const bool maps = std::all_of(value.begin(), value.end(), [](const auto& v) { return is_map(v); });
      for (std::size_t i = 0; i < value.size(); ++i) take_any(value[i], maps ? i : rank);
      return;
    }
    if (!value.is_object()) throw Error::input("holds neither an object nor a list of them").in(source_);
    if (value.contains("schema")) return take_own(value);
    if (value.contains("name") && value.contains("sha256")) return take_entry(value, rank);
    if (value.contains("checksums")) {
      const auto info = value.find("parallelism_info");
      if (info != value.end() && info->is_object() && info->contains("tp_rank"))
        rank = json_u64((*info)["tp_rank"], "tp_rank", source_);
      return take_map(value["checksums"], rank);
    }
    if (is_map(value)) return take_map(value, rank);
    for (const auto& [key, inner] : value.items())  // {"ranks": […]}, {"success": true, "payload": {…}}
      if (inner.is_object() || inner.is_array()) take_any(inner, rank);
  }

  static bool is_map(const ParsedJson& value) {
    return value.is_object() && !value.empty() && std::all_of(value.begin(), value.end(), [](const auto& v) {
             return v.is_string() && are_digits(v.template get_ref<const std::string&>());
           });
  }
  void take_map(const ParsedJson& map, std::uint64_t rank) {
    if (!map.is_object()) throw Error::input("checksums is no object of names").in(source_);
    for (const auto& [key, digits] : map.items()) {
      const auto of_rank = ranked(key);
      const std::string name(of_rank ? of_rank->second : std::string_view(key));
      add(name, of_rank ? of_rank->first : rank, json_string(digits, key, source_));
    }
  }
  void take_entry(const ParsedJson& entry, std::uint64_t rank) {
    if (const auto said = entry.find("rank"); said != entry.end()) rank = json_u64(*said, "rank", source_);
    add(json_string(entry["name"], "name", source_), rank, json_string(entry["sha256"], "sha256", source_));
  }

  void take_own(const ParsedJson& document) {
    if (json_string(document["schema"], "schema", source_) != kTensorListSchema)
      throw Error::input(fmt::format("is of another schema than {}", kTensorListSchema)).in(source_);
    if (const auto engine = document.find("engine"); engine != document.end())
      list_.engine = json_string(*engine, "engine", source_);
    for (const auto& entry : array_of(document, "tensors")) {
      const std::string& name = json_string(member(entry, "name"), "name", source_);
      const std::string& digits = json_string(member(entry, "sha256"), "sha256", source_);
      for (const auto& rank : array_of(entry, "ranks")) add(name, json_u64(rank, "ranks", source_), digits);
    }
    for (const auto& entry : array_of(document, "not_told"))
      list_.unlisted.push_back({json_string(member(entry, "name"), "name", source_),
                                json_string(member(entry, "why"), "why", source_)});
  }
  const ParsedJson& member(const ParsedJson& object, const char* key) const {
    if (!object.is_object() || !object.contains(key))
      throw Error::input(fmt::format("an entry has no {}", key)).in(source_);
    return object[key];
  }
  const ParsedJson& array_of(const ParsedJson& object, const char* key) const {
    const ParsedJson& array = member(object, key);
    if (!array.is_array()) throw Error::input(fmt::format("{} is no list", key)).in(source_);
    return array;
  }

  void add(const std::string& name, std::uint64_t rank, std::string_view digits) {
    if (!are_digits(digits))
      throw Error::input(fmt::format("'{}' is no SHA-256", escape_for_terminal(digits.substr(0, 80))))
          .in(source_)
          .tensor(name);
    if (rank >= kMostRanks) throw Error::input(fmt::format("rank {} is beyond any group", rank)).in(source_);
    const auto [known, is_new] = known_.try_emplace({name, rank}, lower(digits));
    if (!is_new) {  // another replica, or stage, of the same rank
      if (known->second != lower(digits)) list_.contradicted.push_back(name);
      return;
    }
    list_.ranks = std::max(list_.ranks, rank + 1);
    list_.tensors.push_back({.name = name, .ranks = {rank}, .digits = lower(digits)});
  }

  const std::filesystem::path& source_;
  TensorList list_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> known_;
};

}  // namespace

TensorList parse_tensor_list(std::string_view text, const std::filesystem::path& source) {
  ListReader reader(source);
  reader.read(text);
  return std::move(reader).take();
}

}  // namespace assay
