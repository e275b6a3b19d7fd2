#include "refimpl/grammar/schema_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

bool is_plain(std::uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string class_member(std::uint32_t c) {
  if (is_plain(c)) return std::string(1, static_cast<char>(c));
  return c <= 0xFFFF ? fmt::format("\\u{:04X}", c) : fmt::format("\\U{:08X}", c);
}

constexpr std::string_view kDate =
    R"([1-9] [0-9]{3} "-" ( ( "0" [13578] | "1" [02] ) "-" ( "0" [1-9] | [12] [0-9] | "3" [01] ) |)"
    R"( ( "0" [469] | "11" ) "-" ( "0" [1-9] | [12] [0-9] | "30" ) | "02-" ( "0" [1-9] | "1" [0-9] | "2" [0-8] ) ))";
constexpr std::string_view kTime =
    R"(( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{1,6} )?)"
    R"( ( "Z" | [-+] ( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ))";
constexpr std::string_view kByte =
    R"(( [0-9] | [1-9] [0-9] | "1" [0-9] [0-9] | "2" [0-4] [0-9] | "25" [0-5] ))";

}  // namespace

std::string gbnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string gbnf_class(const std::vector<CodeRange>& ranges) {
  std::string out = "[";
  for (const CodeRange& range : ranges) {
    out += class_member(range.first);
    if (range.last > range.first) out += "-" + class_member(range.last);
  }
  return out + "]";
}

std::optional<std::string> gbnf_of_format(std::string_view format) {
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{} \"T\" {}", kDate, kTime);
  if (format == "ipv4") return fmt::format("{0} \".\" {0} \".\" {0} \".\" {0}", kByte);
  if (format == "uuid")
    return "[0-9a-f]{8} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{12}";
  return std::nullopt;
}

// \u escapes name no half of a surrogate pair alone: parsers refuse those.
std::string_view gbnf_common_rules() {
  return R"GBNF(ws ::= ( " " | "\n" [ \t]{0,20} )?
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( member ( "," ws member )* )? "}"
member ::= string ":" ws value ws
array ::= "[" ws ( value ws ( "," ws value ws )* )? "]"
string ::= "\"" char* "\""
plain ::= [^"\\\x00-\x1F]
char ::= plain | "\\" ( ["\\/bfnrt] | "u" unit )
unit ::= ( [0-9a-cA-CefEF] hex | [dD] [0-7] ) hex hex | [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex
hex ::= [0-9a-fA-F]
number ::= integer ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,2} )?
integer ::= "-"? ( "0" | [1-9] [0-9]{0,15} )
)GBNF";
}

}  // namespace assay::grammar
