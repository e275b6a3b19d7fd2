#include "verify/survey.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "verify/diagnose.h"
#include "verify/own_files.h"

namespace assay {
namespace {

constexpr std::uint64_t kHolesWorthNaming = 64u << 10;

bool is_below(const fs::path& path, const fs::path& root) {
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return end == root.end();
}

// A name below the root whose links lead out of it: what would be read is not what was asked about. Where the
// source itself resolved the name (a hub cache's ../../blobs), `path` does not lie below the root to begin
// with.
std::optional<fs::path> link_out_of(const fs::path& path, const fs::path& root) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return std::nullopt;
  if (!is_below(path.lexically_normal(), root.lexically_normal())) return std::nullopt;
  const fs::path real = fs::canonical(path, error);
  if (error || is_below(real, real_root)) return std::nullopt;
  return real;
}

void fail(FileReport& report, FileStatus status, std::string diagnosis, std::string remedy = {}) {
  report.status = status;
  report.diagnosis = std::move(diagnosis);
  report.remedy = std::move(remedy);
}

void look_at(FileReport& report, const Expectation& expectation, const VerifyOptions& options) {
  struct stat s {};
  if (::lstat(report.path.c_str(), &s) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return fail(report, FileStatus::missing, "is not there");
    return fail(report, FileStatus::unreadable, Error::from_errno("stat", errno).message());
  }
  if (!options.follow_links) {
    if (const auto target = link_out_of(report.path, expectation.root)) {
      return fail(report, FileStatus::failed,
                  fmt::format("is a link out of the folder, to {}; it was not followed",
                              escape_for_terminal(target->string())),
                  "use --follow-links, or --root where the weights lie");
    }
  }
  if (S_ISLNK(s.st_mode) && ::stat(report.path.c_str(), &s) != 0) {
    return fail(report, FileStatus::missing, "is a dangling link", "download it again");
  }
  try {
    const File file = File::open(report.path);
    report.size = file.size();
    report.identity = file.identity();
    const Diagnosis diagnosis = diagnose_cheaply(file, report.expected_size, report.expected);
    if (diagnosis) return fail(report, FileStatus::failed, diagnosis.sentence, diagnosis.remedy);
    if (const Holes holes = find_holes(file); holes.bytes >= kHolesWorthNaming) {
      report.findings.push_back(
          {.severity = Severity::warning,
           .code = std::string(kNeverWritten),
           .message = fmt::format("has {} that were never written, the first at byte {}: a "
                                  "preallocated download that was not finished, or a sparse copy",
                                  human_bytes(holes.bytes), holes.first),
           .file = report.name,
           .offset = holes.first});
    }
    report.status = report.expected ? FileStatus::ok : FileStatus::unchecked;
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

// What is there without being expected. Where nobody expects anything (a plain folder) it is not extra.
std::vector<FileReport> unexpected(const Expectation& expectation, const VerifyOptions& options,
                                   const OwnFiles& own, Findings& findings) {
  std::vector<FileReport> reports;
  std::error_code error;
  if (!expectation.owns_root || !fs::is_directory(expectation.root, error)) return reports;
  const bool plain = std::none_of(expectation.files.begin(), expectation.files.end(),
                                  [](const ExpectedFile& f) { return f.digest.has_value(); });
  std::set<std::string> known;
  for (const ExpectedFile& file : expectation.files) known.insert(file.name);
  const std::set<std::string> settled(expectation.settled.begin(), expectation.settled.end());
  const std::vector<std::string_view> skip(expectation.ignored.begin(), expectation.ignored.end());
  for (const TreeEntry& entry : list_tree(expectation.root, skip)) {
    if (known.contains(entry.name) || is_settled(entry.name, settled)) continue;
    FileReport report{.name = entry.name, .path = expectation.root / entry.name};
    if (is_ignored(entry.name, expectation) || own.contains(report.path)) continue;
    std::error_code ignored;
    if (entry.kind == TreeEntry::Kind::link && fs::is_directory(report.path, ignored)) {
      findings.push_back(folder_link(entry, report.path, expectation.root));
      continue;
    }
    if (entry.kind == TreeEntry::Kind::unreadable) {
      fail(report, FileStatus::unreadable, "cannot be listed or looked at: permission denied?");
    } else {
      look_at(report, expectation, options);
      const bool looked_at = report.status == FileStatus::unchecked || report.status == FileStatus::failed;
      if (!plain && looked_at) report.status = FileStatus::extra;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

std::vector<FileReport> survey(const Expectation& expectation, const VerifyOptions& options,
                               Findings& findings) {
  std::vector<FileReport> reports;
  const OwnFiles own(options.own_files);
  for (const ExpectedFile& file : expectation.files) {
    if (!file.digest && own.contains(file.path)) continue;  // of a plain folder, every file is listed
    reports.push_back({.name = file.name,
                       .path = file.path,
                       .expected = file.digest,
                       .expected_size = file.size,
                       .trust = file.trust});
  }
  parallel_for(options.jobs, reports.size(),
               [&](std::size_t i) { look_at(reports[i], expectation, options); });
  std::vector<FileReport> others = unexpected(expectation, options, own, findings);
  std::move(others.begin(), others.end(), std::back_inserter(reports));
  std::sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return reports;
}

}  // namespace assay
