// Python's operators on numbers, and on strings, lists and tuples where it has them.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "refimpl/jinja/format.h"
#include "refimpl/jinja/unicode.h"
#include "refimpl/jinja/value.h"

namespace assay::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()", "and", "or"};

[[noreturn]] void unsupported(Operator op, const Value& a, const Value& b) {
  fail(fmt::format("unsupported operand types for {}: '{}' and '{}'", kSigns[static_cast<int>(op)],
                   type_name(a), type_name(b)));
}

[[noreturn]] void too_wide() {
  fail("a whole number goes beyond 64 bits");
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == -1 && a == INT64_MIN) too_wide();
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// As CPython's float_divmod.
double real_remainder(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((b < 0) != (r < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

double real_floor_quotient(double a, double b) {
  const double r = std::fmod(a, b);
  double quotient = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value power_of_integers(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value::of_real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_wide();
    exponent >>= 1;
    if (exponent != 0 && __builtin_mul_overflow(base, base, &base)) too_wide();
  }
  return Value::of_integer(result);
}

Value compute_integers(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) too_wide();
      return Value::of_integer(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) too_wide();
      return Value::of_integer(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) too_wide();
      return Value::of_integer(result);
    case Operator::divide:
      if (b == 0) fail("division by zero");
      // Rounded once: 64 bits of mantissa hold both, their quotient is then rounded to 53.
      return Value::of_real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Operator::floor_divide:
      if (b == 0) fail("integer division or modulo by zero");
      return Value::of_integer(floor_quotient(a, b));
    case Operator::modulo:
      if (b == 0) fail("integer modulo by zero");
      return Value::of_integer(floor_remainder(a, b));
    default: return power_of_integers(a, b);
  }
}

double power_of_reals(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    fail("a complex number, which templates here do not have");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("the result of ** is too large");
  return result;
}

Value compute_reals(Operator op, double a, double b) {
  const bool divides = op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0) fail("float division by zero");
  switch (op) {
    case Operator::add: return Value::of_real(a + b);
    case Operator::subtract: return Value::of_real(a - b);
    case Operator::multiply: return Value::of_real(a * b);
    case Operator::divide: return Value::of_real(a / b);
    case Operator::floor_divide: return Value::of_real(real_floor_quotient(a, b));
    case Operator::modulo: return Value::of_real(real_remainder(a, b));
    default: return Value::of_real(power_of_reals(a, b));
  }
}

// Markup escapes what is put together with it.
Value joined_texts(const Value& a, const Value& b) {
  const bool safe = is_safe(a) || is_safe(b);
  const auto part = [&](const Value& v) { return safe && !is_safe(v) ? escaped_for_html(v.str()) : v.str(); };
  Buffer out;
  out.append(part(a));
  out.append(part(b));
  return text(out.take(), safe);
}

Value joined_lists(const Value& a, const Value& b) {
  Values items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Type::list) ? list(std::move(items)) : tuple(std::move(items));
}

Value repeated(const Value& of, std::int64_t times) {
  const std::uint64_t count = times > 0 ? static_cast<std::uint64_t>(times) : 0;
  Session* session = Session::current();
  std::uint64_t bytes = 0;
  const std::uint64_t each = of.is_text() ? of.str().size() : of.items().size() * sizeof(Value);
  if (__builtin_mul_overflow(count, each, &bytes)) fail("a text or list that repeats beyond all memory");
  if (session != nullptr) {
    session->charge(bytes);
    session->refund(bytes);
    session->work(bytes / 64);
  }
  if (each == 0) return of;
  if (of.is_text()) {
    std::string out;
    out.reserve(bytes);
    for (std::uint64_t i = 0; i < count; ++i) out += of.str();
    return text(std::move(out), of.as_text().safe);
  }
  Values items;
  items.reserve(of.items().size() * count);
  for (std::uint64_t i = 0; i < count; ++i) items.insert(items.end(), of.items().begin(), of.items().end());
  return of.is(Type::list) ? list(std::move(items)) : tuple(std::move(items));
}

}  // namespace

Value compute(Operator op, const Value& a, const Value& b) {
  if (op == Operator::modulo && a.is_text()) return percent_format(a, b);
  if (a.is_undefined()) fail(static_cast<const Undefined*>(a.object())->message);
  if (b.is_undefined()) fail(static_cast<const Undefined*>(b.object())->message);
  if (a.is_whole() && b.is_whole()) return compute_integers(op, a.whole(), b.whole());
  if (a.is_number() && b.is_number()) return compute_reals(op, a.number(), b.number());
  if ((a.is(Type::wide) && (b.is(Type::wide) || b.is_number())) || (b.is(Type::wide) && a.is_number()))
    too_wide();
  if (op == Operator::add) {
    if (a.is_text() && b.is_text()) return joined_texts(a, b);
    if (a.type() == b.type() && a.is_sequence()) return joined_lists(a, b);
  }
  if (op == Operator::multiply) {
    if ((a.is_text() || a.is_sequence()) && b.is_whole()) return repeated(a, b.whole());
    if ((b.is_text() || b.is_sequence()) && a.is_whole()) return repeated(b, a.whole());
  }
  unsupported(op, a, b);
}

Value negated(const Value& a) {
  if (a.is_undefined()) fail(static_cast<const Undefined*>(a.object())->message);
  if (a.is(Type::real)) return Value::of_real(-a.number());
  if (a.is_whole()) return compute_integers(Operator::subtract, 0, a.whole());
  if (a.is(Type::wide)) {
    const std::string& digits = static_cast<const WideInteger*>(a.object())->digits;
    return wide(digits.starts_with('-') ? digits.substr(1) : "-" + digits);
  }
  fail(fmt::format("bad operand type for unary -: '{}'", type_name(a)));
}

Value unchanged(const Value& a) {
  if (a.is_undefined()) fail(static_cast<const Undefined*>(a.object())->message);
  if (a.is_whole()) return Value::of_integer(a.whole());
  if (a.is(Type::real) || a.is(Type::wide)) return a;
  fail(fmt::format("bad operand type for unary +: '{}'", type_name(a)));
}

// Half to even on the number as it is, not as it prints: the decimal is written exactly and read back.
double round_to(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const std::string written = fmt::format("{:.{}f}", value, static_cast<int>(digits));
    return std::strtod(written.c_str(), nullptr);
  }
  // To tens, hundreds …: the first digits of the number written in full, rounded half to even.
  std::string whole = fmt::format("{:.{}f}", std::fabs(value), 1074);
  const std::size_t point = whole.find('.');
  const auto keep = static_cast<std::int64_t>(point) + digits;
  if (keep < 0) return std::copysign(0.0, value);
  const auto kept = static_cast<std::size_t>(keep);
  const char next = whole[kept];
  const bool beyond = whole.find_first_not_of("0.", kept + 1) != std::string::npos;
  const bool odd = kept > 0 && ((whole[kept - 1] - '0') & 1) != 0;
  const bool up = next > '5' || (next == '5' && (beyond || odd));
  std::string head = "0" + whole.substr(0, kept);
  for (std::size_t i = head.size(); up && i-- > 0;) {
    if (head[i] != '9') {
      ++head[i];
      break;
    }
    head[i] = '0';
  }
  const double magnitude = std::strtod((head + std::string(point - kept, '0')).c_str(), nullptr);
  if (std::isinf(magnitude)) fail("rounded value too large to represent");
  return std::copysign(magnitude, value);
}

Value integer_of_real(double value) {
  if (std::isnan(value)) fail("cannot convert float NaN to integer");
  if (std::isinf(value)) fail("cannot convert float infinity to integer");
  if (std::fabs(value) < 9.2e18) return Value::of_integer(static_cast<std::int64_t>(value));
  return wide(fmt::format("{:.0f}", std::trunc(value)));
}

namespace {

// Digits with single underscores between them; nullopt where something else is there.
std::optional<std::string> without_underscores(std::string_view text, bool leading_allowed) {
  std::string digits;
  bool underscore = !leading_allowed;
  for (const char c : text) {
    if (c == '_') {
      if (underscore) return std::nullopt;
      underscore = true;
      continue;
    }
    underscore = false;
    digits += c;
  }
  if (underscore || digits.empty()) return std::nullopt;
  return digits;
}

// Decimal digits of other scripts are digits to int() and float().
std::string with_ascii_digits(std::string_view utf8) {
  std::string plain;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    const char32_t c = next_character(utf8, at);
    if (c < 0x80 || !is_decimal(c)) {
      plain += utf8.substr(begin, at - begin);
      continue;
    }
    char32_t zero = c;  // they come in runs of ten
    while (zero > 0 && is_decimal(zero - 1) && c - zero < 9) --zero;
    plain += static_cast<char>('0' + (c - zero) % 10);
  }
  return plain;
}

}  // namespace

std::optional<Value> parse_integer(std::string_view utf8, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
  const std::string plain = with_ascii_digits(utf8);
  std::string_view rest = stripped(plain, Side::both);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const auto prefix_base = [&]() -> std::int64_t {
    if (rest.size() < 2 || rest[0] != '0') return 0;
    const char letter = static_cast<char>(rest[1] | 0x20);
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }();
  const bool prefixed = prefix_base != 0 && (base == 0 || base == prefix_base);
  if (prefixed) rest.remove_prefix(2);
  const std::int64_t radix = base != 0 ? base : prefixed ? prefix_base : 10;
  const auto digits = without_underscores(rest, prefixed);
  if (!digits) return std::nullopt;
  if (base == 0 && !prefixed && digits->size() > 1 && digits->front() == '0' &&
      digits->find_first_not_of('0') != std::string::npos)
    return std::nullopt;  // 010 is neither octal nor decimal
  __int128 value = 0;
  bool large = false;
  for (const char c : *digits) {
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= radix) return std::nullopt;
    if (!large) value = value * radix + digit;
    large = large || value > INT64_MAX;
  }
  if (large && radix == 10) {
    if (digits->size() > 4300) return std::nullopt;  // Python's limit
    return wide((negative ? "-" : "") + *digits);
  }
  if (large) too_wide();
  const auto whole = static_cast<std::int64_t>(value);
  return Value::of_integer(negative ? -whole : whole);
}

std::optional<double> parse_real(std::string_view utf8) {
  const std::string plain = with_ascii_digits(utf8);
  std::string_view rest = stripped(plain, Side::both);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const double sign = negative ? -1.0 : 1.0;
  const std::string word = to_lower(rest);
  if (word == "inf" || word == "infinity") return sign * HUGE_VAL;
  if (word == "nan") return std::copysign(std::nan(""), sign);
  // An underscore has to stand between digits.
  std::string digits;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const auto is_digit_at = [&](std::size_t at) {
      return at < rest.size() && rest[at] >= '0' && rest[at] <= '9';
    };
    if (rest[i] != '_') {
      digits += rest[i];
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  const auto begins = digits.find_first_of("0123456789.");
  if (digits.empty() || begins != 0) return std::nullopt;
  char* end = nullptr;
  if (digits.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size()) return std::nullopt;
  return sign * value;
}

}  // namespace assay::jinja
