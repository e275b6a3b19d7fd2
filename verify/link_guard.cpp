#include "verify/link_guard.h"

#include <algorithm>

namespace assay {

bool is_below(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

LinkGuard::LinkGuard(const fs::path& root) : root_(root.lexically_normal().string()) {
  if (!root_.ends_with('/')) root_ += '/';
  std::error_code error;
  real_root_ = fs::canonical(root, error);
}

bool LinkGuard::is_inside(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = folders_.try_emplace(folder, true);
  if (!fresh) return it->second;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return it->second = error || is_below(real, real_root_);
}

std::optional<fs::path> LinkGuard::leads_out(const fs::path& path, bool is_link) {
  const std::string& name = path.native();
  if (real_root_.empty() || !name.starts_with(root_)) return std::nullopt;
  if (!is_link && is_inside(name.substr(0, name.rfind('/')))) return std::nullopt;
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error || is_below(real, real_root_)) return std::nullopt;
  return real;
}

}  // namespace assay
