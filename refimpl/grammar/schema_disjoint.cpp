#include "refimpl/grammar/schema_disjoint.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace assay::grammar {
namespace {

constexpr int kDeepest = 8;

// Through $refs, as many as there may reasonably be.
const OrderedSchema* seen_through(const OrderedSchema& root, const OrderedSchema& schema) {
  const OrderedSchema* at = &schema;
  for (int i = 0; i < kDeepest && at != nullptr && at->is_object() && at->contains("$ref"); ++i) {
    const OrderedSchema& target = (*at)["$ref"];
    at = target.is_string() ? resolve_pointer(root, target.get<std::string>()) : nullptr;
  }
  return at;
}

// The values that a schema lists; empty: it lists none.
std::vector<OrderedSchema> listed(const OrderedSchema& schema) {
  if (schema.contains("const")) return {schema["const"]};
  if (schema.contains("enum") && schema["enum"].is_array())
    return {schema["enum"].begin(), schema["enum"].end()};
  return {};
}

// Empty: any.
std::set<std::string> types(const OrderedSchema& schema) {
  std::set<std::string> out;
  const auto add = [&](const OrderedSchema& name) {
    if (name.is_string()) out.insert(name == "integer" ? "number" : name.get<std::string>());
  };
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (!type->is_array()) add(*type);
    if (type->is_array())
      for (const OrderedSchema& name : *type) add(name);
  }
  return out;
}

bool could_be(const OrderedSchema& value, const OrderedSchema& schema) {
  const std::vector<OrderedSchema> values = listed(schema);
  if (!values.empty()) return std::find(values.begin(), values.end(), value) != values.end();
  const std::set<std::string> all = types(schema);
  return all.empty() || std::any_of(all.begin(), all.end(),
                                    [&](const std::string& type) { return is_of_type(value, type); });
}

bool requires_name(const OrderedSchema& schema, const std::string& name) {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::find(required->begin(), required->end(), OrderedSchema(name)) != required->end();
}

}  // namespace

const OrderedSchema* resolve_pointer(const OrderedSchema& root, std::string_view pointer) {
  if (pointer == "#") return &root;
  if (!pointer.starts_with("#/")) return nullptr;
  const OrderedSchema* at = &root;
  pointer.remove_prefix(1);
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    std::string name;
    for (std::size_t i = 0; i < end; ++i) {
      const bool escaped =
          pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
      name += escaped ? (pointer[++i] == '0' ? '~' : '/') : pointer[i];
    }
    pointer.remove_prefix(end);
    if (at->is_object()) {
      const auto found = at->find(name);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array() && !name.empty() && name.size() < 7 &&
               name.find_first_not_of("0123456789") == std::string::npos && std::stoul(name) < at->size()) {
      at = &(*at)[std::stoul(name)];
    } else {
      return nullptr;
    }
  }
  return at;
}

std::string pointer_to(const std::string& at, std::string_view name) {
  std::string out = at + "/";
  for (const char c : name) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

bool is_of_type(const OrderedSchema& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer")
    return value.is_number_integer() ||
           (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
  return false;
}

bool are_disjoint(const OrderedSchema& root, const OrderedSchema& first, const OrderedSchema& second,
                  int depth) {
  const OrderedSchema* a = seen_through(root, first);
  const OrderedSchema* b = seen_through(root, second);
  if (a == nullptr || b == nullptr || !a->is_object() || !b->is_object() || depth > kDeepest) return false;
  for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}}) {
    const std::vector<OrderedSchema> values = listed(*one);
    if (!values.empty() &&
        std::none_of(values.begin(), values.end(),
                     [other = other](const OrderedSchema& v) { return could_be(v, *other); }))
      return true;
  }
  const std::set<std::string> a_types = types(*a), b_types = types(*b);
  const auto is_shared = [&](const std::string& type) { return b_types.contains(type); };
  if (!a_types.empty() && !b_types.empty() && std::none_of(a_types.begin(), a_types.end(), is_shared))
    return true;
  const bool only_objects =
      a_types == std::set<std::string>{"object"} || b_types == std::set<std::string>{"object"};
  if (!only_objects || !a->contains("properties") || !b->contains("properties")) return false;
  for (const auto& [name, value] : (*a)["properties"].items()) {
    if (!requires_name(*a, name) || !requires_name(*b, name) || !(*b)["properties"].contains(name)) continue;
    if (are_disjoint(root, value, (*b)["properties"][name], depth + 1)) return true;
  }
  return false;
}

}  // namespace assay::grammar
