#include "verify/expected/assemble.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "core/system/finding_collector.h"

namespace assay {
namespace {

// The name as a file system that folds case and composes Unicode (macOS, Windows) compares it.
std::string folded(std::string_view name) {
  utf8proc_uint8_t* raw = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                   static_cast<utf8proc_ssize_t>(name.size()), &raw,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                                                  UTF8PROC_CASEFOLD | UTF8PROC_IGNORE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  if (length < 0) return std::string(name);  // not UTF-8: such systems have no such name
  return std::string(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length));
}

void merge_doubles(Expectation& e) {
  std::vector<ExpectedFile> kept;
  for (ExpectedFile& file : e.files) {
    if (kept.empty() || kept.back().name != file.name) {
      kept.push_back(std::move(file));
      continue;
    }
    if (kept.back().digest == file.digest && kept.back().size == file.size) continue;
    e.findings.push_back({.severity = Severity::error,
                          .code = "expected.contradiction",
                          .message = "is listed twice, with different digests or sizes; the first is used",
                          .file = file.name});
  }
  e.files = std::move(kept);
}

void report_file_and_folder(Expectation& e) {
  std::unordered_set<std::string_view> names;
  for (const ExpectedFile& file : e.files) names.insert(file.name);
  std::unordered_set<std::string_view> reported;
  for (const ExpectedFile& file : e.files) {
    const std::string_view name = file.name;
    for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      const std::string_view folder = name.substr(0, slash);
      if (!names.contains(folder) || !reported.insert(folder).second) continue;
      e.findings.push_back({.severity = Severity::error,
                            .code = "expected.file_and_folder",
                            .message = fmt::format("is listed as a file and, by {}, as a folder", file.name),
                            .file = std::string(folder)});
    }
  }
}

void report_collisions(Expectation& e) {
  std::unordered_map<std::string, const ExpectedFile*> first;
  for (const ExpectedFile& file : e.files) {
    const auto [it, fresh] = first.try_emplace(folded(file.name), &file);
    if (fresh) continue;
    e.findings.push_back(
        {.severity = Severity::warning,
         .code = "expected.name_collision",
         .message = fmt::format("and {} differ only in case or Unicode form: macOS and Windows "
                                "keep one of them",
                                it->second->name),
         .file = file.name});
  }
}

}  // namespace

bool accept_name(std::string_view name, Findings& findings) {
  if (is_safe_relative_path(name)) return true;
  findings.push_back({.severity = Severity::error,
                      .code = "expected.unsafe_name",
                      .message =
                          "is not a name of a file below the folder (absolute, climbing, or with a backslash "
                          "or drive letter): not looked for",
                      .file = std::string(name)});
  return false;
}

void finish(Expectation& e) {
  const auto by_name = [](const ExpectedFile& a, const ExpectedFile& b) { return a.name < b.name; };
  std::stable_sort(e.files.begin(), e.files.end(), by_name);
  std::sort(e.settled.begin(), e.settled.end());
  merge_doubles(e);
  report_file_and_folder(e);
  report_collisions(e);
  FindingCollector bounded;
  for (Finding& finding : e.findings) bounded.add(std::move(finding));
  e.findings = bounded.take();
}

void narrow_to_folder(Expectation& e, std::string_view subfolder) {
  if (subfolder.empty()) return;
  const std::string prefix = std::string(subfolder) + "/";
  const auto rebase = [&](std::string& name) {
    if (!name.starts_with(prefix)) return false;
    name.erase(0, prefix.size());
    return true;
  };
  std::erase_if(e.files, [&](ExpectedFile& file) { return !rebase(file.name); });
  std::erase_if(e.settled, [&](std::string& name) { return !rebase(name); });
  std::erase_if(e.findings, [&](Finding& finding) { return !finding.file.empty() && !rebase(finding.file); });
  e.ignored.clear();
  e.root /= subfolder;
}

bool narrow_to_file(Expectation& e, std::string_view name) {
  const auto slash = name.rfind('/');
  if (slash != name.npos) narrow_to_folder(e, name.substr(0, slash));
  const std::string_view base = slash == name.npos ? name : name.substr(slash + 1);
  std::erase_if(e.files, [&](const ExpectedFile& file) { return file.name != base; });
  std::erase_if(e.findings, [&](const Finding& finding) { return finding.file != base; });
  e.settled.clear();
  e.complete = false;
  e.owns_root = false;
  return !e.files.empty();
}

void add_unlisted_files(Expectation& e) {
  std::unordered_set<std::string> listed(e.settled.begin(), e.settled.end());
  for (const ExpectedFile& file : e.files) listed.insert(file.name);
  for (const TreeEntry& entry : list_tree(e.root)) {
    const std::string top = entry.name.substr(0, entry.name.find('/'));
    if (listed.contains(entry.name) || std::find(e.ignored.begin(), e.ignored.end(), top) != e.ignored.end())
      continue;
    std::error_code error;
    const fs::path path = e.root / entry.name;
    if (entry.kind == TreeEntry::Kind::unreadable) {
      e.findings.push_back({.code = "expected.unreadable", .message = "cannot be read", .file = entry.name});
    } else if (entry.kind == TreeEntry::Kind::link && !fs::exists(path, error)) {
      e.findings.push_back(
          {.code = "expected.dangling_link", .message = "is a symbolic link to nothing", .file = entry.name});
    } else if (fs::is_regular_file(path, error)) {
      e.files.push_back({.name = entry.name, .path = path});
    }
  }
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  return fs::exists(file, error) &&
         fs::equivalent(file.has_parent_path() ? file.parent_path() : fs::path("."), folder, error);
}

bool is_commit_id(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string commit_detail(std::string_view commit) {
  return fmt::format("commit {}", commit.substr(0, 10));
}

}  // namespace assay
