// Filters that make or change numbers.
#include <fmt/format.h>

#include <cmath>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"

namespace assay::jinja {
namespace {

Value abs_filter(Session&, const Value& subject, const Arguments& arguments) {
  positional("abs", arguments, 0, 0);
  if (subject.is(Type::real)) return Value::of_real(std::fabs(subject.number()));
  if (subject.is_whole() && subject.whole() >= 0) return Value::of_integer(subject.whole());
  if (subject.is_whole()) return negated(subject);
  if (subject.is(Type::wide)) return represent(subject).starts_with('-') ? negated(subject) : subject;
  fail(fmt::format("bad operand type for abs(): '{}'", type_name(subject)));
}

// As float(): nullopt for what Python raises TypeError or ValueError on.
std::optional<double> real_of(const Value& value) {
  if (value.is_undefined()) fail(static_cast<const Undefined*>(value.object())->message);
  if (value.is_number()) return value.number();
  if (value.is_text()) return parse_real(value.str());
  if (value.is(Type::wide)) {
    const auto number = parse_real(represent(value));
    if (number && std::isinf(*number)) fail("int too large to convert to float");
    return number;
  }
  return std::nullopt;
}

Value float_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("float", arguments, {"default"}, 0);
  if (const auto number = real_of(subject)) return Value::of_real(*number);
  return bound[0].is_missing() ? Value::of_real(0) : bound[0];
}

Value int_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("int", arguments, {"default", "base"}, 0);
  const Value otherwise = bound[0].is_missing() ? Value::of_integer(0) : bound[0];
  if (subject.is_whole()) return Value::of_integer(subject.whole());
  if (subject.is(Type::wide)) return subject;
  if (subject.is(Type::real))
    return std::isnan(subject.number()) ? otherwise : integer_of_real(subject.number());
  if (subject.is_text() && (bound[1].is_missing() || bound[1].is_whole())) {
    const std::int64_t base = bound[1].is_missing() ? 10 : bound[1].whole();
    const bool valid = base == 0 || (base >= 2 && base <= 36);
    if (const auto number = valid ? parse_integer(subject.str(), base) : std::nullopt) return *number;
  }
  const auto real = real_of(subject);  // "42.23" is 42
  return real && std::isfinite(*real) ? integer_of_real(*real) : otherwise;
}

Value rounded_whole(const Value& subject, std::int64_t precision) {
  if (precision >= 0) return Value::of_integer(subject.whole());
  if (precision < -18) return Value::of_integer(0);
  std::int64_t unit = 1;
  for (std::int64_t i = precision; i < 0; ++i) unit *= 10;
  const std::int64_t rest = ((subject.whole() % unit) + unit) % unit;
  const __int128 low = static_cast<__int128>(subject.whole()) - rest;
  const bool up = rest > unit / 2 || (rest == unit / 2 && (low / unit) % 2 != 0);
  const __int128 result = low + (up ? unit : 0);
  if (result > INT64_MAX || result < INT64_MIN) fail("a whole number goes beyond 64 bits");
  return Value::of_integer(static_cast<std::int64_t>(result));
}

Value round_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("round", arguments, {"precision", "method"}, 0);
  const std::string method = bound[1].is_missing() ? "common" : bound[1].is_text() ? bound[1].str() : "";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("round: method must be common, ceil or floor");
  if (!subject.is_number()) fail(fmt::format("round: type {} cannot be rounded", type_name(subject)));
  if (method == "common") {
    if (!bound[0].is_missing() && bound[0].is_none()) {
      if (subject.is_whole()) return Value::of_integer(subject.whole());
      return integer_of_real(round_to(subject.number(), 0));
    }
    const std::int64_t precision = bound[0].is_missing() ? 0 : whole_argument(bound[0]);
    if (subject.is_whole()) return rounded_whole(subject, precision);
    return Value::of_real(round_to(subject.number(), precision));
  }
  const Value precision = bound[0].is_missing() ? Value::of_integer(0) : bound[0];
  const Value unit = compute(Operator::power, Value::of_integer(10), precision);
  const Value scaled = compute(Operator::multiply, subject, unit);
  if (scaled.is_whole()) return compute(Operator::divide, scaled, unit);
  const double number = scaled.number();
  const Value whole = integer_of_real(method == "ceil" ? std::ceil(number) : std::floor(number));
  if (whole.is(Type::wide))
    return Value::of_real((method == "ceil" ? std::ceil(number) : std::floor(number)) / unit.number());
  return compute(Operator::divide, whole, unit);
}

Value filesizeformat_filter(Session&, const Value& subject, const Arguments& arguments) {
  static constexpr std::string_view kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  static constexpr std::string_view kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  const Values bound = bind("filesizeformat", arguments, {"binary"}, 0);
  const auto bytes = real_of(subject);
  if (!bytes) fail("filesizeformat: this is no number");
  const double base = flag(bound[0]) ? 1024 : 1000;
  if (*bytes == 1) return text("1 Byte");
  if (*bytes < base) return text(represent(integer_of_real(*bytes)) + " Bytes");
  double unit = base;
  std::size_t i = 0;
  do unit *= base;
  while (!(*bytes < unit) && ++i < 8);
  i = std::min<std::size_t>(i, 7);
  const std::string_view prefix = flag(bound[0]) ? kBinary[i] : kDecimal[i];
  return text(fmt::format("{:.1f} {}", base * *bytes / unit, prefix));
}

constexpr std::pair<std::string_view, Filter> kNumberFilters[] = {{"abs", &abs_filter},
                                                                  {"filesizeformat", &filesizeformat_filter},
                                                                  {"float", &float_filter},
                                                                  {"int", &int_filter},
                                                                  {"round", &round_filter}};

}  // namespace

Filter number_filter(std::string_view name) {
  for (const auto& [known, filter] : kNumberFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace assay::jinja
