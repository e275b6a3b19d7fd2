// Looking things up in values: x.name, x['name'], x[0], x[1:2], by Jinja's rules and within its sandbox.
#pragma once

#include "refimpl/jinja/things.h"

namespace assay::jinja {

// environment.getattr: the attribute, else the item of that name, else undefined.
Value get_attribute(const Value& of, std::string_view name);
// environment.getitem: the item, else, for a name, the attribute, else undefined.
Value get_item(const Value& of, const Value& key);
// Python's getattr within the sandbox: nullopt where there is none; undefined where it may not be had.
std::optional<Value> attribute(const Value& of, std::string_view name);
Value slice(const Value& of, const Value& start, const Value& stop, const Value& step);

Method text_method(std::string_view name);  // nullptr: a string has none of that name
Method text_search_method(std::string_view name);

bool is_all_of_case(std::string_view text, bool lower);  // str.islower, str.isupper

// "str object", "None": as an error names the owner of what it has not.
std::string object_name(const Value& of);

}  // namespace assay::jinja
