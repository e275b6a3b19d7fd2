#include "verify/signature/encoding.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::signature {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Two digits of a time stamp at `at`.
int two_digits(std::string_view text, std::size_t at) {
  const auto number = parse_u64(text.substr(at, 2));
  if (!number) throw Error::input(fmt::format("'{}' is not a time in UTC", text));
  return static_cast<int>(*number);
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < n ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::size_t digits = 4;
    if (i + 4 == text.size()) {
      while (digits > 2 && text[i + digits - 1] == '=') --digits;
    }
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < digits; ++k) {
      const int value = value_of(text[i + k]);
      if (value < 0) return std::nullopt;
      group |= static_cast<std::uint32_t>(value) << (18 - 6 * k);
    }
    for (std::size_t k = 0; k + 1 < digits; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 0xFF);
    const std::uint32_t beyond = digits == 4 ? 0 : digits == 3 ? 0xFF : 0xFFFF;
    if ((group & beyond) != 0) return std::nullopt;
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string hex(std::string_view bytes) {
  return to_hex(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

std::optional<std::string> from_hex(std::string_view digits) {
  std::string out(digits.size() / 2, '\0');
  if (digits.size() % 2 != 0 ||
      !assay::from_hex(digits, std::span(reinterpret_cast<std::uint8_t*>(out.data()), out.size())))
    return std::nullopt;
  return out;
}

std::int64_t parse_time_ms(std::string_view text) {
  const auto refuse = [&] { return Error::input(fmt::format("'{}' is not a time in UTC", text)); };
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size() || text.back() != 'Z') throw refuse();
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) throw refuse();
  }
  const std::chrono::year_month_day day(std::chrono::year(two_digits(text, 0) * 100 + two_digits(text, 2)),
                                        std::chrono::month(static_cast<unsigned>(two_digits(text, 5))),
                                        std::chrono::day(static_cast<unsigned>(two_digits(text, 8))));
  const int hour = two_digits(text, 11), minute = two_digits(text, 14), second = two_digits(text, 17);
  if (!day.ok() || hour > 23 || minute > 59 || second > 60) throw refuse();
  std::int64_t ms = std::chrono::sys_days(day).time_since_epoch().count() * 86'400'000LL;
  ms += (hour * 3600 + minute * 60 + second) * 1000LL;
  const std::string_view fraction = text.substr(kShape.size(), text.size() - kShape.size() - 1);
  if (fraction.empty()) return ms;
  if (fraction[0] != '.' || fraction.size() > 10 || !parse_u64(fraction.substr(1))) throw refuse();
  for (std::size_t i = 1, unit = 100; i < 4 && i < fraction.size(); ++i, unit /= 10)
    ms += static_cast<std::int64_t>(unit) * (fraction[i] - '0');
  return ms;
}

std::string show_time(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", std::chrono::sys_seconds(std::chrono::seconds(seconds)));
}

std::string pae(std::string_view type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", type.size(), type, payload.size(), payload);
}

std::string pae_of_first_release(std::string_view type, std::string_view payload) {
  const bool single = payload.find('\'') == payload.npos || payload.find('"') != payload.npos;
  const char quote = single ? '\'' : '"';
  std::string printed = {'b', quote};
  for (const char c : payload) {
    switch (c) {
      case '\n': printed += "\\n"; continue;
      case '\r': printed += "\\r"; continue;
      case '\t': printed += "\\t"; continue;
      case '\\': printed += "\\\\"; continue;
      default: break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote)
      printed += {'\\', c};
    else if (byte < 0x20 || byte >= 0x7F)
      printed += fmt::format("\\x{:02x}", byte);
    else
      printed += c;
  }
  printed += quote;
  return fmt::format("DSSEV1 {} {} {} {}", type.size(), type, payload.size(), printed);
}

}  // namespace assay::signature
