#include "core/formats/checksum_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/formats/chunked_manifest.h"
#include "core/formats/manifest_name_index.h"
#include "core/formats/windows_checksums.h"
#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kNameless = "-";  // as sha256sum calls standard input

// What one line says, before it is known whether we can use it.
struct Line {
  std::string_view hex;
  std::string name;
  std::string algorithm;  // as a BSD tag names it; of a coreutils line, what its number of digits suggests
};

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_algorithm(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/';
}

std::string_view algorithm_of_digits(std::size_t digits) {
  switch (digits) {
    case 32: return "md5";
    case 40: return "sha1";
    case 56: return "sha224";
    case 64: return "sha256";
    case 96: return "sha384";
    case 128: return "sha512 or blake2b";
    default: return {};
  }
}

// Undoes what a leading '\' announces: \\ \n \r; nullopt for any other escape.
std::optional<std::string> unescape(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '\\') {
      result += name[i];
      continue;
    }
    switch (++i < name.size() ? name[i] : '\0') {
      case '\\': result += '\\'; break;
      case 'n': result += '\n'; break;
      case 'r': result += '\r'; break;
      default: return std::nullopt;
    }
  }
  return result;
}

// "HEX  NAME", "HEX *NAME", and "HEX NAME" as old BSD tools write it.
std::optional<Line> coreutils_line(std::string_view text) {
  const auto end =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_hex_digit) - text.begin());
  if (algorithm_of_digits(end).empty() || end == text.size() || !is_blank(text[end])) return std::nullopt;
  Line line{text.substr(0, end), {}, std::string(algorithm_of_digits(end))};
  std::string_view name = text.substr(end + 1);
  if (name.starts_with(' ') || name.starts_with('*')) name.remove_prefix(1);
  line.name = name;
  return line;
}

// "SHA256 (NAME) = HEX" and openssl's "SHA2-256(NAME)= HEX". The name may hold anything, ") = " too: the
// digest is what follows the last ')'.
std::optional<Line> tagged_line(std::string_view text) {
  const auto end =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_algorithm) - text.begin());
  std::string_view rest = text.substr(end);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto close = rest.rfind(')');
  if (end == 0 || !rest.starts_with('(') || close == std::string_view::npos) return std::nullopt;
  std::string_view digest = trim(rest.substr(close + 1));
  if (!digest.starts_with('=')) return std::nullopt;
  digest = trim(digest.substr(1));
  if (digest.empty() || !std::all_of(digest.begin(), digest.end(), is_hex_digit)) return std::nullopt;
  return Line{digest, std::string(rest.substr(1, close - 1)), std::string(text.substr(0, end))};
}

std::optional<Line> parse_line(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  const bool escaped = text.starts_with('\\');
  if (escaped) text.remove_prefix(1);
  std::optional<Line> line = coreutils_line(text);
  if (!line) line = tagged_line(text);
  if (!line || line->name.empty()) return std::nullopt;
  if (escaped) {
    auto name = unescape(line->name);
    if (!name) return std::nullopt;
    line->name = std::move(*name);
  }
  return line;
}

bool is_sha256(std::string_view algorithm) {
  std::string lower(algorithm);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return lower == "sha256" || lower == "sha2-256" || lower == "sha-256";
}

// A line of digits alone.
std::optional<Digest> bare_digest(std::string_view text) {
  return Digest::parse(DigestKind::sha256, trim(text));
}

std::string name_from(const std::filesystem::path& source) {
  const std::string base = source.filename().string();
  for (const std::string_view end : {".sha256", ".sha256sum", ".sha256.txt", ".SHA256"}) {
    if (base.size() > end.size() && base.ends_with(end)) return base.substr(0, base.size() - end.size());
  }
  return {};
}

// Collects entries, each name once.
class Collector {
 public:
  Collector(std::string_view text, const std::filesystem::path& source, const ManifestReading& reading)
      : source_(source), reading_(reading) {
    if (reading_.wanted) return;
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    manifest_.entries.reserve(std::min(lines, text.size() / kLeastLine + 1));
  }

  void line(std::string_view text, std::uint64_t offset) {
    ++number_;
    const std::string_view shown = trim(text);
    if (shown.empty() || shown.starts_with('#')) return;
    std::optional<WindowsChecksum> windows;
    if (windows_.take(text, windows) && !(windows && windows->name.empty())) {
      if (windows) take(Line{windows->hex, windows->name, windows->algorithm}, offset);
      return;
    }
    const std::optional<Line> line = parse_line(text);
    if (!line) {
      bare_ = bare_digest(text);
      return note(Severity::error, "manifest.line_malformed", "is no checksum line", offset);
    }
    take(*line, offset);
  }

  void take(const Line& line, std::uint64_t offset) {
    if (!is_sha256(line.algorithm)) {
      return note(Severity::error, "manifest.algorithm_unsupported",
                  fmt::format("gives \"{}\" by {}: only sha256 is supported", line.name, line.algorithm),
                  offset, "make the manifest again with sha256sum");
    }
    const auto digest = Digest::parse(DigestKind::sha256, line.hex);
    if (!digest)
      return note(Severity::error, "manifest.line_malformed", "has a digest that is not 64 digits", offset);
    entry({line.name, *digest, {}, {}}, offset);
  }

  void entry(ManifestEntry entry, std::uint64_t offset) {
    auto& entries = manifest_.entries;
    if (entries.size() >= kEntriesAlwaysKept && reading_.wanted && !reading_.wanted(entry.name)) return;
    const auto known = by_name_.find_or_add(entry.name, entries, entries.size());
    if (!known) {
      entries.push_back(std::move(entry));
    } else if (entries[*known].digest == entry.digest) {
      note(Severity::note, "manifest.name_twice", fmt::format("gives \"{}\" a second time", entry.name),
           offset);
    } else {
      note(Severity::error, "manifest.name_conflict",
           fmt::format("gives \"{}\" a second, different digest", entry.name), offset,
           "find out which digest is right and remove the other");
    }
  }

  ChecksumManifest finish() {
    manifest_.findings = found_.take();
    take_nameless();
    if (!manifest_.entries.empty()) return std::move(manifest_);
    Error error = Error::input("holds no sha256 checksum line").in(source_);
    if (!manifest_.findings.empty()) {
      const Finding& first = manifest_.findings[0];
      error.remedy("its first line that is not understood: " + first.message +
                   (first.remedy.empty() ? "" : "; " + first.remedy));
    }
    throw error;
  }

 private:
  // One digest and nothing else (`sha256sum < F | cut -c1-64 > F.sha256`), or that of standard input: of the
  // file that the checksum file is named after; where it is named after none, of the one that is meant.
  void take_nameless() {
    auto& entries = manifest_.entries;
    if (entries.empty() && bare_ && manifest_.findings.size() == 1) {
      entries.push_back({std::string(kNameless), *bare_, {}, {}});
      manifest_.findings.clear();
    }
    if (entries.size() != 1 || entries[0].name != kNameless) return;
    const std::string name = name_from(source_);
    manifest_.nameless = name.empty();
    if (!name.empty()) entries[0].name = name;
  }

  void note(Severity severity, std::string code, std::string_view message, std::uint64_t offset,
            std::string remedy = {}) {
    Finding finding;
    finding.severity = severity;
    finding.code = std::move(code);
    finding.message = fmt::format("line {} {}", number_, message);
    finding.file = source_.filename().string();
    finding.offset = offset;
    finding.remedy = std::move(remedy);
    found_.add(std::move(finding));
  }

  static constexpr std::size_t kLeastLine = 67;  // 64 digits, a blank, a name of one letter, the line's end

  const std::filesystem::path& source_;
  const ManifestReading& reading_;
  ChecksumManifest manifest_;
  WindowsChecksumReader windows_;
  std::optional<Digest> bare_;  // of the last line that is nothing but a digest
  FindingCollector found_;
  ManifestNameIndex by_name_;
  std::uint64_t number_ = 0;
};

// What holds such lines, and is no text of them.
void refuse_other_wrappings(std::string_view text, const std::filesystem::path& source) {
  if (text.starts_with("-----BEGIN PGP SIGNED MESSAGE-----"))
    throw Error::input("is signed with PGP, which is not checked here")
        .in(source)
        .remedy("check it with 'gpg --verify', and give what 'gpg --decrypt' makes of it");
  if (text.find('\0') != std::string_view::npos && text.find('\n') == std::string_view::npos)
    throw Error::input("has lines that end in a NUL byte, as 'sha256sum -z' writes them")
        .in(source)
        .remedy("make it again without -z");
}

}  // namespace

ChecksumManifest parse_checksum_manifest(std::string_view text, const std::filesystem::path& source) {
  return parse_checksum_manifest(text, source, {});
}

ChecksumManifest parse_checksum_manifest(std::string_view text, const std::filesystem::path& source,
                                         const ManifestReading& reading) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {  // PowerShell's '>'
    try {
      const std::string utf8 = utf8_of_utf16(text.substr(2), text.starts_with("\xFE\xFF"));
      return parse_checksum_manifest(utf8, source, {.wanted = reading.wanted});
    } catch (Error& error) {
      throw error.in(source);
    }
  }
  std::uint64_t offset = 0;
  if (text.starts_with("\xEF\xBB\xBF")) offset = 3;
  if (trim(text.substr(offset)).starts_with('{'))
    return parse_chunked_manifest(text.substr(offset), source, reading);

  refuse_other_wrappings(text.substr(offset), source);
  Collector collector(text, source, reading);
  while (offset < text.size()) {
    const auto newline = text.find('\n', offset);
    const auto end = newline == std::string_view::npos ? text.size() : newline;
    std::string_view line = text.substr(offset, end - offset);
    if (line.ends_with('\r')) line.remove_suffix(1);
    collector.line(line, offset);
    offset = end + 1;
    if (reading.passing != nullptr) reading.passing->passed(offset);
  }
  return collector.finish();
}

std::string checksum_line(const Digest& digest, std::string_view name) {
  if (digest.kind != DigestKind::sha256) throw Error::internal("a checksum line takes a sha256");
  std::string escaped;
  for (const char c : name) {
    switch (c) {
      case '\\': escaped += "\\\\"; break;
      case '\n': escaped += "\\n"; break;
      case '\r': escaped += "\\r"; break;
      default: escaped += c;
    }
  }
  return fmt::format("{}{}  {}\n", escaped.size() == name.size() ? "" : "\\", digest.hex(), escaped);
}

}  // namespace assay
