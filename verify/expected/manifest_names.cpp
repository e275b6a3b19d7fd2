#include "verify/expected/manifest_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/system/file.h"

namespace assay {
namespace {

// `sha256sum ./*` and `find . -exec sha256sum` write "./name".
std::string_view without_leading_dot(std::string_view name) {
  while (name.starts_with("./")) {
    name.remove_prefix(2);
    while (name.starts_with('/')) name.remove_prefix(1);
  }
  return name;
}

bool has_below(const fs::path& root, std::string_view name) {
  std::error_code ignored;
  return is_safe_relative_path(name) && fs::exists(fs::symlink_status(root / name, ignored));
}

// The shortest beginning of `name` without which it is a file below `root`.
std::optional<std::string> prefix_of(std::string_view name, const fs::path& root) {
  for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    if (has_below(root, name.substr(slash + 1))) return std::string(name.substr(0, slash + 1));
  }
  return std::nullopt;
}

void note(ChecksumManifest& manifest, std::string code, std::string message) {
  manifest.findings.push_back(
      {.severity = Severity::note, .code = std::move(code), .message = std::move(message)});
}

}  // namespace

void fit_names(ChecksumManifest& manifest, const fs::path& root) {
  auto& entries = manifest.entries;
  for (ManifestEntry& entry : entries) {
    const std::size_t dots = entry.name.size() - without_leading_dot(entry.name).size();
    if (dots > 0) entry.name.erase(0, dots);
  }
  std::map<std::string, std::size_t> prefixes;  // and how many names are found without each
  for (std::size_t i = 0; i < std::min(kNamesTried, entries.size()); ++i) {
    if (has_below(root, entries[i].name)) return;
    if (auto prefix = prefix_of(entries[i].name, root)) ++prefixes[std::move(*prefix)];
  }
  if (prefixes.empty()) return;
  const std::string prefix =
      std::max_element(prefixes.begin(), prefixes.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const std::size_t elsewhere = std::erase_if(entries, [&](ManifestEntry& entry) {
    if (!entry.name.starts_with(prefix)) return true;
    entry.name.erase(0, prefix.size());
    return false;
  });
  note(manifest, "manifest.prefix_removed",
       fmt::format("names in the manifest begin with {}, which is taken for this folder", prefix));
  if (elsewhere > 0) {
    note(manifest, "manifest.other_folders",
         fmt::format("{} names in the manifest are of other folders: not looked for", elsewhere));
  }
}

}  // namespace assay
