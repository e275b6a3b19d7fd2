#include "verify/expected/git_checkout.h"

#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <span>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::git {
namespace {

constexpr std::uint64_t kMaxConverted = 64ull << 20;
constexpr std::uint64_t kMaxAttributes = 1ull << 20;
constexpr std::size_t kNamesShown = 3;

// What git counts to tell text from binary; CR and LF alone, and as a pair.
struct TextStatistics {
  std::uint64_t cr = 0, lf = 0, crlf = 0, nul = 0, printable = 0, other = 0;

  explicit TextStatistics(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
        ++crlf, ++i;
      else if (c == '\r')
        ++cr;
      else if (c == '\n')
        ++lf;
      else
        count(static_cast<unsigned char>(c));
    }
    if (text.ends_with('\x1A')) --other;  // the end of a file, in CP/M and DOS
  }
  bool is_binary() const { return cr > 0 || nul > 0 || printable / 128 < other; }

 private:
  void count(unsigned char c) {
    if (c == 0) ++nul;
    const bool blank = c == '\b' || c == '\t' || c == '\f' || c == 0x1B;
    ++((c < 0x20 && !blank) || c == 0x7F ? other : printable);
  }
};

void to_crlf(std::string& text, bool if_text) {
  const TextStatistics found(text);
  if (found.lf == 0) return;
  if (if_text && (found.crlf > 0 || found.is_binary())) return;
  std::string longer;
  longer.reserve(text.size() + found.lf);
  char before = '\0';
  for (const char c : text) {
    if (c == '\n' && before != '\r') longer += '\r';
    longer += c;
    before = c;
  }
  text = std::move(longer);
}

// Where a keyword that begins at `at` ends: behind "$Id$", or behind "$Id: 4d7a… $", one that a commit took
// in expanded. Other systems write more words between the colon and the dollar; those stay.
std::size_t end_of_keyword(std::string_view text, std::size_t at) {
  constexpr std::string_view kName = "$Id";
  if (text.substr(at, kName.size()) != kName || at + kName.size() >= text.size()) return 0;
  const std::size_t next = at + kName.size();
  if (text[next] == '$') return next + 1;
  if (text[next] != ':') return 0;
  const auto dollar = text.find('$', next + 1);
  if (dollar == text.npos) return 0;
  const std::string_view inside = text.substr(next + 1, dollar - next - 1);
  if (inside.find('\n') != inside.npos) return 0;
  const auto blank = inside.find(' ', 1);
  return blank == inside.npos || blank + 1 == inside.size() ? dollar + 1 : 0;
}

std::string with_ident(std::string_view text, std::string_view blob_id) {
  std::string result;
  std::size_t copied = 0;
  for (auto at = text.find('$'); at != text.npos; at = text.find('$', at)) {
    const std::size_t end = end_of_keyword(text, at);
    if (end == 0) {
      ++at;
      continue;
    }
    result += text.substr(copied, at - copied);
    result += fmt::format("$Id: {} $", blob_id);
    copied = at = end;
  }
  result += text.substr(copied);
  return result;
}

// git's own name "UTF-16LE-BOM" is UTF-16LE behind a byte order mark.
std::optional<std::string> in_encoding(std::string text, std::string encoding) {
  constexpr std::string_view kMark = "-BOM";
  std::string converted;
  if (encoding.size() > kMark.size() && encoding.ends_with(kMark)) {
    encoding.resize(encoding.size() - kMark.size());
    converted = encoding.ends_with("BE") ? "\xFE\xFF" : "\xFF\xFE";
  }
  const iconv_t converter = ::iconv_open(encoding.c_str(), "UTF-8");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): so iconv says that it cannot
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  const std::size_t mark = converted.size();
  converted.resize(mark + 4 * text.size() + 16);
  char *in = text.data(), *out = converted.data() + mark;
  std::size_t in_left = text.size(), out_left = converted.size() - mark;
  const std::size_t result = ::iconv(converter, &in, &in_left, &out, &out_left);
  ::iconv_close(converter);
  if (result == static_cast<std::size_t>(-1)) return std::nullopt;
  converted.resize(converted.size() - out_left);
  return converted;
}

bool may_keep_length(const CheckoutRule& rule) {
  return !rule.encoding.empty() || !rule.filter.empty();
}

bool mentions_what_keeps_length(std::string_view attributes) {
  if (attributes.find("working-tree-encoding") != attributes.npos) return true;
  constexpr std::string_view kFilter = "filter=", kLfs = "lfs";
  for (auto at = attributes.find(kFilter); at != attributes.npos; at = attributes.find(kFilter, at + 1)) {
    if (!attributes.substr(at + kFilter.size()).starts_with(kLfs)) return true;
  }
  return false;
}

// One commit's files, held against the work tree.
class Checkout {
 public:
  Checkout(const Repository& repository, const git_oid& commit, const std::string& above, Expectation& out)
      : repository_(repository), commit_(commit), attributes_(repository, commit), above_(above), out_(out) {}

  void run() {
    for (ExpectedFile& file : out_.files) {
      if (file.trust->source == TrustSource::git_blob && file.digest) look_at(file);
    }
    tell();
  }

 private:
  // Line ends and $Id$ change a file's length wherever they change it; encodings and programs need not.
  void look_at(ExpectedFile& file) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(out_.path_of(file), error);
    if (error) return;  // told by whoever looks for it
    const bool same_length = size == file.size;
    if (same_length && !length_may_stay()) return;
    const CheckoutRule rule = attributes_.rule_for(above_ + file.name);
    if (rule.keeps_bytes() || (same_length && !may_keep_length(rule))) return;
    if (!rule.filter.empty()) return filtered(file, rule.filter);
    const auto text = written(file, rule);
    if (!text) return;
    const Digest digest = digest_of(DigestKind::git_sha1, std::as_bytes(std::span(*text)));
    if (same_length && !is_on_disk(digest, file)) return;
    file.size = text->size();
    file.digest = digest;
    converted_.push_back(file.name);
  }

  // Whether a rule somewhere above or among the files may leave a file's length as it is.
  bool length_may_stay() {
    if (!length_may_stay_) length_may_stay_ = find_what_keeps_length();
    return *length_may_stay_;
  }

  bool find_what_keeps_length() const {
    try {
      if (mentions_what_keeps_length(
              read_small_file(repository_.git_folder() / "info/attributes", kMaxAttributes)))
        return true;
    } catch (const Error&) {
    }
    for (const std::string& attributes : attribute_files()) {
      if (mentions_what_keeps_length(attributes)) return true;
    }
    return false;
  }

  // The texts of the .gitattributes that the commit has: beside its files, and in the folders above.
  std::vector<std::string> attribute_files() const {
    std::vector<std::string> texts;
    const auto take = [&](const git_oid& id) {
      try {
        texts.push_back(repository_.read(id, kMaxAttributes));
      } catch (const Error&) {  // git could not read it either
      }
    };
    for (const ExpectedFile& file : out_.files) {
      git_oid id;
      const bool named = file.name == kFileName || file.name.ends_with("/" + std::string(kFileName));
      if (named && file.digest && git_oid_fromstr(&id, file.digest->hex().c_str()) == 0) take(id);
    }
    for (fs::path folder = fs::path(above_).parent_path();; folder = folder.parent_path()) {
      if (const auto id = repository_.find_file(commit_, (folder / kFileName).generic_string())) take(*id);
      if (folder.empty()) break;
    }
    return texts;
  }

  std::optional<std::string> written(const ExpectedFile& file, const CheckoutRule& rule) const {
    const std::string blob_id = file.digest->hex();
    git_oid id;
    if (git_oid_fromstr(&id, blob_id.c_str()) != 0) return std::nullopt;
    try {
      return checked_out(repository_.read(id, kMaxConverted), rule, blob_id);
    } catch (const Error&) {
      return std::nullopt;  // larger than any text, or damaged: then the file is held to its blob's id
    }
  }

  bool is_on_disk(const Digest& digest, const ExpectedFile& file) const {
    try {
      const std::string bytes = read_small_file(out_.path_of(file), kMaxConverted);
      return digest_of(digest.kind, std::as_bytes(std::span(bytes))) == digest;
    } catch (const Error&) {
      return false;
    }
  }

  void filtered(ExpectedFile& file, const std::string& filter) {
    if (is_on_disk(*file.digest, file)) return;
    file.digest.reset();
    file.size.reset();
    file.trust = {};
    out_.findings.push_back(
        {.severity = Severity::warning,
         .code = "git.filtered",
         .message = fmt::format("goes through the filter '{}' (.gitattributes), a program "
                                "that is not run here: nobody says what it should be",
                                filter),
         .file = file.name,
         .remedy = "ask 'git status'"});
  }

  void tell() {
    if (converted_.empty()) return;
    const std::size_t shown = std::min(converted_.size(), kNamesShown);
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "git.checked_out_form",
         .message = fmt::format(
             "{} {} compared as git writes {} into the work tree (.gitattributes, core.autocrlf): {}{}",
             converted_.size(), converted_.size() == 1 ? "file is" : "files are",
             converted_.size() == 1 ? "it" : "them",
             fmt::join(converted_.begin(), converted_.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
             shown < converted_.size() ? ", …" : "")});
  }

  static constexpr const char* kFileName = ".gitattributes";

  const Repository& repository_;
  const git_oid& commit_;
  const Attributes attributes_;
  const std::string& above_;
  Expectation& out_;
  std::optional<bool> length_may_stay_;
  std::vector<std::string> converted_;
};

}  // namespace

std::optional<std::string> checked_out(std::string blob, const CheckoutRule& rule, std::string_view blob_id) {
  using LineEnds = CheckoutRule::LineEnds;
  if (rule.ident) blob = with_ident(blob, blob_id);
  if (rule.line_ends != LineEnds::kept) to_crlf(blob, rule.line_ends == LineEnds::crlf_if_text);
  if (rule.encoding.empty()) return blob;
  return in_encoding(std::move(blob), rule.encoding);
}

void expect_as_checked_out(const Repository& repository, const git_oid& commit, const std::string& above,
                           Expectation& expectation) {
  Checkout(repository, commit, above, expectation).run();
}

}  // namespace assay::git
