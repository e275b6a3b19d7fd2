// format(value, spec): Python's format specification mini-language.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/format.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

constexpr std::int64_t kMostDigits = 100'000;

bool is_alignment(char32_t c) {
  return c == '<' || c == '>' || c == '=' || c == '^';
}

std::int64_t take_number(std::string_view& rest) {
  std::int64_t number = -1;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    number = std::max<std::int64_t>(number, 0) * 10 + (rest.front() - '0');
    if (number > (1 << 30)) fail("a format asks for too many digits");
    rest.remove_prefix(1);
  }
  return number;
}

bool take(std::string_view& rest, char c) {
  if (!rest.starts_with(c)) return false;
  rest.remove_prefix(1);
  return true;
}

// Commas or underscores between groups of the digits before the point, from the right.
std::string grouped(std::string_view digits, char separator, std::size_t group) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + std::string(digits.substr(whole));
}

std::string pad(std::string_view sign, std::string_view body, const FormatSpec& spec, char default_align) {
  const auto size = static_cast<std::int64_t>(count_characters(sign) + count_characters(body));
  const std::int64_t missing = std::max<std::int64_t>(spec.width - size, 0);
  if (Session::current() != nullptr)
    Session::current()->check_text(static_cast<std::size_t>(missing) * spec.fill.size());
  const char align = spec.align != 0 ? spec.align : default_align;
  const std::int64_t left = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  const auto fill = [&](std::int64_t times) {
    std::string out;
    for (std::int64_t i = 0; i < times; ++i) out += spec.fill;
    return out;
  };
  if (align == '=') return std::string(sign) + fill(left) + std::string(body);
  return fill(left) + std::string(sign) + std::string(body) + fill(missing - left);
}

// Zeros that fill a grouped number are grouped too: format(1234, "010,") is 00,001,234.
std::string with_grouped_zeros(std::string digits, const FormatSpec& spec, std::size_t prefix,
                               std::size_t group) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  const auto size_of = [&](std::size_t count) {
    return count + (count - 1) / group + (digits.size() - whole);
  };
  std::size_t count = std::max<std::size_t>(whole, 1);
  while (static_cast<std::int64_t>(size_of(count) + prefix) < spec.width) ++count;
  return grouped(std::string(count - whole, '0') + digits, spec.grouping, group);
}

std::string format_text(const std::string& utf8, const FormatSpec& spec) {
  if (spec.type != 0 && spec.type != 's')
    fail(fmt::format("unknown format code '{}' for a string", spec.type));
  if (spec.sign != '-' || spec.alternate || spec.grouping != 0 || spec.align == '=')
    fail("a format for numbers is used for a string");
  std::string_view body = utf8;
  if (spec.precision >= 0)
    body = body.substr(0, byte_of_character(body, static_cast<std::size_t>(spec.precision)));
  return pad("", body, spec, '<');
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

std::string numeric(bool negative, std::string_view prefix, std::string digits, const FormatSpec& spec,
                    std::size_t group) {
  const std::string sign = sign_of(negative, spec).append(prefix);
  if (spec.grouping != 0) {
    const bool zeros = spec.fill == "0" && spec.align == '=';
    digits =
        zeros ? with_grouped_zeros(digits, spec, sign.size(), group) : grouped(digits, spec.grouping, group);
  }
  return pad(sign, digits, spec, '>');
}

std::string format_real(double value, const FormatSpec& spec) {
  static constexpr std::string_view kTypes = "eEfFgGn%";
  if (spec.type != 0 && kTypes.find(spec.type) == std::string_view::npos)
    fail(fmt::format("unknown format code '{}' for a float", spec.type));
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::fabs(value);
  std::string digits;
  if (spec.type == 0 && std::isfinite(value)) {
    // As repr, or, with a precision, as 'g' that keeps one digit behind the point.
    digits = represent_real(magnitude);
    if (spec.precision >= 0) {
      digits = format_magnitude(magnitude, 'g', spec.precision, spec.alternate);
      const std::string written =
          fmt::format("{:.{}e}", magnitude, std::max<std::int64_t>(spec.precision, 1) - 1);
      const int exponent = std::stoi(written.substr(written.find('e') + 1));
      if (exponent == std::max<std::int64_t>(spec.precision, 1) - 1 &&
          digits.find('e') == std::string::npos) {
        // One more digit would be needed for the point: the exponent form is taken.
        std::string mantissa = written.substr(0, written.find('e'));
        if (mantissa.find('.') != std::string::npos) {
          mantissa.erase(mantissa.find_last_not_of('0') + 1);
          if (mantissa.ends_with('.')) mantissa.pop_back();
        }
        digits = fmt::format("{}e+{:02}", mantissa, exponent);
      } else if (digits.find('.') == std::string::npos && digits.find('e') == std::string::npos) {
        digits += ".0";
      }
    }
  } else {
    const char type = spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
    digits = format_magnitude(type == '%' ? magnitude * 100 : magnitude, type == '%' ? 'f' : type,
                              spec.precision < 0 ? 6 : spec.precision, spec.alternate);
    if (type == '%') digits += '%';
  }
  return numeric(negative, "", std::move(digits), spec, 3);
}

std::string format_integer(const Value& value, const FormatSpec& spec) {
  static constexpr std::string_view kReal = "eEfFgG%";
  if (spec.type != 0 && kReal.find(spec.type) != std::string_view::npos)
    return format_real(value.number(), spec);
  if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
  const std::int64_t number = value.whole();
  const bool negative = number < 0;
  const std::uint64_t magnitude =
      negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n': return numeric(negative, "", fmt::format("{}", magnitude), spec, 3);
    case 'x':
    case 'X':
    case 'o':
    case 'b': {
      if (spec.grouping == ',') fail(fmt::format("Cannot specify ',' with '{}'.", spec.type));
      const int base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : 16;
      const std::string prefix = spec.alternate ? std::string("0") + spec.type : "";
      return numeric(negative, prefix, digits_in_base(magnitude, base, spec.type == 'X'), spec, 4);
    }
    case 'c': {
      if (negative || magnitude > 0x10FFFF) fail("%c arg not in range(0x110000)");
      if (spec.sign != '-' || spec.alternate || spec.grouping != 0)
        fail("a sign or # is not allowed with 'c'");
      std::string character;
      append_character(character, static_cast<char32_t>(magnitude));
      return pad("", character, spec, '<');
    }
    default: fail(fmt::format("unknown format code '{}' for an int", spec.type));
  }
}

}  // namespace

std::string digits_in_base(std::uint64_t magnitude, int base, bool upper) {
  if (base == 2) return fmt::format("{:b}", magnitude);
  if (base == 8) return fmt::format("{:o}", magnitude);
  return upper ? fmt::format("{:X}", magnitude) : fmt::format("{:x}", magnitude);
}

std::string format_magnitude(double magnitude, char type, std::int64_t precision, bool alternate) {
  const bool upper = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(magnitude)) return upper ? "NAN" : "nan";
  if (std::isinf(magnitude)) return upper ? "INF" : "inf";
  if (precision > kMostDigits) fail(fmt::format("a format asks for {} digits", precision));
  const auto digits = static_cast<int>(precision);
  switch (type) {
    case 'e':
      return alternate ? fmt::format("{:#.{}e}", magnitude, digits)
                       : fmt::format("{:.{}e}", magnitude, digits);
    case 'E':
      return alternate ? fmt::format("{:#.{}E}", magnitude, digits)
                       : fmt::format("{:.{}E}", magnitude, digits);
    case 'g':
      return alternate ? fmt::format("{:#.{}g}", magnitude, digits)
                       : fmt::format("{:.{}g}", magnitude, digits);
    case 'G':
      return alternate ? fmt::format("{:#.{}G}", magnitude, digits)
                       : fmt::format("{:.{}G}", magnitude, digits);
    default:
      return alternate ? fmt::format("{:#.{}f}", magnitude, digits)
                       : fmt::format("{:.{}f}", magnitude, digits);
  }
}

FormatSpec parse_format_spec(std::string_view rest) {
  FormatSpec spec;
  if (!rest.empty()) {
    std::size_t at = 0;
    next_character(rest, at);
    if (at < rest.size() && is_alignment(static_cast<unsigned char>(rest[at]))) {
      spec.fill = std::string(rest.substr(0, at));
      spec.align = rest[at];
      rest.remove_prefix(at + 1);
    } else if (is_alignment(static_cast<unsigned char>(rest[0]))) {
      spec.align = rest[0];
      rest.remove_prefix(1);
    }
  }
  const bool fill_given = spec.fill != " ";
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-' || rest[0] == ' ')) {
    spec.sign = rest[0];
    rest.remove_prefix(1);
  }
  if (take(rest, 'z')) spec.negative_zero = true;
  if (take(rest, '#')) spec.alternate = true;
  if (take(rest, '0')) {
    spec.zero = true;
    if (!fill_given) spec.fill = "0";
  }
  spec.width = take_number(rest);
  if (take(rest, ',')) spec.grouping = ',';
  if (take(rest, '_')) {
    if (spec.grouping != 0) fail("Cannot specify both ',' and '_'.");
    spec.grouping = '_';
  }
  if (take(rest, '.')) {
    spec.precision = take_number(rest);
    if (spec.precision < 0) fail("Format specifier missing precision");
  }
  if (rest.size() > 1) fail("Invalid format specifier");
  if (!rest.empty()) spec.type = rest[0];
  if (spec.negative_zero) fail("the 'z' of a format is not supported");
  return spec;
}

std::string format_value(const Value& value, const FormatSpec& given) {
  FormatSpec spec = given;
  if (value.is(Type::real) || value.is_whole() || value.is(Type::wide)) {
    if (spec.zero && spec.align == 0) spec.align = '=';
    if (value.is(Type::real)) return format_real(value.number(), spec);
    if (value.is(Type::boolean) && (spec.type == 0 || spec.type == 's')) {
      const bool plain = spec.sign == '-' && !spec.alternate && spec.grouping == 0 && spec.width < 0 &&
                         spec.precision < 0 && spec.align == 0 && spec.type == 0;
      if (plain) return write(value);
    }
    if (value.is(Type::wide)) fail("a whole number of more than 64 bits is formatted");
    return format_integer(value, spec);
  }
  if (value.is_text()) return format_text(value.str(), spec);
  fail(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

}  // namespace assay::jinja
