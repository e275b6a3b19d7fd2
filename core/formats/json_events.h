// A JSON text as a stream of events: for headers and indexes of many megabytes, where a document would take
// ten times the memory and nlohmann's event parser ten times the time (measured: docs/formats.md). RFC 8259
// without leniency: no byte order mark, no NUL, no comment, no trailing comma, valid UTF-8, no lone
// surrogate, bounded depth.
//
// A handler has, for each event, a function: null(), boolean(bool), whole_number(u64), other_number(double, view)
// (negative, fractional or beyond 64 bits: its value, and its text), string(view), key(view), start_object(),
// end_object(), start_array(), end_array(); and [[noreturn]] fail(message), which may ask the reader for its position(). A view is good
// until the next event. A handler that has a bool enough() is asked it now and then: once it is true, nothing
// more is read. One whose bool python_numbers() is true gets a number for Python's Infinity, -Infinity and NaN, which no JSON
// has: ±1e308, and 0. One with a string_view repeated_value(key) is asked at each key: where the text goes on with that, which has
// to end where the next key of the same object begins, it gets repeat(key) in place of the key and the value.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/system/text.h"

namespace assay {

template <class Handler>
class JsonEventReader {
 public:
  JsonEventReader(std::string_view text, int max_depth, Handler& handler)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        max_depth_(max_depth),
        handler_(handler) {}

  std::uint64_t position() const { return static_cast<std::uint64_t>(at_ - begin_); }

  void read() {
    value();
    while (!open_.empty()) {
      if constexpr (requires { handler_.enough(); }) {
        if (handler_.enough()) return;
      }
      continue_container();
    }
    skip_blanks();
    if (at_ != end_) handler_.fail("trailing characters after the JSON text");
  }

 private:
  enum class Open : char { object, array };

  bool is_next(std::string_view text) const {
    return !text.empty() && text.size() <= static_cast<std::size_t>(end_ - at_) &&
           std::memcmp(at_, text.data(), text.size()) == 0;
  }

  // Indentation, eight at a time.
  void skip_blanks() {
    constexpr std::uint64_t kBlanks = 0x2020202020202020;
    std::uint64_t word = 0;
    if (at_ != end_ && *at_ == '\n') ++at_;
    while (end_ - at_ >= 8 && (std::memcpy(&word, at_, 8), word == kBlanks)) at_ += 8;
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  // The next character that is not blank, consumed.
  char next(const char* wanted) {
    skip_blanks();
    if (at_ == end_) handler_.fail(std::string("JSON text ends where ") + wanted + " should be");
    return *at_++;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void value() {
    switch (const char c = next("a value"); c) {
      case '{':
        open(Open::object);
        handler_.start_object();
        if (take('}'))
          close();
        else
          member();
        break;
      case '[':
        open(Open::array);
        handler_.start_array();
        if (take(']'))
          close();
        else
          value_follows_ = true;
        break;
      case '"': handler_.string(string()); break;
      case 't': literal("rue"), handler_.boolean(true); break;
      case 'f': literal("alse"), handler_.boolean(false); break;
      case 'n': literal("ull"), handler_.null(); break;
      default:
        if (python_number(c)) return;
        if (c != '-' && (c < '0' || c > '9')) unexpected();
        number();
    }
  }

  // One more value of the innermost container, or its end. No recursion: depth costs a byte a level.
  void continue_container() {
    if (std::exchange(value_follows_, false)) return value();
    const bool in_object = open_.back() == Open::object;
    switch (next(in_object ? "',' or '}'" : "',' or ']'")) {
      case ',':
        if (in_object)
          member();
        else
          value_follows_ = true;
        return;
      case '}':
        if (!in_object) unexpected();
        return close();
      case ']':
        if (in_object) unexpected();
        return close();
      default: unexpected();
    }
  }

  void member() {
    if (next("a key") != '"') unexpected();
    std::string_view key = string();
    if constexpr (requires { handler_.repeated_value(key); }) {
      for (std::string_view value; is_next(value = handler_.repeated_value(key)); key = string()) {
        handler_.repeat(key);
        at_ += value.size();
      }
    }
    handler_.key(key);
    if (next("':'") != ':') unexpected();
    value_follows_ = true;
  }

  void open(Open kind) {
    if (open_.size() >= static_cast<std::size_t>(max_depth_)) {
      handler_.fail("JSON text is nested more than " + std::to_string(max_depth_) + " levels deep");
    }
    open_.push_back(kind);
  }
  void close() {
    const Open kind = open_.back();
    open_.pop_back();
    if (kind == Open::object)
      handler_.end_object();
    else
      handler_.end_array();
  }

  [[noreturn]] void unexpected() {
    --at_;
    handler_.fail("JSON text has an unexpected character");
  }

  void literal(std::string_view rest) {
    for (const char wanted : rest) {
      if (at_ == end_ || *at_++ != wanted)
        handler_.fail("JSON text has a word other than true, false or null");
    }
  }

  bool python_number(char first) {
    if constexpr (requires { handler_.python_numbers(); }) {
      const bool negative = first == '-' && at_ != end_ && *at_ == 'I';
      if (!handler_.python_numbers() || (first != 'I' && first != 'N' && !negative)) return false;
      if (negative) ++at_;
      literal(first == 'N' ? "aN" : "nfinity");
      if (first == 'N')
        handler_.whole_number(0);
      else
        handler_.other_number(negative ? -1e308 : 1e308, negative ? "-1e308" : "1e308");
      return true;
    }
    return false;
  }

  bool at_digit() const { return at_ != end_ && *at_ >= '0' && *at_ <= '9'; }
  void digits() {
    if (!at_digit()) handler_.fail("JSON text has a malformed number");
    while (at_digit()) ++at_;
  }

  void number() {
    const char* const start = --at_;
    bool whole = *at_ != '-';
    if (!whole) ++at_;
    const char* const first = at_;
    digits();
    if (*first == '0' && at_ - first > 1) handler_.fail("JSON text has a number with a leading zero");
    std::uint64_t magnitude = 0;
    for (const char* p = first; p != at_ && whole; ++p) {
      whole = !__builtin_mul_overflow(magnitude, 10, &magnitude) &&
              !__builtin_add_overflow(magnitude, static_cast<std::uint64_t>(*p - '0'), &magnitude);
    }
    if (at_ != end_ && *at_ == '.') {
      whole = false;
      ++at_;
      digits();
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      whole = false;
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      digits();
    }
    if (whole) return handler_.whole_number(magnitude);
    handler_.other_number(real(start), std::string_view(start, static_cast<std::size_t>(at_ - start)));
  }

  // The nearest double. std::from_chars tells too large from too small by nothing; strtod gives an infinity and 0.
  double real(const char* start) {
    double value = 0;
    if (std::from_chars(start, at_, value).ec == std::errc::result_out_of_range)
      value = std::strtod(std::string(start, at_).c_str(), nullptr);
    if (!std::isfinite(value)) handler_.fail("JSON text has a number out of range");
    return value;
  }

  // Past characters that end no string and need no second look, sixteen at a time: neither a quote, nor a backslash, nor
  // a control character, nor part of a longer one (which is negative, as a signed byte).
  void skip_plain() {
    using Bytes = signed char __attribute__((vector_size(16)));
    for (Bytes bytes; end_ - at_ >= 16; at_ += 16) {
      std::memcpy(&bytes, at_, 16);
      const auto stops = (bytes == '"') | (bytes == '\\') | (bytes < 0x20);
      std::uint64_t halves[2];
      std::memcpy(halves, &stops, 16);
      if ((halves[0] | halves[1]) == 0) continue;
      if constexpr (std::endian::native == std::endian::little)
        at_ += (halves[0] != 0 ? std::countr_zero(halves[0]) : 64 + std::countr_zero(halves[1])) / 8;
      return;
    }
  }

  // The text up to the closing quote: a view of the input where it holds no escape.
  std::string_view string() {
    const char* const start = at_;
    bool escaped = false, ascii = true;
    skip_plain();
    for (;; ++at_) {
      if (at_ == end_) handler_.fail("JSON text ends within a string");
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') break;
      if (c < 0x20) handler_.fail("JSON text has a control character in a string");
      if (c >= 0x80) ascii = false;
      if (c != '\\') continue;
      escaped = true;
      if (++at_ == end_) handler_.fail("JSON text ends within a string");
    }
    const std::string_view raw(start, static_cast<std::size_t>(at_ - start));
    if (!ascii && !is_valid_utf8(raw)) handler_.fail("JSON text has a string that is not UTF-8");
    if (escaped) unescape(raw);
    ++at_;
    return escaped ? std::string_view(scratch_) : raw;
  }

  void unescape(std::string_view raw) {
    scratch_.clear();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        scratch_ += raw[i];
        continue;
      }
      static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      const char letter = raw[++i];
      if (const auto known = kLetters.find(letter); known != std::string_view::npos) {
        scratch_ += kMeanings[known];
      } else if (letter == 'u') {
        append_utf8(code_point(raw, i));
      } else {
        handler_.fail("JSON text has an unknown escape in a string");
      }
    }
  }

  // Of \uXXXX, or of a pair of them above U+FFFF; `i` goes from the u to the last digit.
  std::uint32_t code_point(std::string_view raw, std::size_t& i) {
    const std::uint32_t first = four_digits(raw, i);
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first <= 0xDBFF && raw.substr(i + 1).starts_with("\\u")) {
      i += 2;
      const std::uint32_t second = four_digits(raw, i);
      if (second >= 0xDC00 && second <= 0xDFFF) return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
    handler_.fail("JSON text has half a surrogate pair in a string");
  }

  std::uint32_t four_digits(std::string_view raw, std::size_t& i) {
    std::uint8_t bytes[2];
    if (!from_hex(raw.substr(std::min(i + 1, raw.size()), 4), bytes)) {
      handler_.fail("JSON text has a \\u escape without four hexadecimal digits");
    }
    i += 4;
    return static_cast<std::uint32_t>(bytes[0] << 8 | bytes[1]);
  }

  void append_utf8(std::uint32_t code) {
    const auto tail = [&](int shift) { scratch_ += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
      scratch_ += static_cast<char>(code);
    } else if (code < 0x800) {
      scratch_ += static_cast<char>(0xC0 | code >> 6), tail(0);
    } else if (code < 0x10000) {
      scratch_ += static_cast<char>(0xE0 | code >> 12), tail(6), tail(0);
    } else {
      scratch_ += static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0);
    }
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const int max_depth_;
  Handler& handler_;
  std::vector<Open> open_;
  bool value_follows_ = false;
  std::string scratch_;
};

}  // namespace assay
