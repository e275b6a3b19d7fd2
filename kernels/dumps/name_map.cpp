#include "kernels/dumps/name_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"

namespace assay::dumps {
namespace {

constexpr std::uint64_t kMostMapBytes = 1 << 20;
constexpr std::size_t kMostHead = 1 << 16;
constexpr const char* kIdleRule = "a rule that changes nothing: it wants '-> REPLACEMENT' or '{ options }'";

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(',', at);
    parts.emplace_back(trim(text.substr(at, end - at)));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

void set_pattern(MapRule& rule, std::string pattern) {
  if (pattern.empty()) throw Error::input("a rule without a pattern");
  try {
    rule.pattern = std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw Error::input(fmt::format("'{}' is no regular expression", escape_for_terminal(pattern)));
  }
  rule.source = std::move(pattern);
}

Join parse_join(std::string_view text) {
  if (text == "sum") return {Join::Kind::sum, ""};
  if (text == "same" || text == "replicated") return {Join::Kind::same, ""};
  if (text.starts_with("concat:") && text.size() > 7)
    return {Join::Kind::concat, std::string(text.substr(7))};
  throw Error::input(fmt::format("join '{}' is none of same, sum, concat:AXIS", escape_for_terminal(text)));
}

void set_transpose(MapRule& rule, const std::vector<std::string>& axes) {
  std::set<std::size_t> seen;
  for (const std::string& axis : axes) {
    const auto number = parse_u64(axis);
    if (!number || *number >= axes.size() || !seen.insert(*number).second)
      throw Error::input("transpose takes each axis once: transpose=1,0,2");
    rule.transpose.push_back(*number);
  }
}

void set_axes(MapRule& rule, std::vector<std::string> axes) {
  const std::set<std::string> distinct(axes.begin(), axes.end());
  if (distinct.size() != axes.size() || distinct.contains("") || !distinct.contains("token"))
    throw Error::input(
        "axes takes a different name for each axis, one of them token: axes=batch,token,head,dim");
  rule.axes = std::move(axes);
}

void set_rope(MapRule& rule, std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  const std::uint64_t head = parse_u64(text.substr(std::min(colon + 1, text.size()))).value_or(0);
  const bool to_halves = kind == "pairs-to-halves";
  if ((!to_halves && kind != "halves-to-pairs") || head == 0 || head % 2 != 0 || head > kMostHead)
    throw Error::input("rope takes pairs-to-halves:D or halves-to-pairs:D, D the even width of a head");
  (to_halves ? rule.pairs_to_halves : rule.halves_to_pairs) = head;
}

double parse_scale(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value == 0)
    throw Error::input(fmt::format("scale '{}' is no number other than 0", escape_for_terminal(text)));
  return value;
}

void set_option(MapRule& rule, std::string_view key, std::string_view value) {
  if (key == "axes")
    set_axes(rule, split_commas(value));
  else if (key == "transpose")
    set_transpose(rule, split_commas(value));
  else if (key == "join")
    rule.join = parse_join(value);
  else if (key == "scale")
    rule.scale = parse_scale(value);
  else if (key == "rope")
    set_rope(rule, value);
  else
    throw Error::input(
        fmt::format("option '{}' is none of axes, transpose, join, scale, rope", escape_for_terminal(key)));
}

// "PATTERN [-> REPLACEMENT] [{ key=value … }]"
MapRule parse_line(std::string_view line) {
  MapRule rule;
  bool options_given = false;
  if (const std::size_t open = line.rfind(" {"); open != std::string_view::npos && line.ends_with('}')) {
    std::string_view options = trim(line.substr(open + 2, line.size() - open - 3));
    while (!options.empty()) {
      const std::string_view option = options.substr(0, options.find_first_of(" \t"));
      const std::size_t equal = option.find('=');
      if (equal == std::string_view::npos)
        throw Error::input(fmt::format("'{}' is no key=value", escape_for_terminal(option)));
      set_option(rule, option.substr(0, equal), option.substr(equal + 1));
      options_given = true;
      options = trim(options.substr(option.size()));
    }
    line = trim(line.substr(0, open));
  }
  if (const std::size_t arrow = line.find("->"); arrow != std::string_view::npos) {
    rule.to = std::string(trim(line.substr(arrow + 2)));
    line = trim(line.substr(0, arrow));
  }
  if (!rule.to && !options_given) throw Error::input(kIdleRule);
  set_pattern(rule, std::string(line));
  return rule;
}

NameMap parse_text(std::string_view text) {
  NameMap map;
  std::vector<MapRule>* into = &map.test;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (line == "[ref]" || line == "[test]") {
      into = line == "[ref]" ? &map.ref : &map.test;
      continue;
    }
    try {
      into->push_back(parse_line(line));
    } catch (const Error& error) {
      throw Error::input(fmt::format("line {}: {}", number, error.message()));
    }
  }
  return map;
}

std::string text_of(const ParsedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  if (!value.is_array()) throw Error::input("an option is neither text, number nor list");
  std::string joined;
  for (const ParsedJson& part : value) {
    if (part.is_array() || part.is_object()) throw Error::input("a list holds lists");
    joined += fmt::format("{}{}", joined.empty() ? "" : ",", text_of(part));
  }
  return joined;
}

std::vector<MapRule> parse_rules(const ParsedJson& list) {
  if (!list.is_array()) throw Error::input("rules are a list");
  std::vector<MapRule> rules;
  for (const ParsedJson& entry : list) {
    if (!entry.is_object() || !entry.contains("match"))
      throw Error::input(fmt::format("rule {} is no object with \"match\"", rules.size() + 1));
    MapRule rule;
    for (const auto& [key, value] : entry.items()) {
      if (key == "match")
        set_pattern(rule, text_of(value));
      else if (key == "to")
        rule.to = text_of(value);
      else
        set_option(rule, key, text_of(value));
    }
    if (entry.size() == 1) throw Error::input(kIdleRule);
    rules.push_back(std::move(rule));
  }
  return rules;
}

NameMap parse_json_map(std::string_view text, const fs::path& source) {
  const ParsedJson document = parse_json(text, source);
  NameMap map;
  if (document.is_array()) {
    map.test = parse_rules(document);
    return map;
  }
  for (const auto& [key, value] : document.items()) {
    if (key == "ref")
      map.ref = parse_rules(value);
    else if (key == "test")
      map.test = parse_rules(value);
    else if (key != "schema")
      throw Error::input(fmt::format("'{}' is neither \"ref\" nor \"test\"", escape_for_terminal(key)));
  }
  return map;
}

}  // namespace

std::optional<MappedName> mapped_name(const std::vector<MapRule>& rules, std::string_view name) {
  MappedName mapped = {std::string(name), {}};
  for (const MapRule& rule : rules) {
    if (mapped.name.size() > NameFilter::kExaminedBytes || !std::regex_search(mapped.name, rule.pattern))
      continue;
    TapLayout& layout = mapped.layout;
    if (!rule.axes.empty()) layout.axes = rule.axes;
    if (!rule.transpose.empty()) layout.transpose = rule.transpose;
    if (rule.join) layout.join = *rule.join;
    if (rule.scale) layout.scale = *rule.scale;
    if (rule.pairs_to_halves != 0) layout.pairs_to_halves = rule.pairs_to_halves;
    if (rule.halves_to_pairs != 0) layout.halves_to_pairs = rule.halves_to_pairs;
    if (!rule.to) continue;
    if (*rule.to == "-") return std::nullopt;
    mapped.name =
        std::regex_replace(mapped.name, rule.pattern, *rule.to, std::regex_constants::format_first_only);
  }
  return mapped.name.empty() ? std::nullopt : std::optional(std::move(mapped));
}

NameMap parse_name_map(std::string_view text, const fs::path& source) try {
  const std::string_view body = trim(text);
  // "[test]" opens a section of the plain form; a list of JSON opens with an object, or is empty.
  const bool list = body.starts_with('[') &&
                    (trim(body.substr(1)).starts_with('{') || trim(body.substr(1)).starts_with(']'));
  return list || body.starts_with('{') ? parse_json_map(text, source) : parse_text(text);
} catch (Error& error) {
  throw std::move(error).in(source).remedy("docs/dumps.md, \"Names\"");
}

NameMap read_name_map(const fs::path& path) {
  return parse_name_map(read_small_file(path, kMostMapBytes), path);
}

}  // namespace assay::dumps
