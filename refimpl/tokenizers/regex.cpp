#define PCRE2_CODE_UNIT_WIDTH 8
#include "refimpl/tokenizers/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "core/system/error.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

constexpr std::size_t kMostPatternBytes = 64 << 10;  // the longest in use has some 3 kB
constexpr std::uint32_t kMatchLimit = 30'000'000;    // backtracking steps of one match
// Address space, touched only as far as a match needs it: some 50 bytes a character for `([ab])*`.
constexpr std::size_t kJitStackStart = 64 << 10, kJitStackMost = 512 << 20;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

template <class T>
Owned<T> checked(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return Owned<T>(made);
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// What a search needs, kept by the thread: a Regex may be shared, and a text's thousand pieces are searched
// one by one.
struct Search {
  Owned<pcre2_match_data> data = checked(pcre2_match_data_create(1, nullptr));
  Owned<pcre2_match_context> context = checked(pcre2_match_context_create(nullptr));
  Owned<pcre2_jit_stack> stack{
      pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr)};  // null: no JIT

  Search() {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Search& this_threads_search() {
  thread_local Search search;
  return search;
}

}  // namespace

struct Regex::Compiled {
  std::string source;
  Owned<pcre2_code> code;
  bool jit = false;

  // `text` is valid UTF-8; false: no match from `start` on.
  bool match(std::string_view text, std::size_t start, Search& search) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int result = jit ? pcre2_jit_match(code.get(), subject, text.size(), start, 0, search.data.get(),
                                             search.context.get())
                           : pcre2_match(code.get(), subject, text.size(), start, PCRE2_NO_UTF_CHECK,
                                         search.data.get(), search.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) {
      throw Error::input(fmt::format("pre-tokenizer pattern '{}' fails on this text: {}",
                                     source.substr(0, 120), message_of(result)))
          .remedy("cut the text into smaller pieces, or distrust the tokenizer file");
    }
    return true;
  }
};

Regex::Regex(std::string_view pattern, RegexDialect dialect) : compiled_(std::make_unique<Compiled>()) {
  if (pattern.size() > kMostPatternBytes) {
    throw Error::input(
        fmt::format("pattern of {} bytes; at most {} are taken", pattern.size(), kMostPatternBytes));
  }
  compiled_->source = pattern;
  const std::string translated = translate_regex(pattern, dialect);
  // ^ and $ of Oniguruma are those of lines; $ of Rust is the very end.
  const std::uint32_t lines = dialect == RegexDialect::oniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
  const auto context = checked(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | lines, &error,
                                      &offset, context.get()));
  if (compiled_->code == nullptr) {
    throw Error::input(fmt::format("pattern '{}' is no regular expression we can read: {}",
                                   pattern.substr(0, 120), message_of(error)));
  }
  compiled_->jit = pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

std::string Regex::escaped(std::string_view literal) {
  std::string pattern;
  for (const char c : literal) {
    if (unicode::is_ascii_punctuation(static_cast<unsigned char>(c))) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void Regex::for_each_match(std::string_view text,
                           const std::function<void(std::size_t, std::size_t)>& take) const {
  Search& search = this_threads_search();
  std::size_t last_end = std::string_view::npos;
  for (std::size_t base = 0; base < text.size();) {
    const std::string_view run = text.substr(base, unicode::valid_prefix(text.substr(base)));
    for (std::size_t at = 0; at <= run.size() && compiled_->match(run, at, search);) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(search.data.get());
      const std::size_t begin = ends[0], end = ends[1];
      const bool empty = begin == end;
      if (!empty || last_end != base + end) take(base + begin, base + end);
      if (empty && begin >= run.size()) break;
      at = empty ? end + unicode::character_at(run, end).length : end;
      last_end = base + end;
    }
    base += run.size() + 1;  // past the stray byte, or past the end
  }
}

}  // namespace assay
