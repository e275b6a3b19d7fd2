#include "core/system/temporary_name.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/system/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = ".tmp";

// Tells machines apart, and containers on one machine: process ids mean nothing beyond them. FNV-1a of the
// host's name and the inode of the namespace that process ids belong to.
std::uint32_t machine() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  struct stat s {};
  if (::stat("/proc/self/ns/pid", &s) != 0) s.st_ino = 0;
  std::uint32_t hash = 2166136261u;
  for (const char c : fmt::format("{}/{}", host.data(), s.st_ino)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash;
}

std::string prefix_of(const fs::path& target) {
  static const std::uint32_t kMachine = machine();
  return fmt::format(".{}.assay-{:08x}-", target.filename().string(), kMachine);
}

bool is_gone(std::string_view process) {
  const auto id = parse_u64(process);
  if (!id || *id == 0 || *id > INT32_MAX) return false;
  return ::kill(static_cast<pid_t>(*id), 0) != 0 && errno == ESRCH;
}

void remove_abandoned(const fs::path& folder, std::string_view prefix) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kEnd)) continue;
    const std::string_view process =
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - kEnd.size());
    if (is_gone(process)) ::unlink(it->path().c_str());
  }
}

}  // namespace

fs::path temporary_name(const fs::path& target) {
  const fs::path folder = target.parent_path();
  const std::string prefix = prefix_of(target);
  remove_abandoned(folder.empty() ? fs::path(".") : folder, prefix);
  return folder / fmt::format("{}{}{}", prefix, ::getpid(), kEnd);
}

}  // namespace assay
