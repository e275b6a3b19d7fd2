#include "verify/survey.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>

#include "core/system/error.h"
#include "core/system/memory_pages.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "core/system/tree_names.h"
#include "verify/code_files.h"
#include "verify/diagnose.h"
#include "verify/expected/weight_files.h"
#include "verify/link_guard.h"
#include "verify/own_files.h"

namespace assay {
namespace {

constexpr std::uint64_t kHolesWorthNaming = 64u << 10;

constexpr std::uint64_t kReadAtOnce = 64u << 10;

void fail(FileReport& report, FileStatus status, std::string diagnosis, std::string remedy = {}) {
  report.status = status;
  report.tell(std::move(diagnosis), std::move(remedy));
}

// What the file's first bytes and its holes say; of its first bytes also whether they are code, so that it is
// opened once.
void look_into(FileReport& report, const fs::path& path) {
  const File file = File::open(path);
  report.set_identity(file.identity());
  std::array<std::byte, kFirstLook> buffer;
  static_assert(kFirstLook >= kCodeLook);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), buffer.size()));
  const auto head = std::span(buffer).first(file.read_at(0, std::span(buffer).first(wanted)));
  const Diagnosis diagnosis = diagnose_cheaply(file, head, report.expected_size(), report.expected);
  if (diagnosis) return fail(report, FileStatus::failed, diagnosis.sentence, diagnosis.remedy);
  if (!code_by_name(report.name, false))
    report.set_code(code_by_content(report.name, path, head, file.size()));
  if (file.size() < kHolesWorthNaming) return;
  if (const Holes holes = find_holes(file); holes.bytes >= kHolesWorthNaming) {
    report.add({{.severity = Severity::warning,
                 .code = std::string(kNeverWritten),
                 .message = fmt::format("has {} that were never written, the first at byte {}: a "
                                        "preallocated download that was not finished, or a sparse copy",
                                        human_bytes(holes.bytes), holes.first),
                 .file = report.name,
                 .offset = holes.first}});
  }
}

void look_at(FileReport& report, const fs::path& path, LinkGuard& links, const VerifyOptions& options) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return fail(report, FileStatus::missing, "is not there");
    return fail(report, FileStatus::unreadable, Error::from_errno("stat", errno).message());
  }
  if (!options.follow_links) {
    if (const auto target = links.leads_out(path, S_ISLNK(s.st_mode))) {
      return fail(report, FileStatus::failed,
                  fmt::format("is a link out of the folder, to {}; it was not followed",
                              escape_for_terminal(target->string())),
                  "use --follow-links, or --root where the weights lie");
    }
  }
  if (S_ISLNK(s.st_mode) && ::stat(path.c_str(), &s) != 0) {
    return fail(report, FileStatus::missing, "is a dangling link", "download it again");
  }
  report.status = report.expected ? FileStatus::ok : FileStatus::unchecked;
  report.set_identity(identity_of(s));
  if (S_ISREG(s.st_mode) && seen_when_hashed(report, options)) return;
  try {
    look_into(report, path);
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::input;  // a folder, FIFO or device in its place
    fail(report, refused ? FileStatus::failed : FileStatus::unreadable, sentence_of(error));
  }
}

bool is_ignored(const std::string& name, const Expectation& expectation) {
  const std::string top = name.substr(0, name.find('/'));
  return std::find(expectation.ignored.begin(), expectation.ignored.end(), top) != expectation.ignored.end();
}

// Names the source has settled itself, and whatever lies below them (a submodule).
bool is_settled(const std::string& name, const std::set<std::string>& settled) {
  for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (settled.contains(name.substr(0, slash))) return true;
  }
  return settled.contains(name);
}

// `latest -> checkpoint-100`: what it leads to is looked at under its own name, if it lies in this folder.
Finding folder_link(const TreeEntry& entry, const fs::path& path, const fs::path& root) {
  Finding finding{.severity = Severity::note,
                  .code = "file.folder_link",
                  .message = "is a link to a folder, whose files are examined under their own names",
                  .file = entry.name};
  std::error_code error;
  if (is_below(fs::canonical(path, error), fs::canonical(root, error)) && !error) return finding;
  finding.severity = Severity::warning;
  finding.message = fmt::format("is a link to a folder elsewhere, {}: nothing there was looked at",
                                fs::canonical(path, error).string());
  finding.remedy = "verify that folder by itself";
  return finding;
}

// What is there without being expected: `known` is, sorted by name. Where nobody expects anything (a plain
// folder) it is not extra.
std::vector<FileReport> unexpected(const Expectation& expectation, const std::vector<FileReport>& known,
                                   const VerifyOptions& options, const OwnFiles& own, LinkGuard& links,
                                   Findings& findings) {
  std::vector<FileReport> reports;
  std::error_code error;
  if (!expectation.owns_root || !fs::is_directory(expectation.root, error)) return reports;
  const bool plain = std::none_of(known.begin(), known.end(),
                                  [](const FileReport& file) { return file.expected.has_value(); });
  const auto is_known = [&](const std::string& name) {
    const auto at = std::lower_bound(known.begin(), known.end(), name,
                                     [](const FileReport& file, const auto& n) { return file.name < n; });
    return at != known.end() && at->name == name;
  };
  const std::set<std::string> settled(expectation.settled.begin(), expectation.settled.end());
  const std::vector<std::string_view> skip(expectation.ignored.begin(), expectation.ignored.end());
  std::map<std::string, Finding> folder_links;  // in order
  visit_names(expectation.root, skip, [&](TreeEntry&& entry) {
    if (is_known(entry.name) || is_settled(entry.name, settled) || is_ignored(entry.name, expectation))
      return;
    const fs::path path = expectation.root / entry.name;
    std::error_code ignored;
    if (entry.kind == TreeEntry::Kind::link && fs::is_directory(path, ignored)) {
      folder_links.emplace(entry.name, folder_link(entry, path, expectation.root));
      return;
    }
    FileReport report;
    report.name = std::move(entry.name);
    if (entry.kind == TreeEntry::Kind::unreadable) {
      fail(report, FileStatus::unreadable, "cannot be listed or looked at: permission denied?");
    } else {
      look_at(report, path, links, options);
      if (own.contains(report.identity())) return;
      const bool looked_at = report.status == FileStatus::unchecked || report.status == FileStatus::failed;
      if (!plain && looked_at) report.status = FileStatus::extra;
    }
    reports.push_back(std::move(report));
  });
  for (auto& [name, finding] : folder_links) findings.push_back(std::move(finding));
  return reports;
}

FileReport report_on(ExpectedFile&& file) {
  FileReport report;
  report.name = std::move(file.name);
  report.expected = file.digest;
  report.trust = file.trust;
  report.set_listed(file.size, std::move(file.chunks));
  if (file.xet) report.set_listed_xet(*file.xet);
  if (file.elsewhere) report.set_elsewhere(*file.elsewhere);
  return report;
}

}  // namespace

bool seen_when_hashed(const FileReport& file, const VerifyOptions& options) {
  const bool right_size = file.expected_size().value_or(file.size()) == file.size();
  // Of a copy that many ranks share no byte is read twice.
  const bool once = options.share || (file.size() <= kReadAtOnce && !may_hold_weights(file.name));
  return file.status == FileStatus::ok && right_size && once && !options.quick;
}

std::vector<FileReport> survey(Expectation& expectation, const VerifyOptions& options, Findings& findings) {
  const OwnFiles own(options.own_files);
  LinkGuard links(expectation.root);
  std::vector<FileReport> reports = drain<FileReport>(expectation.files, report_on);
  parallel_for(options.jobs, reports.size(), [&](std::size_t i) {
    const fs::path& elsewhere = reports[i].elsewhere();
    look_at(reports[i], elsewhere.empty() ? expectation.root / reports[i].name : elsewhere, links, options);
  });
  std::erase_if(reports, [&](const FileReport& file) {  // of a plain folder, every file is listed
    return !file.expected && own.contains(file.identity());
  });
  std::vector<FileReport> others = unexpected(expectation, reports, options, own, links, findings);
  if (others.empty()) return reports;  // in order, as the expected files are
  std::vector<FileReport> all;         // of the right size: a list that grew by one would be held twice
  all.reserve(reports.size() + others.size());
  drain_tail(reports, reports.size(), all, [](FileReport&& file) { return std::move(file); });
  drain_tail(others, others.size(), all, [](FileReport&& file) { return std::move(file); });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace assay
