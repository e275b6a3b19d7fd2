#include "verify/expected/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/system/error.h"
#include "verify/expected/assemble.h"
#include "verify/expected/git.h"
#include "verify/expected/hub_cache.h"
#include "verify/expected/local_dir.h"
#include "verify/expected/manifest.h"

namespace assay {
namespace {

bool is_weight_file(std::string_view name) {
  static constexpr std::array kEndings = {".safetensors", ".gguf", ".bin",  ".pt",
                                          ".pth",         ".ckpt", ".onnx", ".npz"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void note(Expectation& out, std::string code, std::string message, std::string remedy = {}) {
  out.findings.push_back({.severity = Severity::note,
                          .code = std::move(code),
                          .message = std::move(message),
                          .remedy = std::move(remedy)});
}

// The commit's word about `path`, if it has one about weights: a model in a folder that some repository
// merely contains (a home directory under git, say) is not that repository's.
std::optional<Expectation> weights_of_a_commit(const fs::path& path, std::string& why_not) {
  try {
    if (!is_in_git_repository(path)) return std::nullopt;
    Expectation out = expect_from_git(path);
    const bool holds = std::any_of(out.files.begin(), out.files.end(), [](const ExpectedFile& file) {
      return file.trust.source == TrustSource::lfs_pointer || is_weight_file(file.name);
    });
    if (holds || (!is_folder(path) && !out.files.empty())) return out;
    why_not = "it lies in a git repository whose commit holds no weights";
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage)
      throw;  // a bare repository: the user has to say where the files are
    why_not = "its git repository says nothing: " + error.message();
  }
  return std::nullopt;
}

// The --local-dir download that holds `path`: itself or a folder above it.
std::optional<Expectation> download_around(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  for (fs::path folder = is_folder(path) ? whole : whole.parent_path();; folder = folder.parent_path()) {
    if (is_local_dir_download(folder)) {
      const std::string inside = whole.lexically_relative(folder).generic_string();
      if (inside == "." || inside == "./" || whole == folder) return expect_from_local_dir(folder);
      Expectation out = expect_from_local_dir(folder);
      const std::string name = inside.ends_with('/') ? inside.substr(0, inside.size() - 1) : inside;
      if (is_folder(path))
        narrow_to_folder(out, name);
      else
        narrow_to_file(out, name);
      if (out.files.empty()) return std::nullopt;
      return out;
    }
    if (!folder.has_relative_path()) return std::nullopt;
  }
}

void mention_manifests(const fs::path& folder, Expectation& out) {
  for (const ExpectedFile& file : out.files) {
    const fs::path name = fs::path(file.name);
    const std::string base = name.filename().string();
    const bool looks_like_one = base.starts_with("SHA256SUMS") || base.starts_with("sha256sum") ||
                                base.ends_with(".sha256") || base.ends_with(".sha256sum");
    if (!looks_like_one || name.has_parent_path()) continue;
    note(out, "find.manifest_unused", fmt::format("{} may hold the digests", base),
         fmt::format("--manifest {}", (folder / name).string()));
    return;
  }
}

Expectation named_by_user(const fs::path& path, const FindOptions& options) {
  if (options.sha256 && options.manifest) throw Error::usage("--sha256 and --manifest exclude each other");
  if ((options.sha256 || options.manifest) && options.rev) {
    throw Error::usage("--rev asks a git commit, --manifest and --sha256 do not").remedy("give one of them");
  }
  if (options.sha256) return expect_from_sha256(*options.sha256, options.root ? *options.root : path);
  if (options.manifest) return expect_from_manifest(*options.manifest, options.root ? *options.root : path);
  return expect_from_git(path, options.rev.value_or("HEAD"), options.root);
}

}  // namespace

Expectation find_expectation(const fs::path& path, const FindOptions& options) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) {
    throw Error::input("no such file or folder").in(path).remedy("check the path");
  }
  if (options.sha256 || options.manifest || options.rev || options.root) return named_by_user(path, options);
  if (hub_cache_place(path)) {
    Expectation out = expect_from_hub_cache(path);
    // A file that somebody put into a snapshot is nobody's business there.
    if (!out.files.empty() || !out.findings.empty() || is_folder(path)) return out;
  }

  std::string why_not_git;
  auto commit = weights_of_a_commit(path, why_not_git);
  auto download = download_around(path);
  if (commit) {
    if (download) {
      note(*commit, "find.also_download",
           "a download's metadata lies here too; the commit is asked, whose id can be compared with the "
           "publisher's");
    }
    return std::move(*commit);
  }
  Expectation out = download ? std::move(*download) : expect_nothing(path);
  if (!why_not_git.empty()) note(out, "find.git_unused", why_not_git);
  if (!download) mention_manifests(path, out);
  return out;
}

}  // namespace assay
