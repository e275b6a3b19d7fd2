#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/model/module_patterns.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kLongestPattern = 10'000;
constexpr std::uint64_t kWeighed = 4096;         // modules told by their layer, of a large model
constexpr std::uint32_t kMostSteps = 1'000'000;  // a real one takes a few hundred

// "*" stands for anything; what matches names a module and all below it.
bool wildcard_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return p == pattern.size() && text[t] == '.';
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

std::string_view module_of(std::string_view tensor) {
  constexpr std::string_view kEnding = ".weight";
  return tensor.ends_with(kEnding) ? tensor.substr(0, tensor.size() - kEnding.size()) : tensor;
}

}  // namespace

struct ModulePatterns::Expression {
  explicit Expression(std::string_view pattern) {
    if (pattern.size() > kLongestPattern)
      throw Error::input(fmt::format("quantization_config ignores modules by an expression of {} characters",
                                     pattern.size()));
    int fault = 0;
    std::size_t at = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED, &fault,
                         &at, nullptr);
    if (code == nullptr)
      throw Error::input(fmt::format(
          "quantization_config ignores modules by \"re:{}\", which is no regular expression", pattern));
    // Compiled further where the machine allows it: some thousand names are asked for, a few times each.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    context = pcre2_match_context_create(nullptr);
    data = pcre2_match_data_create(1, nullptr);
    if (context != nullptr) pcre2_set_match_limit(context, kMostSteps);
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }

  bool matches(std::string_view module) const {
    int found = match(module, 0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(module, PCRE2_NO_JIT);
    if (found >= 0 || found == PCRE2_ERROR_NOMATCH) return found >= 0;
    throw Error::input("quantization_config ignores modules by an expression that takes beyond all measure");
  }

  int match(std::string_view module, std::uint32_t options) const {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, options, data,
                       context);
  }

  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_match_data* data = nullptr;
};

ModulePatterns::ModulePatterns(const std::vector<std::string>& entries, NumberedNames names)
    : names_(std::move(names)) {
  constexpr std::string_view kExpression = "re:";
  for (const std::string& entry : entries) {
    if (entry.starts_with(kExpression))
      expressions_.push_back(
          std::make_shared<const Expression>(std::string_view(entry).substr(kExpression.size())));
    else if (entry.find('*') != std::string::npos)
      wildcards_.push_back(entry);
    else
      names_.add(entry);
  }
  names_.settle();
}

bool ModulePatterns::name(std::string_view tensor) const {
  const std::lock_guard lock(answers_->mutex);
  if (++answers_->asked <= kWeighed) return find(tensor);
  auto answer = answers_->of.find(tensor);
  if (answer == answers_->of.end()) answer = answers_->of.emplace(tensor, find(tensor)).first;
  return answer->second;
}

bool ModulePatterns::find(std::string_view tensor) const {
  // The module, those it is in, and each part between dots.
  std::size_t dots = 0;
  for (std::size_t begin = 0, end = 0; !names_.empty() && begin <= tensor.size(); begin = end + 1, ++dots) {
    end = std::min(tensor.find('.', begin), tensor.size());
    if (names_.may_have(dots) && names_.contains(tensor.substr(0, end))) return true;
    const bool between_dots = begin > 0 && end < tensor.size();
    if (between_dots && names_.may_have(0) && names_.contains(tensor.substr(begin, end - begin))) return true;
  }
  const std::string_view module = module_of(tensor);
  return std::any_of(wildcards_.begin(), wildcards_.end(),
                     [&](const std::string& entry) { return wildcard_matches(entry, module); }) ||
         std::any_of(expressions_.begin(), expressions_.end(),
                     [&](const auto& expression) { return expression->matches(module); });
}

}  // namespace assay
