// Questions about schemas: where a $ref leads, of which type a value is, whether one text could hold two of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace assay::grammar {

using OrderedSchema = nlohmann::ordered_json;  // properties are written in the order in which they stand

// "#", "#/$defs/a"; nullptr where it leads nowhere, or out of the document.
const OrderedSchema* resolve_pointer(const OrderedSchema& root, std::string_view pointer);
// "#/properties" and "a/b" -> "#/properties/a~1b"
std::string pointer_to(const std::string& at, std::string_view name);

// JSON Schema's types: 1.0 is an integer, too.
bool is_of_type(const OrderedSchema& value, std::string_view type);

// Certainly no value holds both: by their types, by their lists of values, or by a property that both require.
bool are_disjoint(const OrderedSchema& root, const OrderedSchema& a, const OrderedSchema& b, int depth = 0);

}  // namespace assay::grammar
