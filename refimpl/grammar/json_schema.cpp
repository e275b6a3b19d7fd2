#include "refimpl/grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/grammar/schema_disjoint.h"
#include "refimpl/grammar/schema_parts.h"
#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

using Names = std::set<std::string, std::less<>>;

const Names kDescribing = {"title",    "description", "default",  "examples",  "$schema", "$id",
                           "$comment", "deprecated",  "readOnly", "writeOnly", "$defs",   "definitions"};
const std::map<std::string, Names, std::less<>> kOfType = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}}};
constexpr std::size_t kMostProperties = 2000, kMostBytes = 1 << 20, kMostRules = 50'000, kLongestName = 1000;
constexpr std::uint64_t kMostItems = 10'000, kMostCharacters = 100'000;

class SchemaCompiler {
 public:
  SchemaCompiler(OrderedSchema schema, const std::filesystem::path& source)
      : root_(std::move(schema)), source_(source) {}

  std::string run() {
    const std::string first = reference("#");
    std::string text = fmt::format("root ::= {}\n", first);
    for (const auto& [name, body] : rules_) text += fmt::format("{} ::= {}\n", name, body);
    return text + std::string(gbnf_common_rules());
  }

 private:
  [[noreturn]] void fail(const std::string& at, std::string what) const {
    throw Error::input(fmt::format("{}: {}", at, what)).in(source_);
  }

  // ---- rules

  std::string add_rule(std::string body) {
    if (rules_.size() >= kMostRules) fail("#", fmt::format("more than {} rules", kMostRules));
    rules_.emplace_back(fmt::format("r{}", rules_.size()), std::move(body));
    return rules_.back().first;
  }

  // The rule of what a pointer within the document means; begun once, so that it may come to itself again.
  std::string reference(const std::string& pointer) {
    const auto known = references_.find(pointer);
    if (known != references_.end()) return known->second;
    const OrderedSchema* target = resolve_pointer(root_, pointer);
    if (target == nullptr) fail(pointer, "this $ref leads nowhere within the document");
    const std::string name = add_rule("");
    const std::size_t place = rules_.size() - 1;
    references_[pointer] = name;
    rules_[place].second = expression(*target, pointer);
    return name;
  }

  // ---- what a schema allows

  std::string expression(const OrderedSchema& schema, const std::string& at) {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) return "value";
      fail(at, "false: nothing can hold it");
    }
    if (!schema.is_object()) fail(at, "a schema is an object, true or false");
    refuse_unknown(schema, at);
    if (schema.contains("$ref")) return of_reference(schema, at);
    if (schema.contains("enum") || schema.contains("const")) return of_values(schema, at);
    for (const char* key : {"anyOf", "oneOf", "allOf"})
      if (schema.contains(key)) return of_branches(schema, key, at);
    const std::vector<std::string> types = types_of(schema, at);
    if (types.empty()) return "value";
    if (schema.contains("format") && std::find(types.begin(), types.end(), "string") == types.end())
      fail(at, "'format' of what is no string is not supported");
    std::vector<std::string> ways;
    for (const std::string& type : types) ways.push_back(of_type(schema, type, at));
    return joined(ways);
  }

  static std::string joined(const std::vector<std::string>& ways) {
    return ways.size() == 1 ? ways.front() : fmt::format("( {} )", fmt::join(ways, " | "));
  }

  void refuse_unknown(const OrderedSchema& schema, const std::string& at) const {
    static const Names kOther = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"};
    for (const auto& [key, value] : schema.items()) {
      const bool of_a_type = std::any_of(kOfType.begin(), kOfType.end(), [&key = key](const auto& type) {
        return type.second.contains(key);
      });
      if (!of_a_type && !kOther.contains(key) && !kDescribing.contains(key))
        fail(at, fmt::format("the keyword '{}' is not supported", key));
    }
  }

  // Beside a keyword that says everything only what describes may stand: both together would have to hold.
  void only_beside(const OrderedSchema& schema, const Names& allowed, const std::string& at) const {
    for (const auto& [key, value] : schema.items())
      if (!kDescribing.contains(key) && !allowed.contains(key))
        fail(at, fmt::format("the keyword '{}' beside '{}' is not supported", key, *allowed.begin()));
  }

  std::string of_reference(const OrderedSchema& schema, const std::string& at) {
    only_beside(schema, {"$ref"}, at);
    const OrderedSchema& target = schema["$ref"];
    if (!target.is_string()) fail(at, "$ref is no text");
    return reference(target.get<std::string>());
  }

  std::string of_values(const OrderedSchema& schema, const std::string& at) {
    only_beside(schema, schema.contains("enum") ? Names{"enum", "type"} : Names{"const", "type"}, at);
    std::vector<OrderedSchema> values;
    if (schema.contains("const")) {
      values.push_back(schema["const"]);
    } else {
      if (!schema["enum"].is_array()) fail(at, "enum is no list");
      values.assign(schema["enum"].begin(), schema["enum"].end());
    }
    const std::vector<std::string> types = types_of(schema, at);
    std::vector<std::string> ways;
    for (const OrderedSchema& value : values) {
      const bool fits =
          types.empty() || std::any_of(types.begin(), types.end(),
                                       [&](const std::string& type) { return is_of_type(value, type); });
      if (fits) ways.push_back(gbnf_literal(value.dump()));
    }
    if (ways.empty()) fail(at, "no value of the list is of the type");
    return joined(ways);
  }

  std::string of_branches(const OrderedSchema& schema, const std::string& key, const std::string& at) {
    only_beside(schema, {key}, at);
    const OrderedSchema& branches = schema[key];
    if (!branches.is_array() || branches.empty())
      fail(at, fmt::format("{} is no list, or an empty one", key));
    if (key == "allOf" && branches.size() > 1) fail(at, "'allOf' of more than one schema is not supported");
    std::vector<std::string> ways;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      for (std::size_t j = 0; key == "oneOf" && j < i; ++j)
        if (!are_disjoint(root_, branches[i], branches[j]))
          fail(at, fmt::format("branches {} and {} of 'oneOf' may both hold; not supported, anyOf would be",
                               j, i));
      ways.push_back(add_rule(expression(branches[i], fmt::format("{}/{}/{}", at, key, i))));
    }
    return joined(ways);
  }

  // As listed; without a list, the one that the keywords speak of; empty: any.
  std::vector<std::string> types_of(const OrderedSchema& schema, const std::string& at) const {
    std::vector<std::string> types;
    if (const auto type = schema.find("type"); type != schema.end()) {
      const auto add = [&](const OrderedSchema& name) {
        static const Names kTypes = {"object", "array", "string", "number", "integer", "boolean", "null"};
        if (!name.is_string() || !kTypes.contains(name.get<std::string>())) fail(at, "an unknown type");
        types.push_back(name.get<std::string>());
      };
      if (!type->is_array()) add(*type);
      if (type->is_array())
        for (const OrderedSchema& name : *type) add(name);
      if (types.empty()) fail(at, "a list of no types");
      return types;
    }
    for (const auto& [type, keys] : kOfType)
      if (std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return schema.contains(key); }))
        types.push_back(type);
    if (types.size() > 1) fail(at, "keywords of several types, and no 'type'");
    return types;
  }

  std::string of_type(const OrderedSchema& schema, const std::string& type, const std::string& at) {
    if (type == "object") return of_object(schema, at);
    if (type == "array") return of_array(schema, at);
    if (type == "string") return of_string(schema, at);
    if (type == "boolean") return R"(( "true" | "false" ))";
    if (type == "null") return "\"null\"";
    NumberBounds bounds;
    const auto read = [&](const char* key, std::optional<double>& bound) {
      if (!schema.contains(key)) return;
      if (!schema[key].is_number()) fail(at, fmt::format("{} is no number", key));
      bound = schema[key].get<double>();
    };
    read("minimum", bounds.least);
    read("maximum", bounds.most);
    read("exclusiveMinimum", bounds.above);
    read("exclusiveMaximum", bounds.below);
    if (!bounds.any()) return type;
    const auto within = type == "integer" ? gbnf_integers(bounds) : gbnf_numbers(bounds);
    if (!within)
      fail(at, "no number between the bounds could be written (of decimals, bounds are taken as whole)");
    return fmt::format("( {} )", *within);
  }

  std::uint64_t count(const OrderedSchema& schema, const char* key, std::uint64_t otherwise,
                      std::uint64_t most, const std::string& at) const {
    if (!schema.contains(key)) return otherwise;
    const OrderedSchema& value = schema[key];
    if (!value.is_number_unsigned()) fail(at, fmt::format("{} is no whole number from 0 up", key));
    if (value.get<std::uint64_t>() > most) fail(at, fmt::format("{} above {} is not supported", key, most));
    return value.get<std::uint64_t>();
  }

  std::string of_string(const OrderedSchema& schema, const std::string& at) {
    const bool bounded = schema.contains("minLength") || schema.contains("maxLength");
    if (bounded + schema.contains("pattern") + schema.contains("format") > 1)
      fail(at, "'pattern', 'format' and a length, two of them together, are not supported");
    const auto text_of = [&](const char* key) {
      if (!schema[key].is_string()) fail(at, fmt::format("{} is no text", key));
      return schema[key].get<std::string>();
    };
    if (schema.contains("format")) {
      const auto format = gbnf_of_format(text_of("format"));
      if (!format) fail(at, fmt::format("the format '{}' is not supported", text_of("format")));
      return fmt::format(R"("\"" {} "\"")", *format);
    }
    if (schema.contains("pattern")) {
      try {
        return fmt::format(R"("\"" ( {} ) "\"")", gbnf_of_pattern(text_of("pattern")));
      } catch (const Error& error) {
        fail(at, error.message());
      }
    }
    if (!bounded) return "string";
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const std::uint64_t least = count(schema, "minLength", 0, kMostCharacters, at);
    const std::uint64_t most = count(schema, "maxLength", kNone, kMostCharacters, at);
    if (most < least) fail(at, "maxLength is below minLength");
    return fmt::format(R"("\"" char{{{},{}}} "\"")", least, most == kNone ? "" : std::to_string(most));
  }

  std::string of_array(const OrderedSchema& schema, const std::string& at) {
    if (schema.contains("uniqueItems") && schema["uniqueItems"] != false)
      fail(at, "the keyword 'uniqueItems' is not supported");
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const std::uint64_t least = count(schema, "minItems", 0, kMostItems, at);
    const std::uint64_t most = count(schema, "maxItems", kNone, kMostItems, at);
    std::vector<std::string> items;  // at the beginning, each its own
    if (schema.contains("prefixItems")) {
      const OrderedSchema& prefix = schema["prefixItems"];
      if (!prefix.is_array()) fail(at, "prefixItems is no list");
      for (std::size_t i = 0; i < prefix.size() && i < most; ++i)
        items.push_back(add_rule(expression(prefix[i], fmt::format("{}/prefixItems/{}", at, i)) + " ws"));
    }
    std::string rest;  // what follows, any number of it
    if (schema.contains("items") && schema["items"].is_array())
      fail(at, "items as a list: prefixItems since 2020-12");
    if (!schema.contains("items"))
      rest = add_rule("value ws");
    else if (schema["items"] != false)
      rest = add_rule(expression(schema["items"], at + "/items") + " ws");
    if (most < least || (rest.empty() && items.size() < least))
      fail(at, "no list is long enough and short enough");
    return fmt::format(R"("[" ws {} "]")", list_of(items, rest, least, most));
  }

  // Items that have rules of their own, then any number of the rest, each but the first after a comma.
  std::string list_of(const std::vector<std::string>& items, const std::string& rest, std::uint64_t least,
                      std::uint64_t most) {
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const std::uint64_t own = items.size();
    std::string tail;  // from behind: what may follow the items that have rules of their own
    if (!rest.empty() && most > own) {
      const std::string more = most == kNone ? "" : std::to_string(most - own - (own == 0 ? 1 : 0));
      if (own == 0) {
        tail = fmt::format(R"({} ( "," ws {} ){{{},{}}})", rest, rest, least > 0 ? least - 1 : 0, more);
        return least == 0 ? fmt::format("( {} )?", tail) : tail;
      }
      tail = fmt::format(R"(( "," ws {} ){{{},{}}})", rest, least > own ? least - own : 0, more);
    }
    for (std::size_t i = items.size(); i-- > 0;) {
      std::string here = i == 0 ? items[i] : fmt::format(R"("," ws {})", items[i]);
      if (!tail.empty()) here += " " + tail;
      tail = add_rule(i < least ? here : fmt::format("( {} )?", here));
    }
    return tail;
  }

  // ---- objects

  struct Property {
    std::string rule;  // key, colon, value
    bool required = false;
  };

  std::string of_object(const OrderedSchema& schema, const std::string& at) {
    std::vector<std::string> names, required;
    if (schema.contains("required")) {
      if (!schema["required"].is_array()) fail(at, "required is no list");
      for (const OrderedSchema& name : schema["required"]) {
        if (!name.is_string()) fail(at, "required holds what is no text");
        required.push_back(name.get<std::string>());
      }
    }
    const auto is_required = [&](const std::string& name) {
      return std::find(required.begin(), required.end(), name) != required.end();
    };
    std::vector<Property> properties;
    if (schema.contains("properties")) {
      if (!schema["properties"].is_object()) fail(at, "properties is no object");
      for (const auto& [name, value] : schema["properties"].items()) {
        if (!is_required(name) && value == false) {
          names.push_back(name);  // never there
          continue;
        }
        properties.push_back(
            {property(name, expression(value, pointer_to(at + "/properties", name))), is_required(name)});
        names.push_back(name);
      }
    }
    const bool named = schema.contains("properties");
    const std::string free = free_value(schema, named, at);
    for (const std::string& name : required) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (free.empty() && (!named || schema.contains("additionalProperties")))
        fail(at, fmt::format("'{}' is required, and no property of this name may be there", name));
      properties.push_back({property(name, free.empty() ? "value" : free), true});
      names.push_back(name);
    }
    std::string more;
    if (!free.empty()) more = add_rule(fmt::format("{} \":\" ws {} ws", free_key(names), free));
    return fmt::format(R"("{{" ws {} "}}")", members(properties, more));
  }

  std::string property(const std::string& name, const std::string& value) {
    return add_rule(fmt::format(R"({} ":" ws {} ws)", gbnf_literal(OrderedSchema(name).dump()), value));
  }

  // What a property of no name may hold; empty: there is none.
  std::string free_value(const OrderedSchema& schema, bool named, const std::string& at) {
    if (!schema.contains("additionalProperties")) return named ? "" : "value";
    if (schema["additionalProperties"] == false) return "";
    return add_rule(expression(schema["additionalProperties"], at + "/additionalProperties"));
  }

  // In order; a comma before each but the first that is there.
  std::string members(const std::vector<Property>& properties, const std::string& more) {
    std::string some = more.empty() ? "" : fmt::format(R"(( "," ws {} )*)", more);  // after one was there
    std::string none = more.empty() ? "" : fmt::format(R"(( {} ( "," ws {} )* )?)", more, more);
    for (auto p = properties.rbegin(); p != properties.rend(); ++p) {
      const std::string here = p->rule + " " + some;
      std::string after = fmt::format(R"("," ws {} {})", p->rule, some);
      if (!p->required) after = fmt::format(R"(( "," ws {} )? {})", p->rule, some);
      none = add_rule(p->required    ? here
                      : none.empty() ? fmt::format("( {} )?", here)
                                     : fmt::format("{} | {}", here, none));
      some = add_rule(after);
    }
    return none;
  }

  // Any key but the names: a tree of their characters, left at any place but their ends.
  std::string free_key(const std::vector<std::string>& names) {
    std::vector<std::vector<std::uint32_t>> keys;
    for (const std::string& name : names) {
      if (name.size() > kLongestName)
        fail("#", fmt::format("a property's name of more than {} bytes beside free ones", kLongestName));
      std::vector<std::uint32_t> key;
      for (std::size_t at = 0; at < name.size();) key.push_back(next_code_point(name, at).value_or(0));
      keys.push_back(std::move(key));
    }
    std::sort(keys.begin(), keys.end());
    return fmt::format(R"("\"" {} "\"")", other_than(keys, 0, keys.size(), 0));
  }

  // The rest of a key after `depth` characters shared with the keys from `begin` to `end`, and none of those itself.
  std::string other_than(const std::vector<std::vector<std::uint32_t>>& keys, std::size_t begin,
                         std::size_t end, std::size_t depth) {
    bool is_key = false;
    std::vector<std::string> ways;
    std::vector<CodeRange> taken = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    while (begin < end && keys[begin].size() == depth) {
      is_key = true;
      ++begin;
    }
    while (begin < end) {
      const std::uint32_t c = keys[begin][depth];
      std::size_t same = begin;
      while (same < end && keys[same][depth] == c) ++same;
      if (c >= 0x20 && c != '"' && c != '\\')  // others are never written in a free key
        ways.push_back(fmt::format("{} {}", gbnf_class({{c, c}}), other_than(keys, begin, same, depth + 1)));
      taken.push_back({c, c});
      begin = same;
    }
    ways.push_back(fmt::format("{} plain*", gbnf_class(complement(tidy(taken)))));
    return add_rule(fmt::format("{}{}", fmt::join(ways, " | "), is_key ? "" : " | \"\""));
  }

  OrderedSchema root_;
  const std::filesystem::path& source_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<std::string, std::string> references_;
};

// An ordered object looks its keys up one by one.
void refuse_wide_objects(const ParsedJson& value, const std::filesystem::path& source) {
  if (value.is_object() && value.size() > kMostProperties)
    throw Error::input(fmt::format("an object of more than {} keys", kMostProperties)).in(source);
  for (const ParsedJson& part : value)
    if (part.is_structured()) refuse_wide_objects(part, source);
}

}  // namespace

std::string gbnf_of_schema(std::string_view text, const std::filesystem::path& source) {
  refuse_wide_objects(parse_json(text, source, {.max_bytes = kMostBytes}), source);
  return SchemaCompiler(OrderedSchema::parse(text), source).run();
}

std::string gbnf_of_json_object() {
  return "root ::= object\n" + std::string(gbnf_common_rules());
}

}  // namespace assay::grammar
