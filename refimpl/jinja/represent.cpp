// How values are written: Python's str() and repr().
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "refimpl/jinja/unicode.h"
#include "refimpl/jinja/value.h"

namespace assay::jinja {
namespace {

void append_items(Buffer& out, const Values& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out.append(", ");
    out.append(represent(items[i]));
  }
}

std::string represent_list(const Value& value) {
  Buffer out;
  const bool is_list = value.is(Type::list);
  out.append(is_list ? "[" : "(");
  append_items(out, value.items());
  out.append(is_list ? "]" : value.items().size() == 1 ? ",)" : ")");
  return out.take();
}

std::string represent_dict(const Dict& dict) {
  Buffer out;
  out.append("{");
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    if (i != 0) out.append(", ");
    out.append(represent(dict.entries[i].first));
    out.append(": ");
    out.append(represent(dict.entries[i].second));
  }
  out.append("}");
  return out.take();
}

}  // namespace

// The shortest decimal that reads back as the same number; with an exponent below 1e-4 and from 1e16 up.
std::string represent_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
  const std::string_view written(digits, static_cast<std::size_t>(end - digits));
  const std::size_t e = written.find('e');
  const int exponent = std::stoi(std::string(written.substr(e + 1)));
  if (exponent >= -4 && exponent < 16) {
    char fixed[64];
    const auto fixed_end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr;
    std::string plain(fixed, fixed_end);
    if (plain.find('.') == std::string::npos) plain += ".0";
    return plain;
  }
  return fmt::format("{}e{}{:02}", written.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
}

// In single quotes, unless it holds some and no double ones.
std::string represent_text(std::string_view utf8) {
  const bool doubled = utf8.find('\'') != std::string_view::npos && utf8.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  count_copy(utf8.size() * 4);
  std::string out(1, quote);
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    const char32_t c = next_character(utf8, at);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += utf8.substr(begin, at - begin);
    } else {
      const auto code = static_cast<std::uint32_t>(c);
      out += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
    }
  }
  return out + quote;
}

std::string represent(const Value& value) {
  if (Session::current() != nullptr) Session::current()->check_stack();
  count_work(1);
  switch (value.type()) {
    case Type::missing: return "missing";
    case Type::undefined: return "Undefined";
    case Type::none: return "None";
    case Type::boolean: return value.whole() != 0 ? "True" : "False";
    case Type::integer: return fmt::format("{}", value.whole());
    case Type::wide: return static_cast<const WideInteger*>(value.object())->digits;
    case Type::real: return represent_real(value.number());
    case Type::text: {
      std::string quoted = represent_text(value.str());
      return value.as_text().safe ? "Markup(" + quoted + ")" : quoted;
    }
    case Type::list:
    case Type::tuple: return represent_list(value);
    case Type::dict: return represent_dict(value.as_dict());
    case Type::object: return value.thing().represent();
  }
  return {};
}

std::string write(const Value& value) {
  if (value.is_text()) return value.str();
  if (value.is_undefined()) return {};
  return represent(value);
}

}  // namespace assay::jinja
