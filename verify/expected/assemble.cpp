#include "verify/expected/assemble.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/system/finding_collector.h"
#include "core/system/tree_names.h"

namespace assay {
namespace {

// The name as a file system that folds case and composes Unicode (macOS, Windows) compares it.
std::string folded(std::string_view name) {
  if (std::all_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x80; })) {
    std::string lower(name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  }
  utf8proc_uint8_t* raw = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                   static_cast<utf8proc_ssize_t>(name.size()), &raw,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                                                  UTF8PROC_CASEFOLD | UTF8PROC_IGNORE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  if (length < 0) return std::string(name);  // not UTF-8: such systems have no such name
  return std::string(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length));
}

// Equal names stay in their order. By their places: a stable sort of the files themselves would set aside room
// for half of them.
void sort_by_name(std::vector<ExpectedFile>& files) {
  const auto by_name = [](const ExpectedFile& a, const ExpectedFile& b) { return a.name < b.name; };
  if (std::is_sorted(files.begin(), files.end(), by_name)) return;
  std::vector<std::uint32_t> from(files.size());  // where the file of each place is now
  std::iota(from.begin(), from.end(), std::uint32_t{0});
  std::sort(from.begin(), from.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = files[a].name.compare(files[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  for (std::uint32_t start = 0; start < files.size(); ++start) {
    if (from[start] == start) continue;
    ExpectedFile first = std::move(files[start]);
    std::uint32_t at = start;
    while (from[at] != start) {
      const std::uint32_t next = std::exchange(from[at], at);
      files[at] = std::move(files[next]);
      at = next;
    }
    files[at] = std::move(first);
    from[at] = at;
  }
}

void merge_doubles(Expectation& e, FindingCollector& findings) {
  std::size_t kept = 0;  // files before here stay
  for (std::size_t i = 0; i < e.files.size(); ++i) {
    ExpectedFile& file = e.files[i];
    if (kept == 0 || e.files[kept - 1].name != file.name) {
      if (kept != i) e.files[kept] = std::move(file);
      ++kept;
      continue;
    }
    const ExpectedFile& first = e.files[kept - 1];
    if (first.digest == file.digest && first.size == file.size) continue;
    findings.add({.severity = Severity::error,
                  .code = "expected.contradiction",
                  .message = "is listed twice, with different digests or sizes; the first is used",
                  .file = file.name});
  }
  e.files.resize(kept);
}

// The folders of a name are looked up among the names, which are sorted; files of one folder follow each
// other, so that most ask what the one before has asked.
void report_file_and_folder(const Expectation& e, FindingCollector& findings) {
  const auto is_file = [&](std::string_view name) {
    const auto at = std::lower_bound(e.files.begin(), e.files.end(), name,
                                     [](const ExpectedFile& file, auto n) { return file.name < n; });
    return at != e.files.end() && at->name == name;
  };
  std::unordered_set<std::string_view> reported;
  std::string_view before;  // the folder of the last file, its slash included
  for (const ExpectedFile& file : e.files) {
    const std::string_view name = file.name;
    for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      const std::string_view folder = name.substr(0, slash);
      if (before.starts_with(name.substr(0, slash + 1)) || !is_file(folder)) continue;
      if (!reported.insert(folder).second) continue;
      findings.add({.severity = Severity::error,
                    .code = "expected.file_and_folder",
                    .message = fmt::format("is listed as a file and, by {}, as a folder", file.name),
                    .file = std::string(folder)});
    }
    before = name.substr(0, name.rfind('/') + 1);
  }
}

// By a hash of each folded name: the names themselves, folded, would be the list once more.
void report_collisions(const Expectation& e, FindingCollector& findings) {
  struct Folded {
    std::size_t hash;
    std::uint32_t file;
  };
  std::vector<Folded> all(e.files.size());
  for (std::uint32_t i = 0; i < all.size(); ++i)
    all[i] = {std::hash<std::string>()(folded(e.files[i].name)), i};
  std::sort(all.begin(), all.end(), [](const Folded& a, const Folded& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.file < b.file;
  });
  std::map<std::uint32_t, std::uint32_t> first_of;  // a file, and the first with its folded name
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].hash == all[i].hash) ++end;
    std::map<std::string, std::uint32_t> first;
    for (std::size_t k = i; end - i > 1 && k < end; ++k) {
      const auto [it, fresh] = first.try_emplace(folded(e.files[all[k].file].name), all[k].file);
      if (!fresh) first_of.emplace(all[k].file, it->second);
    }
    i = end;
  }
  for (const auto& [file, first] : first_of) {
    findings.add({.severity = Severity::warning,
                  .code = "expected.name_collision",
                  .message = fmt::format("and {} differ only in case or Unicode form: macOS and Windows "
                                         "keep one of them",
                                         e.files[first].name),
                  .file = e.files[file].name});
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
  sort_by_name(e.files);
  std::sort(e.settled.begin(), e.settled.end());
  FindingCollector bounded;
  for (Finding& finding : e.findings) bounded.add(std::move(finding));
  merge_doubles(e, bounded);
  report_file_and_folder(e, bounded);
  report_collisions(e, bounded);
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

void narrow_to_files(Expectation& e, const fs::path& folder, std::span<const std::string> names) {
  std::unordered_set<std::string> wanted(names.begin(), names.end());
  std::erase_if(e.files, [&](const ExpectedFile& file) { return !wanted.contains(file.name); });
  std::erase_if(e.settled, [&](const std::string& name) { return !wanted.contains(name); });
  std::erase_if(e.findings, [&](const Finding& f) { return !f.file.empty() && !wanted.contains(f.file); });
  for (const ExpectedFile& file : e.files) wanted.erase(file.name);
  for (const std::string& name : e.settled) wanted.erase(name);
  for (const std::string& name : wanted)
    e.files.push_back(
        {.name = name, .elsewhere = folder == e.root ? Box<fs::path>() : Box<fs::path>(folder / name)});
  std::sort(e.files.begin(), e.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  e.complete = false;
  e.owns_root = false;
}

void add_unlisted_files(Expectation& e) {
  std::unordered_set<std::string> listed(e.settled.begin(), e.settled.end());
  for (const ExpectedFile& file : e.files) listed.insert(file.name);
  const std::vector<std::string_view> skip(e.ignored.begin(), e.ignored.end());
  for (const TreeEntry& entry : list_names(e.root, skip)) {
    const std::string top = entry.name.substr(0, entry.name.find('/'));
    if (listed.contains(entry.name) || std::find(e.ignored.begin(), e.ignored.end(), top) != e.ignored.end())
      continue;
    std::error_code error;
    if (entry.kind == TreeEntry::Kind::unreadable) {
      e.findings.push_back({.code = "expected.unreadable", .message = "cannot be read", .file = entry.name});
    } else if (entry.kind == TreeEntry::Kind::link && !fs::exists(e.root / entry.name, error)) {
      e.findings.push_back(
          {.code = "expected.dangling_link", .message = "is a symbolic link to nothing", .file = entry.name});
    } else if (entry.kind == TreeEntry::Kind::regular || fs::is_regular_file(e.root / entry.name, error)) {
      e.files.push_back({.name = entry.name});
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
