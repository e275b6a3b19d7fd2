#include "core/system/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "core/system/utf8.h"

namespace assay {
namespace {

// C0, DEL, C1, and the characters that reorder or hide what follows them on a terminal.
bool must_escape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF || c == 0x2028 || c == 0x2029;
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continuation = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  char32_t code = 0, smallest = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2, code = lead & 0x1F, smallest = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, code = lead & 0x0F, smallest = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, code = lead & 0x07, smallest = 0x10000;
  } else {
    return {};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!continuation(i)) return {};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < smallest || code > 0x10FFFF || surrogate) return {};
  return {code, length};
}

std::string escape_for_terminal(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (plain) return std::string(text);
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character d = first_character(text);
    if (d.length == 0) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (!must_escape(d.code)) {
      escaped.append(text.substr(0, d.length));
    } else {
      if (d.code == '\n')
        escaped += "\\n";
      else if (d.code == '\r')
        escaped += "\\r";
      else if (d.code == '\t')
        escaped += "\\t";
      else if (d.code < 0x100)
        escaped += fmt::format("\\x{:02x}", static_cast<unsigned>(d.code));
      else
        escaped += fmt::format("\\u{{{:04x}}}", static_cast<unsigned>(d.code));
    }
    text.remove_prefix(d.length);
  }
  return escaped;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character d = first_character(text);
    if (d.length == 0) return false;
    text.remove_prefix(d.length);
  }
  return true;
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  static constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) value /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

std::string with_thousands(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

std::string human_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  if (seconds < 10) return fmt::format("{:.2f}s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::uint64_t parse_bytes(std::string_view text) {
  const auto bad = [&] {
    return Error::usage(fmt::format("'{}' is not a size", text)).remedy("write it as 16MiB, 48GB or 1048576");
  };
  std::size_t digits = 0;
  while (digits < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.')) {
    ++digits;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (digits == 0 || error != std::errc{} || end != text.data() + digits) throw bad();
  const std::string_view unit = trim(text.substr(digits));
  if (unit.empty() || unit == "B") {
    const auto exact = parse_u64(text.substr(0, digits));
    if (!exact) throw bad();
    return *exact;
  }
  static constexpr std::string_view kPrefixes = "KMGTP";
  const auto power = kPrefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  if (power == std::string_view::npos) throw bad();
  const std::string_view tail = unit.substr(1);
  double scale = 0;
  if (tail == "iB" || tail == "i")
    scale = 1024;
  else if (tail == "B" || tail.empty())
    scale = 1000;
  else
    throw bad();
  const double bytes = number * std::pow(scale, static_cast<double>(power) + 1);
  if (!(bytes < 18446744073709549568.0)) throw bad();
  return static_cast<std::uint64_t>(std::llround(std::min(bytes, 9.2e18)));
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::uint8_t b : bytes) {
    hex += kDigits[b >> 4];
    hex += kDigits[b & 15];
  }
  return hex;
}

bool from_hex(std::string_view hex, std::span<std::uint8_t> out) {
  if (hex.size() != out.size() * 2) return false;
  const auto nibble = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

std::string_view trim(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace assay
