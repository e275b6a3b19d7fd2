#include "refimpl/serve/output_form.h"

#include <fmt/format.h>

#include "refimpl/grammar/json_schema.h"
#include "refimpl/jinja/json_value.h"
#include "refimpl/jinja/template.h"

namespace assay {
namespace {

// The schema as it was written: its properties' order, which the parsed document has forgotten, is that of the text's.
std::string in_its_order(std::string_view body) {
  jinja::Value at = jinja::value_from_json(body);
  for (const std::string_view name : {"response_format", "json_schema", "schema"})
    at = *at.as_dict().find(name);
  return jinja::Template::parse("{{ schema | tojson }}", "schema")
      .render(jinja::Dict::Entries{{jinja::text("schema"), at}}, {});
}

std::string of_schema(std::string_view body, std::size_t most_bytes, const std::string& field) {
  try {
    const std::string schema = in_its_order(body);
    if (schema.size() > most_bytes) throw Error::input(fmt::format("has more than {} bytes", most_bytes));
    return grammar::gbnf_of_schema(schema, "");
  } catch (const Error& error) {
    throw field_error(field, error.line());
  }
}

std::string of_response_format(const ParsedJson& format, std::string_view body, std::size_t most_bytes) {
  const std::string field = "response_format";
  RequestFields fields(format, field + ".");
  const std::string type = fields.text("type").value_or("");
  std::string gbnf;
  if (type == "json_object") {
    gbnf = grammar::gbnf_of_json_object();
  } else if (type == "json_schema") {
    const ParsedJson* given = fields.find("json_schema");
    if (given == nullptr) throw field_error(field + ".json_schema", "is missing");
    RequestFields inner(*given, field + ".json_schema.");
    inner.pass_over({"name", "description", "strict"});  // a text is always held to it
    if (inner.find("schema") == nullptr) throw field_error(field + ".json_schema.schema", "is missing");
    inner.refuse_others();
    gbnf = of_schema(body, most_bytes, field + ".json_schema.schema");
  } else if (type != "text") {
    throw field_error(field + ".type", "has to be text, json_object or json_schema");
  }
  fields.refuse_others();
  return gbnf;
}

}  // namespace

std::string output_form(RequestFields& fields, std::string_view body, std::size_t most_bytes) {
  std::string gbnf;
  if (const auto given = fields.text("grammar")) {
    if (given->size() > most_bytes)
      throw field_error("grammar", fmt::format("has more than {} bytes", most_bytes));
    gbnf = *given;
    if (gbnf.empty()) throw field_error("grammar", "is empty");
  }
  if (const ParsedJson* format = fields.find("response_format")) {
    if (!gbnf.empty()) throw field_error("response_format", "and grammar exclude one another");
    gbnf = of_response_format(*format, body, most_bytes);
  }
  return gbnf;
}

}  // namespace assay
