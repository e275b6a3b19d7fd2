#include "verify/expected/git_attributes.h"

#include <git2/sys/index.h>
#include <git2/sys/repository.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace assay::git {
namespace {

using ConfigPtr = Owned<git_config, git_config_free>;
using IndexPtr = Owned<git_index, git_index_free>;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<std::string> config_value(git_config* config, const char* name) {
  const char* value = nullptr;
  if (config == nullptr || git_config_get_string(&value, config, name) != 0 || value == nullptr)
    return std::nullopt;
  return lower(value);
}

bool is_true(const std::optional<std::string>& value) {
  int result = 0;
  return value && git_config_parse_bool(&result, value->c_str()) == 0 && result != 0;
}

}  // namespace

// An attribute as git tells it: `text`, `-text`, `text=auto`, or not a word about it.
struct Attribute {
  enum class Kind { unspecified, set, unset, value } kind = Kind::unspecified;
  std::string value;
  bool is_set() const { return kind == Kind::set; }
  bool is_unset() const { return kind == Kind::unset; }
  bool is(std::string_view text) const { return kind == Kind::value && value == text; }
};

namespace {

bool says_whether_text(const Attribute& text) {
  return text.is_set() || text.is_unset() || text.is("auto") || text.is("input");
}

Attribute attribute_of(const char* raw) {
  switch (git_attr_value(raw)) {
    case GIT_ATTR_VALUE_TRUE: return {Attribute::Kind::set, {}};
    case GIT_ATTR_VALUE_FALSE: return {Attribute::Kind::unset, {}};
    case GIT_ATTR_VALUE_STRING: return {Attribute::Kind::value, raw};
    case GIT_ATTR_VALUE_UNSPECIFIED: break;
  }
  return {};
}

}  // namespace

Attributes::Attributes(const Repository& repository, const git_oid& commit) : commit_(commit) {
  git_repository* raw = nullptr;
  const fs::path folder = repository.git_folder();
  if (git_repository_open_ext(&raw, folder.c_str(), GIT_REPOSITORY_OPEN_BARE | GIT_REPOSITORY_OPEN_NO_SEARCH,
                              nullptr) != 0)
    return;
  repository_.reset(raw);
  // What is staged is not what the commit says.
  git_index* index = nullptr;
  if (git_index_new(&index) == 0) git_repository_set_index(raw, IndexPtr(index).get());
  git_config* snapshot = nullptr;
  git_repository_config_snapshot(&snapshot, raw);
  const ConfigPtr config(snapshot);
  const auto auto_crlf = config_value(snapshot, "core.autocrlf");
  if (auto_crlf == "input")
    auto_crlf_ = AutoCrlf::input;
  else if (is_true(auto_crlf))
    auto_crlf_ = AutoCrlf::yes;
  const bool eol = config_value(snapshot, "core.eol") == "crlf";
  text_is_crlf_ = auto_crlf_ == AutoCrlf::yes || (auto_crlf_ == AutoCrlf::no && eol);
}

CheckoutRule::LineEnds Attributes::line_ends(const Attribute& text, const Attribute& eol) const {
  using LineEnds = CheckoutRule::LineEnds;
  if (text.is_unset()) return LineEnds::kept;
  const bool eol_said = eol.is("lf") || eol.is("crlf");
  const bool text_said = says_whether_text(text);
  const bool automatic = text.is("auto") || (!text_said && !eol_said);  // by core.autocrlf, if at all
  if (!text_said && !eol_said && auto_crlf_ == AutoCrlf::no) return LineEnds::kept;
  const bool crlf = eol_said ? eol.is("crlf") : text_is_crlf_ && !text.is("input");
  if (!crlf) return LineEnds::kept;
  return automatic ? LineEnds::crlf_if_text : LineEnds::crlf;
}

CheckoutRule Attributes::rule_for(const std::string& path) const {
  CheckoutRule rule;
  if (!repository_) return rule;
  constexpr std::size_t kNames = 6;
  std::array<const char*, kNames> names = {"text", "crlf", "eol", "ident", "working-tree-encoding", "filter"};
  std::array<const char*, kNames> values{};
  git_attr_options options = GIT_ATTR_OPTIONS_INIT;
  options.flags = GIT_ATTR_CHECK_INDEX_ONLY | GIT_ATTR_CHECK_NO_SYSTEM | GIT_ATTR_CHECK_INCLUDE_COMMIT;
  options.attr_commit_id = commit_;
  if (git_attr_get_many_ext(values.data(), repository_.get(), &options, path.c_str(), kNames, names.data()) !=
      0)
    return rule;

  Attribute text = attribute_of(values[0]);
  if (!says_whether_text(text)) text = attribute_of(values[1]);  // its name of old
  rule.line_ends = line_ends(text, attribute_of(values[2]));

  rule.ident = attribute_of(values[3]).is_set();
  if (const Attribute encoding = attribute_of(values[4]); encoding.kind == Attribute::Kind::value) {
    const std::string name = lower(encoding.value);
    if (name != "utf-8" && name != "utf8") rule.encoding = encoding.value;
  }
  if (const Attribute filter = attribute_of(values[5]);
      filter.kind == Attribute::Kind::value && filter.value != "lfs")
    rule.filter = filter.value;
  return rule;
}

}  // namespace assay::git
