// Does a value hold a schema? Written from the specification's words, apart from the compiler it examines.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "refimpl/grammar/utf8.h"

namespace assay::test {

class SchemaCheck {
 public:
  using Value = nlohmann::json;
  explicit SchemaCheck(const Value& root) : root_(root) {}
  bool holds(const Value& v) const { return holds(v, root_); }

 private:
  static std::size_t length(const std::string& text) {
    std::size_t n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    return n;
  }
  // A character a code point, as the specification counts.
  static std::wstring wide(const std::string& text) {
    std::wstring out;
    for (std::size_t at = 0; at < text.size();)
      out += static_cast<wchar_t>(grammar::next_code_point(text, at).value());
    return out;
  }
  static bool is(const Value& v, const std::string& type) {
    if (type == "integer")
      return v.is_number_integer() || (v.is_number_float() && std::floor(v.get<double>()) == v.get<double>());
    if (type == "number") return v.is_number();
    return type == v.type_name();
  }
  template <class Get>
  static bool bounded(const Value& s, const char* key, Get fits) {
    return !s.contains(key) || fits(s[key]);
  }

  bool holds(const Value& v, const Value& s) const {
    if (s.is_boolean()) return s.get<bool>();
    if (s.contains("$ref")) {
      const std::string ref = s["$ref"];
      if (!holds(v, ref == "#" ? root_ : root_.at(Value::json_pointer(ref.substr(1))))) return false;
    }
    if (s.contains("type")) {
      bool any = false;
      for (const Value& t : s["type"].is_array() ? s["type"] : Value::array({s["type"]})) any |= is(v, t);
      if (!any) return false;
    }
    if (s.contains("const") && v != s["const"]) return false;
    if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end())
      return false;
    return branches(v, s) && (!v.is_object() || object(v, s)) && (!v.is_array() || array(v, s)) &&
           (!v.is_string() || text(v, s)) && (!v.is_number() || number(v, s));
  }
  bool branches(const Value& v, const Value& s) const {
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      if (!s.contains(key)) continue;
      std::size_t fit = 0;
      for (const Value& branch : s[key]) fit += holds(v, branch) ? 1 : 0;
      const bool ok = key[0] == 'o' ? fit == 1 : std::string(key) == "anyOf" ? fit > 0 : fit == s[key].size();
      if (!ok) return false;
    }
    return true;
  }
  bool object(const Value& v, const Value& s) const {
    for (const Value& name : s.value("required", Value::array()))
      if (!v.contains(name.get<std::string>())) return false;
    for (const auto& [name, part] : v.items()) {
      if (s.contains("properties") && s["properties"].contains(name)) {
        if (!holds(part, s["properties"][name])) return false;
      } else if (s.contains("additionalProperties") && !holds(part, s["additionalProperties"])) {
        return false;
      }
    }
    return true;
  }
  bool array(const Value& v, const Value& s) const {
    if (s.contains("minItems") && v.size() < s["minItems"]) return false;
    if (s.contains("maxItems") && v.size() > s["maxItems"]) return false;
    const Value prefix = s.value("prefixItems", Value::array());
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i < prefix.size() ? !holds(v[i], prefix[i]) : s.contains("items") && !holds(v[i], s["items"]))
        return false;
    }
    return true;
  }
  bool text(const Value& v, const Value& s) const {
    const std::string t = v;
    if (s.contains("minLength") && length(t) < s["minLength"]) return false;
    if (s.contains("maxLength") && length(t) > s["maxLength"]) return false;
    return !s.contains("pattern") || std::regex_search(wide(t), std::wregex(wide(s["pattern"])));
  }
  bool number(const Value& v, const Value& s) const {
    const double x = v;
    return bounded(s, "minimum", [&](double b) { return x >= b; }) &&
           bounded(s, "maximum", [&](double b) { return x <= b; }) &&
           bounded(s, "exclusiveMinimum", [&](double b) { return x > b; }) &&
           bounded(s, "exclusiveMaximum", [&](double b) { return x < b; });
  }

  const Value& root_;
};

}  // namespace assay::test
