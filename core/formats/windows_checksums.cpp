#include "core/formats/windows_checksums.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

namespace {

std::string with_slashes(std::string_view path) {
  if (path.size() >= 2 && path[1] == ':') path.remove_prefix(2);
  std::string name(path);
  std::replace(name.begin(), name.end(), '\\', '/');
  return name;
}

// "SHA256          4D7A…" -> the first word; `line` keeps what follows the blanks after it.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line = trim(line.substr(word.size()));
  return word;
}

bool is_algorithm_name(std::string_view word) {
  return word.starts_with("SHA") || word == "MD5" || word == "MD2" || word == "MD4" ||
         word == "MACTripleDES" || word == "RIPEMD160";
}

// "Hash      : 4D7A…" -> "4D7A…" for the key "Hash".
std::optional<std::string_view> property(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::string_view rest = trim(line.substr(key.size()));
  if (!rest.starts_with(':')) return std::nullopt;
  return trim(rest.substr(1));
}

// A certutil line of digits, whose pairs may be parted.
std::optional<std::string> digits(std::string_view line) {
  std::string hex;
  std::copy_if(line.begin(), line.end(), std::back_inserter(hex), [](char c) { return c != ' '; });
  const bool all = hex.size() >= 32 && std::all_of(hex.begin(), hex.end(), is_hex_digit);
  return all ? std::optional(hex) : std::nullopt;
}

std::optional<WindowsChecksum> certutil_title(std::string_view line) {
  if (!line.ends_with(':')) return std::nullopt;
  line.remove_suffix(1);
  const std::string_view algorithm = take_word(line);
  if (!is_algorithm_name(algorithm) || !line.starts_with("hash of ")) return std::nullopt;
  line.remove_prefix(std::string_view("hash of ").size());
  if (line.starts_with("file ")) line.remove_prefix(5);
  return WindowsChecksum{std::string(algorithm), {}, with_slashes(line)};
}

std::optional<WindowsChecksum> table_row(std::string_view line) {
  const std::string_view algorithm = take_word(line);
  const std::string_view hex = take_word(line);
  if (!is_algorithm_name(algorithm) || hex.size() < 32 ||
      !std::all_of(hex.begin(), hex.end(), is_hex_digit) || line.empty())
    return std::nullopt;
  return WindowsChecksum{std::string(algorithm), std::string(hex), with_slashes(line)};
}

bool is_decoration(std::string_view line) {
  if (line.starts_with("CertUtil: ")) return true;
  std::string_view rest = line;
  if (take_word(rest) == "Algorithm" && take_word(rest) == "Hash" && take_word(rest) == "Path") return true;
  return line.find_first_not_of("- ") == std::string_view::npos;
}

std::uint32_t unit_at(std::string_view bytes, std::size_t at, bool big_endian) {
  const auto first = static_cast<unsigned char>(bytes[at]),
             second = static_cast<unsigned char>(bytes[at + 1]);
  return big_endian ? first << 8 | second : second << 8 | first;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6), tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12), tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0);
  }
}

}  // namespace

bool WindowsChecksumReader::take(std::string_view text, std::optional<WindowsChecksum>& found) {
  const std::string_view line = trim(text);
  if (is_decoration(line)) return true;
  if (const auto algorithm = property(line, "Algorithm")) {
    open_ = WindowsChecksum{std::string(*algorithm), {}, {}};
    return true;
  }
  if (auto title = certutil_title(line)) {
    open_ = std::move(title);
    return true;
  }
  if (open_ && open_->name.empty()) {  // Format-List
    if (const auto hash = property(line, "Hash")) return open_->hex = *hash, true;
    if (const auto path = property(line, "Path"); path && !open_->hex.empty()) {
      open_->name = with_slashes(*path);
      found = std::exchange(open_, std::nullopt);
      return true;
    }
  } else if (open_) {  // certutil
    if (const auto hex = digits(line)) {
      open_->hex = *hex;
      found = std::exchange(open_, std::nullopt);
      return true;
    }
  }
  open_.reset();
  if (auto row = table_row(line)) {
    found = std::move(row);
    return true;
  }
  return false;
}

std::string utf8_of_utf16(std::string_view bytes, bool big_endian) {
  std::string text;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    std::uint32_t code = unit_at(bytes, i, big_endian);
    if (code >= 0xD800 && code <= 0xDFFF) {
      const std::uint32_t second = i + 3 < bytes.size() ? unit_at(bytes, i + 2, big_endian) : 0;
      if (code > 0xDBFF || second < 0xDC00 || second > 0xDFFF)
        throw Error::input("UTF-16 text has half a surrogate pair").at(i);
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
      i += 2;
    }
    append_utf8(text, code);
  }
  if (bytes.size() % 2 != 0) throw Error::input("UTF-16 text ends within a character").at(bytes.size() - 1);
  return text;
}

}  // namespace assay
