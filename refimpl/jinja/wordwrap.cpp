// The filter wordwrap: Python's textwrap.wrap on each line, blanks kept as they are.
#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

using Characters = std::u32string;

// textwrap knows the white space of ASCII only.
bool is_blank(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D);
}
bool is_letter_of_word(char32_t c) {
  return is_word(c) && !is_decimal(c) && !is_digit(c);
}
bool is_punctuated_word(char32_t c) {  // [\w!"'&.,?]
  return is_word(c) || Characters(U"!\"'&.,?").find(c) != Characters::npos;
}

class Chunks {
 public:
  Chunks(Characters line, bool on_hyphens) : line_(std::move(line)), on_hyphens_(on_hyphens) {}

  std::vector<Characters> run() {
    for (std::size_t at = 0; at < line_.size();) {
      const std::size_t end = on_hyphens_ ? chunk_end(at) : simple_end(at);
      chunks_.push_back(line_.substr(at, end - at));
      at = end;
    }
    return std::move(chunks_);
  }

 private:
  bool blank(std::size_t at) const { return at < line_.size() && is_blank(line_[at]); }
  bool letter(std::size_t at) const { return at < line_.size() && is_letter_of_word(line_[at]); }
  bool word(std::size_t at) const { return at < line_.size() && is_word(line_[at]); }

  std::size_t simple_end(std::size_t at) const {
    const bool blanks = blank(at);
    while (at < line_.size() && is_blank(line_[at]) == blanks) ++at;
    return at;
  }

  std::size_t dashes(std::size_t at) const {
    std::size_t end = at;
    while (end < line_.size() && line_[end] == '-') ++end;
    return end - at;
  }

  // Where a long dash stands between words: two hyphens or more, behind a word and before one.
  bool em_dash_at(std::size_t at, std::size_t& end) const {
    const std::size_t count = dashes(at);
    if (count < 2 || at == 0 || !is_punctuated_word(line_[at - 1]) || !word(at + count)) return false;
    end = at + count;
    return true;
  }

  std::size_t chunk_end(std::size_t at) const {
    if (blank(at)) return simple_end(at);
    std::size_t dash_end = 0;
    if (em_dash_at(at, dash_end)) return dash_end;
    // A word, possibly cut behind a hyphen between letters, or before a long dash.
    for (std::size_t end = at + 1;; ++end) {
      if (end >= line_.size() || blank(end)) return end;
      std::size_t behind = 0;
      if (em_dash_at(end, behind)) return end;
      if (line_[end - 1] == '-' && hyphen_cuts(end)) return end;
    }
  }

  // Behind a hyphen: two letters before it (or a letter, a hyphen, a letter), a letter and a letter or hyphen after.
  bool hyphen_cuts(std::size_t end) const {
    const std::size_t hyphen = end - 1;
    const bool before = (hyphen >= 2 && letter(hyphen - 1) && letter(hyphen - 2)) ||
                        (hyphen >= 3 && letter(hyphen - 1) && line_[hyphen - 2] == '-' && letter(hyphen - 3));
    const bool after = letter(end) && (letter(end + 1) ||
                                       (end + 2 < line_.size() && line_[end + 1] == '-' && letter(end + 2)));
    return before && after;
  }

  Characters line_;
  bool on_hyphens_;
  std::vector<Characters> chunks_;
};

bool is_all_blank(const Characters& chunk) {
  return std::all_of(chunk.begin(), chunk.end(), [](char32_t c) { return is_space(c); });
}

struct WrapStyle {
  std::size_t width = 79;
  bool break_long = true, on_hyphens = true;
};

std::vector<Characters> wrap_line(const Characters& line, const WrapStyle& style) {
  std::vector<Characters> chunks = Chunks(line, style.on_hyphens).run();
  std::reverse(chunks.begin(), chunks.end());
  std::vector<Characters> lines;
  while (!chunks.empty()) {
    count_work(1);
    std::vector<Characters> current;
    std::size_t length = 0;
    if (!lines.empty() && is_all_blank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().size() <= style.width) {
      length += chunks.back().size();
      current.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > style.width) {
      Characters& word = chunks.back();
      std::size_t left = style.width - length;
      if (style.break_long) {
        const std::size_t hyphen =
            style.on_hyphens && word.size() > left && left > 0 ? word.rfind(U'-', left - 1) : word.npos;
        const bool at_hyphen = hyphen != word.npos && hyphen > 0 && word.find_first_not_of(U'-') < hyphen;
        if (at_hyphen) left = hyphen + 1;
        current.push_back(word.substr(0, left));
        word = word.substr(left);
      } else if (current.empty()) {
        current.push_back(std::move(word));
        chunks.pop_back();
      }
    }
    if (!current.empty() && is_all_blank(current.back())) current.pop_back();
    if (current.empty()) continue;
    Characters joined;
    for (const Characters& each : current) joined += each;
    lines.push_back(std::move(joined));
  }
  return lines;
}

}  // namespace

Value wordwrap(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound =
      bind("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0);
  WrapStyle style;
  if (!bound[0].is_missing()) {
    const std::int64_t width = whole_argument(bound[0]);
    style.width = static_cast<std::size_t>(std::max<std::int64_t>(width, 0));
  }
  style.break_long = bound[1].is_missing() || truth(bound[1]);
  style.on_hyphens = bound[3].is_missing() || truth(bound[3]);
  const std::string between =
      bound[2].is_missing() || bound[2].is_none() ? "\n" : text_argument("wordwrap", bound[2]);
  if (subject.is_undefined()) fail(static_cast<const Undefined*>(subject.object())->message);
  Buffer out;
  bool first = true;
  for (const std::string_view line : split_lines(text_argument("wordwrap", subject), false)) {
    const std::vector<char32_t> all = characters(line);
    if (style.width == 0) fail("wordwrap: the width has to be above 0");
    bool first_of_line = true;
    if (!first) out.append(between);
    first = false;
    for (const Characters& wrapped : wrap_line(Characters(all.begin(), all.end()), style)) {
      if (!first_of_line) out.append(between);
      first_of_line = false;
      out.append(from_characters({wrapped.begin(), wrapped.end()}));
    }
  }
  return text(out.take());
}

}  // namespace assay::jinja
