#include "refimpl/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

// ---------------------------------------------------------------------------------------- percent

class PercentFormat {
 public:
  PercentFormat(const Value& format, const Value& values)
      : rest_(format.str()), safe_(is_safe(format)), values_(values) {
    const auto* object = as<Range>(values);
    is_mapping_ = values.is(Type::list) || values.is_dict() || values.is_undefined() || object != nullptr;
  }

  Value run() {
    while (!rest_.empty()) {
      const std::size_t plain = std::min(rest_.find('%'), rest_.size());
      out_.append(rest_.substr(0, plain));
      rest_.remove_prefix(plain);
      if (!rest_.empty()) directive();
    }
    const std::size_t given = values_.is(Type::tuple) ? values_.items().size() : 1;
    if (used_ < given && !is_mapping_) fail("not all arguments converted during string formatting");
    return text(out_.take(), safe_);
  }

 private:
  char take() {
    if (rest_.empty()) fail("incomplete format");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  Value next_value() {
    if (values_.is(Type::tuple)) {
      if (used_ >= values_.items().size()) fail("not enough arguments for format string");
      return values_.items()[used_++];
    }
    if (used_ != 0) fail("not enough arguments for format string");
    used_ = 1;
    return values_;
  }

  Value named_value() {
    std::size_t end = 0;
    for (int depth = 1; depth != 0; ++end) {
      if (end >= rest_.size()) fail("incomplete format key");
      depth += rest_[end] == '(' ? 1 : rest_[end] == ')' ? -1 : 0;
    }
    const std::string key(rest_.substr(0, end - 1));
    rest_.remove_prefix(end);
    if (values_.is_undefined()) fail(static_cast<const Undefined*>(values_.object())->message);
    if (!values_.is_dict()) fail("format requires a mapping");
    const Value* found = values_.as_dict().find(std::string_view(key));
    if (found == nullptr) fail(fmt::format("the mapping of a format has no key '{}'", key));
    return *found;
  }

  std::int64_t number_or_star() {
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      const Value value = next_value();
      if (!value.is_whole()) fail("* wants int");
      return value.whole();
    }
    std::int64_t number = -1;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (take() - '0');
      if (number > (1 << 30)) fail("a format asks for too many digits");
    }
    return number;
  }

  void directive() {
    take();
    std::optional<Value> named;
    if (rest_.starts_with('(')) {
      take();
      named = named_value();
    }
    FormatSpec spec;
    bool left = false;
    for (; !rest_.empty() && std::string_view("-+ #0").find(rest_.front()) != std::string_view::npos;) {
      const char c = take();
      if (c == '-') left = true;
      if (c == '+' || (c == ' ' && spec.sign != '+')) spec.sign = c;
      if (c == '#') spec.alternate = true;
      if (c == '0') spec.zero = true;
    }
    spec.width = number_or_star();
    if (spec.width < -1) left = true, spec.width = -spec.width;
    if (rest_.starts_with('.')) {
      take();
      spec.precision = std::max<std::int64_t>(number_or_star(), 0);
    }
    while (!rest_.empty() && std::string_view("hlL").find(rest_.front()) != std::string_view::npos) take();
    const char type = take();
    if (type == '%') return out_.append("%");
    const Value value = named ? *named : next_value();
    spec.align = left ? '<' : '>';
    put(value, type, spec, left);
  }

  void put(const Value& value, char type, FormatSpec& spec, bool left) {
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        std::string shown = type == 's'   ? write(value)
                            : type == 'r' ? represent(value)
                                          : represent_ascii(value);
        if (safe_ && !(type == 's' && is_safe(value))) shown = escaped_for_html(shown);
        return put_text(std::move(shown), spec);
      }
      case 'c': return put_character(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X': return put_integer(value, type, spec, left);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return put_real(value, type, spec, left);
      default: fail(fmt::format("unsupported format character (0x{:x})", static_cast<unsigned char>(type)));
    }
  }

  void put_text(std::string shown, const FormatSpec& spec) {
    FormatSpec plain;
    plain.width = spec.width;
    plain.precision = spec.precision;
    plain.align = spec.align;
    out_.append(format_value(text(std::move(shown)), plain));
  }

  void put_character(const Value& value, const FormatSpec& spec) {
    FormatSpec plain = spec;
    plain.precision = -1;
    std::string character;
    if (value.is_text() && value.as_text().length == 1) {
      character = value.str();
    } else if (value.is_whole() && value.whole() >= 0 && value.whole() <= 0x10FFFF) {
      append_character(character, static_cast<char32_t>(value.whole()));
    } else {
      fail("%c requires int or char");
    }
    put_text(std::move(character), plain);
  }

  void put_padded(const std::string& sign, const std::string& digits, const FormatSpec& spec, bool left) {
    const auto size = static_cast<std::int64_t>(sign.size() + digits.size());
    const std::int64_t missing = std::max<std::int64_t>(spec.width - size, 0);
    if (Session::current() != nullptr) Session::current()->check_text(static_cast<std::size_t>(missing));
    const std::string fill(static_cast<std::size_t>(missing), spec.zero && !left ? '0' : ' ');
    out_.append(left ? sign + digits + fill : spec.zero ? sign + fill + digits : fill + sign + digits);
  }

  void put_integer(const Value& given, char type, const FormatSpec& spec, bool left) {
    Value value = given;
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (value.is_undefined()) fail(static_cast<const Undefined*>(value.object())->message);
    if (value.is(Type::real) && decimal) value = integer_of_real(value.number());
    if (value.is(Type::wide) && decimal) return put_text(represent(value), spec);
    if (!value.is_whole())
      fail(fmt::format("%{} format: a number is required, not {}", type, type_name(given)));
    const bool negative = value.whole() < 0;
    const std::uint64_t magnitude =
        negative ? 0 - static_cast<std::uint64_t>(value.whole()) : static_cast<std::uint64_t>(value.whole());
    std::string digits =
        decimal ? fmt::format("{}", magnitude) : digits_in_base(magnitude, type == 'o' ? 8 : 16, type == 'X');
    if (spec.precision > static_cast<std::int64_t>(digits.size())) {
      Session::current()->check_text(static_cast<std::size_t>(spec.precision));
      digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
    }
    std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    if (spec.alternate && !decimal) sign += std::string("0") + type;
    put_padded(sign, digits, spec, left);
  }

  void put_real(const Value& value, char type, const FormatSpec& spec, bool left) {
    if (value.is_undefined()) fail(static_cast<const Undefined*>(value.object())->message);
    if (!value.is_number()) fail(fmt::format("must be real number, not {}", type_name(value)));
    const double number = value.number();
    const bool negative = std::signbit(number) && !std::isnan(number);
    const std::string digits =
        format_magnitude(std::fabs(number), type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
    put_padded(negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign), digits, spec, left);
  }

  std::string_view rest_;
  bool safe_;
  const Value& values_;
  bool is_mapping_ = false;
  std::size_t used_ = 0;
  Buffer out_;
};

// ---------------------------------------------------------------------------------------- braces

class BraceFormat {
 public:
  BraceFormat(const Value& format, const Values& positional,
              const std::vector<std::pair<std::string, Value>>& named, const Value* mapping)
      : safe_(is_safe(format)), positional_(positional), named_(named), mapping_(mapping) {}

  std::string run(std::string_view rest, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    Buffer out;
    while (!rest.empty()) {
      const std::size_t plain = std::min(rest.find_first_of("{}"), rest.size());
      out.append(rest.substr(0, plain));
      rest.remove_prefix(plain);
      if (rest.empty()) break;
      if (rest.size() > 1 && rest[0] == rest[1]) {
        out.append(rest.substr(0, 1));
        rest.remove_prefix(2);
        continue;
      }
      if (rest[0] == '}') fail("Single '}' encountered in format string");
      rest.remove_prefix(1);
      const std::size_t end = end_of_field(rest);
      out.append(field(rest.substr(0, end), depth));
      rest.remove_prefix(end + 1);
    }
    return out.take();
  }

 private:
  // Of the brace that closes a field; those within it are of its format.
  static std::size_t end_of_field(std::string_view rest) {
    int open = 1;
    bool in_brackets = false, in_spec = false;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const char c = rest[i];
      if (!in_spec && c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (in_brackets) continue;
      if (c == ':' || c == '!') in_spec = true;
      open += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (open == 0) return i;
    }
    fail("expected '}' before end of string");
  }

  std::string field(std::string_view whole, int depth) {
    std::size_t end = 0;
    for (bool in_brackets = false; end < whole.size(); ++end) {
      if (whole[end] == '[') in_brackets = true;
      if (whole[end] == ']') in_brackets = false;
      if (!in_brackets && (whole[end] == '{' || whole[end] == '}')) fail("unexpected '{' in field name");
      if (!in_brackets && (whole[end] == ':' || whole[end] == '!')) break;
    }
    const std::string_view name = whole.substr(0, end);
    std::string_view rest = whole.substr(end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2) fail("end of string while looking for conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
      if (!rest.empty() && rest.front() != ':') fail("expected ':' after conversion specifier");
    }
    const std::string_view spec = rest.empty() ? rest : rest.substr(1);
    Value value = look_up(name);
    if (conversion == 'r') value = text(represent(value));
    if (conversion == 's') value = text(write(value));
    if (conversion == 'a') value = text(represent_ascii(value));
    if (conversion != 0 && std::string_view("rsa").find(conversion) == std::string_view::npos)
      fail(fmt::format("Unknown conversion specifier '{}'", conversion));
    return put(value, run(spec, depth - 1));
  }

  std::string put(const Value& value, const std::string& spec) const {
    if (safe_ && is_safe(value)) {
      if (!spec.empty()) fail("Unsupported format specification for Markup.");
      return value.str();
    }
    const std::string shown = spec.empty() ? write(value) : format_value(value, parse_format_spec(spec));
    return safe_ ? escaped_for_html(shown) : shown;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  static Value number_of(std::string_view digits) {
    const auto number = parse_integer(digits, 10);
    if (!number || !number->is(Type::integer)) fail("Too many decimal digits in format string");
    return *number;
  }

  Value look_up(std::string_view name) {
    std::string first(name.substr(0, name.find_first_of(".[")));
    std::string_view rest = name.substr(first.size());
    if (name.empty()) {
      if (manual_) fail("cannot switch from manual field specification to automatic field numbering");
      first = fmt::format("{}", automatic_++);
    } else if (is_number(name)) {
      if (automatic_ != 0) fail("cannot switch from automatic field numbering to manual field specification");
      manual_ = true;
    }
    Value value = is_number(first) ? positional_value(number_of(first)) : named_value(first);
    while (!rest.empty()) {
      if (rest.front() == '.') {
        const std::size_t end = std::min(rest.find_first_of(".[", 1), rest.size());
        if (end == 1) fail("Empty attribute in format string");
        value = get_attribute(value, rest.substr(1, end - 1));
        rest.remove_prefix(end);
        continue;
      }
      const std::size_t end = rest.find(']');
      if (rest.front() != '[') fail("Only '.' or '[' may follow ']' in format field specifier");
      if (end == std::string_view::npos) fail("Missing ']' in format string");
      const std::string_view key = rest.substr(1, end - 1);
      if (key.empty()) fail("Empty attribute in format string");
      value = get_item(value, is_number(key) ? number_of(key) : text(std::string(key)));
      rest.remove_prefix(end + 1);
    }
    return value;
  }

  Value positional_value(const Value& index) const {
    const auto at = static_cast<std::size_t>(index.whole());
    if (mapping_ != nullptr || at >= positional_.size())
      fail(fmt::format("Replacement index {} out of range for positional args tuple", at));
    return positional_[at];
  }

  Value named_value(const std::string& name) const {
    if (mapping_ != nullptr) {
      if (mapping_->is_undefined()) fail(static_cast<const Undefined*>(mapping_->object())->message);
      const Value* found = mapping_->is_dict() ? mapping_->as_dict().find(std::string_view(name)) : nullptr;
      if (found == nullptr) fail(fmt::format("the mapping of a format has no key '{}'", name));
      return *found;
    }
    for (const auto& [known, value] : named_) {
      if (known == name) return value;
    }
    fail(fmt::format("a format names '{}', which it is not given", name));
  }

  bool safe_;
  const Values& positional_;
  const std::vector<std::pair<std::string, Value>>& named_;
  const Value* mapping_;
  std::size_t automatic_ = 0;
  bool manual_ = false;
};

}  // namespace

Value percent_format(const Value& format, const Value& values) {
  return PercentFormat(format, values).run();
}

Value brace_format(Session& session, const Value& format, const Values& positional,
                   const std::vector<std::pair<std::string, Value>>& named, const Value* mapping) {
  session.work(1);
  return text(BraceFormat(format, positional, named, mapping).run(format.str(), 2), is_safe(format));
}

std::string represent_ascii(const Value& value) {
  const std::string shown = represent(value);
  std::string ascii;
  for (std::size_t at = 0; at < shown.size();) {
    const auto c = static_cast<std::uint32_t>(next_character(shown, at));
    if (c < 0x80) {
      ascii += static_cast<char>(c);
    } else {
      ascii += c < 0x100     ? fmt::format("\\x{:02x}", c)
               : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                             : fmt::format("\\U{:08x}", c);
    }
  }
  return ascii;
}

}  // namespace assay::jinja
