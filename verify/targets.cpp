#include "verify/targets.h"

#include <map>
#include <set>

#include "verify/expected/find.h"

namespace assay {
namespace {

std::string folder_as_spelled(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

std::vector<Target> targets_of(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return {{paths[0], paths[0]}};
  std::vector<Target> targets;
  std::set<fs::path> seen;
  std::map<fs::path, std::size_t> of_files;  // a folder, and which target its files are
  for (const std::string& spelled : paths) {
    const fs::path path = plain_path(spelled);
    if (!seen.insert(path).second) continue;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      targets.push_back({spelled, path});
      continue;
    }
    const auto [it, fresh] = of_files.try_emplace(path.parent_path(), targets.size());
    if (fresh) targets.push_back({folder_as_spelled(spelled), path.parent_path()});
    targets[it->second].files.push_back(path.filename().string());
  }
  for (Target& target : targets) {
    if (target.files.size() != 1) continue;
    target.path /= target.files[0];
    target.shown = (fs::path(target.shown) / target.files[0]).lexically_normal().string();
    target.files.clear();
  }
  return targets;
}

}  // namespace assay
