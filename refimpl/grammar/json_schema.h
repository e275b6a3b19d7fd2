// A JSON schema as a grammar of the texts that hold it, in GBNF, so that it can be shown, and used elsewhere.
//
//   const Grammar grammar = parse_gbnf(gbnf_of_schema(text, "schema.json"), "schema.json");
//
// Supported, of draft 2020-12: type (a list, too), enum, const, anyOf, oneOf whose branches cannot overlap, allOf of one,
// $ref within the document, $defs; properties, required, additionalProperties; items, prefixItems, minItems, maxItems;
// minLength, maxLength, pattern (schema_pattern.h), format date, time, date-time, uuid, ipv4; minimum, maximum,
// exclusiveMinimum, exclusiveMaximum; true, and what only describes (title, default …). Any other keyword is refused by
// name, for a text would not be held to it.
//
// Every text of the grammar holds the schema; not every text that holds it is of the grammar: properties come in the
// order in which they are written; where additionalProperties is not there, there are none beside `properties`; keys
// that are free have no escapes; numbers have at most 16 digits before and after the point; white space is short.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::grammar {

// Throws Error::input with the place in the schema ("#/properties/a") where it cannot be held.
std::string gbnf_of_schema(std::string_view schema, const std::filesystem::path& source);

// Any JSON object: what OpenAI's `json_object` promises.
std::string gbnf_of_json_object();

}  // namespace assay::grammar
