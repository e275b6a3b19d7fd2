#include "verify/pickle.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace assay {
namespace {

constexpr int kHighestProtocol = 5;

// What follows an opcode.
enum class Argument {
  none,
  line,       // text up to a newline
  number,     // a line that holds a number
  quoted,     // a line that holds a quoted string
  two_names,  // two lines: a module and a name in it
  fixed,      // so many bytes
  counted1,   // a length of 1, 4 or 8 bytes, and as many bytes
  counted4,
  counted8
};

// What it does to the stack: takes `pops` items, or everything down to the last mark and `pops` below it, and
// leaves `pushes`.
struct Opcode {
  Argument argument = Argument::none;
  std::size_t bytes = 0;  // of a fixed argument
  std::size_t pops = 0, pushes = 0;
  bool to_mark = false;
};

std::optional<Opcode> opcode_of(unsigned char code) {
  using enum Argument;
  switch (code) {
    case '(': return Opcode{};  // MARK, the walk's own affair
    case '0': return Opcode{none, 0, 1, 0};
    case '1': return Opcode{none, 0, 0, 0, true};
    case '2': return Opcode{none, 0, 1, 2};
    case 'F':
    case 'I':
    case 'L': return Opcode{number, 0, 0, 1};
    case 'J': return Opcode{fixed, 4, 0, 1};
    case 'K': return Opcode{fixed, 1, 0, 1};
    case 'M': return Opcode{fixed, 2, 0, 1};
    case 'G': return Opcode{fixed, 8, 0, 1};
    case 'N':
    case ')':
    case '}':
    case ']':
    case 0x88:
    case 0x89:
    case 0x8F:
    case 0x97: return Opcode{none, 0, 0, 1};
    case 'S': return Opcode{quoted, 0, 0, 1};
    case 'V':
    case 'P': return Opcode{line, 0, 0, 1};
    case 'T':
    case 'X':
    case 'B':
    case 0x8B: return Opcode{counted4, 0, 0, 1};
    case 'U':
    case 'C':
    case 0x8A:
    case 0x8C: return Opcode{counted1, 0, 0, 1};
    case 0x8D:
    case 0x8E:
    case 0x96: return Opcode{counted8, 0, 0, 1};
    case 'Q':
    case 0x85:
    case 0x98: return Opcode{none, 0, 1, 1};
    case 'R':
    case 'b':
    case 'a':
    case 0x81:
    case 0x86:
    case 0x93: return Opcode{none, 0, 2, 1};
    case 's':
    case 0x87:
    case 0x92: return Opcode{none, 0, 3, 1};
    case 'c': return Opcode{two_names, 0, 0, 1};
    case 'i': return Opcode{two_names, 0, 0, 1, true};
    case 'd':
    case 'l':
    case 't':
    case 'o':
    case 0x91: return Opcode{none, 0, 0, 1, true};
    case 'e':
    case 'u':
    case 0x90: return Opcode{none, 0, 1, 1, true};
    case 'g': return Opcode{number, 0, 0, 1};
    case 'h': return Opcode{fixed, 1, 0, 1};
    case 'j': return Opcode{fixed, 4, 0, 1};
    case 'p': return Opcode{number, 0, 1, 1};
    case 'q': return Opcode{fixed, 1, 1, 1};
    case 'r': return Opcode{fixed, 4, 1, 1};
    case 0x94: return Opcode{none, 0, 1, 1};
    case 0x80: return Opcode{fixed, 1, 0, 0};
    case 0x82: return Opcode{fixed, 1, 0, 1};
    case 0x83: return Opcode{fixed, 2, 0, 1};
    case 0x84: return Opcode{fixed, 4, 0, 1};
    case 0x95: return Opcode{fixed, 8, 0, 0};
    default: return std::nullopt;
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0 ||
           std::string_view("+-.eELinfa").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
  });
}

class PickleWalk {
 public:
  PickleWalk(std::span<const std::byte> head, bool whole)
      : text_(reinterpret_cast<const char*>(head.data()), head.size()), whole_(whole) {}

  bool sound() {
    std::size_t steps = 0;
    for (; at_ < text_.size(); ++steps) {
      const auto code = static_cast<unsigned char>(text_[at_++]);
      if (code == '.') return depth_ >= 1 && marks_.empty();  // STOP
      const auto opcode = opcode_of(code);
      if (!opcode || !take_argument(*opcode)) return false;
      if (cut_) break;
      if (code == '(')
        marks_.push_back(depth_);
      else if (!apply(*opcode))
        return false;
    }
    // No end seen: only of what goes on beyond the head, and not on the word of a few bytes.
    return !whole_ && steps >= 3;
  }

 private:
  bool apply(const Opcode& opcode) {
    if (opcode.to_mark) {
      if (marks_.empty()) return false;
      depth_ = marks_.back();
      marks_.pop_back();
    }
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (depth_ < floor + opcode.pops) return false;
    depth_ += opcode.pushes - opcode.pops;
    return true;
  }

  // Sets cut_ where the argument goes on beyond the head.
  bool take_argument(const Opcode& opcode) {
    switch (opcode.argument) {
      case Argument::none: return true;
      case Argument::fixed: return skip(opcode.bytes);
      case Argument::line: return take_line([](std::string_view) { return true; });
      case Argument::number: return take_line(is_number);
      case Argument::quoted: return take_line(is_quoted);
      case Argument::two_names: return take_line(is_name) && (cut_ || take_line(is_name));
      case Argument::counted1: return skip_counted(1);
      case Argument::counted4: return skip_counted(4);
      case Argument::counted8: return skip_counted(8);
    }
    return false;
  }

  bool skip(std::uint64_t bytes) {
    if (bytes <= text_.size() - at_) {
      at_ += static_cast<std::size_t>(bytes);
      return true;
    }
    cut_ = true;
    return !whole_;
  }

  bool skip_counted(std::size_t width) {
    if (text_.size() - at_ < width) return skip(width);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < width; ++i)
      count |= static_cast<std::uint64_t>(static_cast<unsigned char>(text_[at_ + i])) << (8 * i);
    at_ += width;
    return skip(count);
  }

  template <typename Accept>
  bool take_line(Accept accept) {
    const auto end = text_.find('\n', at_);
    if (end == std::string_view::npos) {
      cut_ = true;
      return !whole_;
    }
    std::string_view line = text_.substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at_ = end + 1;
    return accept(line);
  }

  const std::string_view text_;
  const bool whole_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::vector<std::size_t> marks_;  // the depth at each
  bool cut_ = false;
};

}  // namespace

bool looks_like_pickle(std::span<const std::byte> head, bool whole) {
  if (head.size() >= 2 && head[0] == std::byte{0x80} && head[1] >= std::byte{2} &&
      head[1] <= std::byte{kHighestProtocol}) {
    return true;
  }
  return PickleWalk(head, whole).sound();
}

}  // namespace assay
