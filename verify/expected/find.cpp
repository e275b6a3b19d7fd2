#include "verify/expected/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/error.h"
#include "verify/expected/assemble.h"
#include "verify/expected/git.h"
#include "verify/expected/git_objects.h"
#include "verify/expected/hub_cache.h"
#include "verify/expected/local_dir.h"
#include "verify/expected/manifest.h"
#include "verify/expected/modelscope_download.h"
#include "verify/expected/oci_contents.h"
#include "verify/expected/oci_layout.h"
#include "verify/expected/ollama_store.h"
#include "verify/expected/ramalama_store.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

void note(Expectation& out, std::string code, std::string message, std::string remedy = {}) {
  out.findings.push_back({.severity = Severity::note,
                          .code = std::move(code),
                          .message = std::move(message),
                          .remedy = std::move(remedy)});
}

// What the commit has to say about `path`: its word about weights, or why it has none. A model in a folder
// that some repository merely contains (a home directory under git, say) is not that repository's.
struct CommitWord {
  std::optional<Expectation> expectation;
  std::optional<git::NoWord> no_word;  // of a repository that should have one
  std::string unused;                  // of one that is about other things
};

CommitWord ask_commit(const fs::path& path, const std::vector<std::string>& only) {
  CommitWord word;
  try {
    if (!git::Repository::find(path)) return word;
    Expectation out = expect_from_git(path);
    // A folder of which the commit cannot be read may well be the one that held them.
    const bool unknown = has_errors(out.findings);
    const bool holds = std::any_of(out.files.begin(), out.files.end(), [&](const ExpectedFile& file) {
      return file.trust->source == TrustSource::lfs_pointer || may_hold_weights(file.name) ||
             std::find(only.begin(), only.end(), file.name) != only.end();
    });
    if (holds || unknown || !is_folder(path))
      word.expectation = std::move(out);
    else
      word.unused = "it lies in a git repository whose commit holds no weights";
  } catch (const git::NotHeld& error) {
    word.unused = "its git repository says nothing: " + error.message();
  } catch (const git::NoWord& error) {
    word.no_word = error;
  }
  return word;
}

// The --local-dir download that holds `path`: itself or a folder above it.
std::optional<Expectation> download_around(const fs::path& path) {
  for (fs::path folder = is_folder(path) ? path : path.parent_path();; folder = folder.parent_path()) {
    if (is_local_dir_download(folder)) {
      Expectation out = expect_from_local_dir(folder);
      if (folder == path) return out;
      const std::string inside = path.lexically_relative(folder).generic_string();
      if (is_folder(path))
        narrow_to_folder(out, inside);
      else
        narrow_to_file(out, inside);
      if (out.files.empty()) return std::nullopt;
      return out;
    }
    if (!folder.has_relative_path()) return std::nullopt;
  }
}

// Files that the commit does not know, or has no digest of, by the download's word: weights that git was told
// to ignore, say. Where both know a digest the commit's holds, whose id can be compared with the publisher's.
void join(Expectation& commit, Expectation download) {
  std::map<std::string_view, ExpectedFile*> known;
  for (ExpectedFile& file : commit.files) known[file.name] = &file;
  std::vector<ExpectedFile> more;
  std::error_code ignored;
  for (ExpectedFile& file : download.files) {
    const auto it = known.find(file.name);
    const bool here = file.trust->source == TrustSource::download_metadata ||
                      fs::exists(fs::symlink_status(download.path_of(file), ignored));
    if (it == known.end()) {
      if (!here) continue;
      if (download.root != commit.root) file.elsewhere = download.path_of(file);
      more.push_back(std::move(file));
      continue;
    }
    ExpectedFile& by_commit = *it->second;
    if (file.digest == by_commit.digest) by_commit.xet = file.xet;
    if (!by_commit.digest) {
      by_commit.digest = file.digest;
      by_commit.xet = file.xet;
      by_commit.size = file.size;
      by_commit.trust = file.trust;
    } else if (file.digest && file.digest->kind == by_commit.digest->kind &&
               file.digest != by_commit.digest) {
      commit.findings.push_back({.severity = Severity::note,
                                 .code = "find.sources_differ",
                                 .message = "the commit and the download's metadata name different "
                                            "contents; the commit's are looked for",
                                 .file = file.name});
    }
  }
  note(commit, "find.also_download",
       more.empty()
           ? "a download's metadata lies here too; the commit is asked, whose id can be compared "
             "with the publisher's"
           : fmt::format("a download's metadata lies here too: it vouches for {} of the files, which "
                         "the commit does not know",
                         more.size()));
  std::move(more.begin(), more.end(), std::back_inserter(commit.files));
  std::move(download.findings.begin(), download.findings.end(), std::back_inserter(commit.findings));
  commit.ignored.push_back(".cache");
  finish(commit);
}

void mention_manifests(const fs::path& folder, Expectation& out) {
  for (const ExpectedFile& file : out.files) {
    const fs::path name = fs::path(file.name);
    const std::string base = name.filename().string();
    const bool looks_like_one = base.starts_with("SHA256SUMS") || base.starts_with("sha256sum") ||
                                base.ends_with(".sha256") || base.ends_with(".sha256sum") ||
                                base == "bom.json" || base.ends_with(".cdx.json") ||
                                base.ends_with(".spdx.json") || base.ends_with(".spdx");
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
  if (!options.git && !options.sha256 && !options.manifest)
    throw Error::usage("--rev and --root ask a git commit, --no-git none").remedy("give one of them");
  const std::optional<fs::path> root = options.root ? std::optional(plain_path(*options.root)) : std::nullopt;
  if (options.sha256) return expect_from_sha256(*options.sha256, root.value_or(path));
  if (options.manifest && is_oci_layout(*options.manifest))
    return expect_from_oci_contents(*options.manifest, options.pin, root.value_or(path));
  if (options.manifest) return expect_from_manifest(*options.manifest, root.value_or(path), options.only);
  return expect_from_git(path, options.rev.value_or("HEAD"), root);
}

Expectation signed_model(const fs::path& path, const FindOptions& options) {
  if (options.sha256 || options.manifest || options.rev)
    throw Error::usage("a signature says what is right, and so do --sha256, --manifest and --rev")
        .remedy("give one of them");
  return expect_from_signature(*options.signature, options.root ? plain_path(*options.root) : path,
                               options.only);
}

// A signature that nobody was named for.
void mention_signature(const fs::path& path, Expectation& out) {
  try {
    const auto bundle = find_bundle(path);
    if (!bundle) return;
    note(out, "find.signature_unused",
         fmt::format("{} may be the publisher's signature", bundle->filename().string()),
         "say whom to believe: --public-key, --ca, or --identity with --issuer");
  } catch (const Error&) {
    note(out, "find.signature_unused", "there are several signatures here", "--signature FILE");
  }
}

}  // namespace

fs::path plain_path(const fs::path& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(fs::symlink_status(path, error))) {
    throw Error::input("no such file or folder").in(path).remedy("check the path");
  }
  if (is_folder(path)) return fs::canonical(path);
  const fs::path named = path.has_filename() ? path : path.parent_path();
  return fs::canonical(fs::absolute(named).parent_path()) / named.filename();
}

namespace {

Expectation find_for(const fs::path& path, const FindOptions& options) {
  if (options.signature) return signed_model(path, options);
  if (options.sha256 || options.manifest || options.rev || options.root) return named_by_user(path, options);
  if (is_oci_layout(path)) return expect_from_oci(path, options.pin);
  if (ollama_store_of(path)) return expect_from_ollama(path, options.pin);
  if (options.pin)
    throw Error::usage("--digest is of a model's manifest in a store, and this is none").in(path);
  if (const auto models = ramalama_models_at(path); !models.empty())
    return expect_from_ramalama(path, models);
  if (hub_cache_place(path)) {
    Expectation out = expect_from_hub_cache(path);
    // A file that somebody put into a snapshot is nobody's business there.
    if (!out.files.empty() || !out.findings.empty() || is_folder(path)) return out;
  }

  CommitWord commit = options.git ? ask_commit(path, options.only) : CommitWord{};
  auto download = download_around(path);
  if (commit.no_word && !download) throw *commit.no_word;
  if (commit.no_word) commit.unused = "its git repository says nothing: " + commit.no_word->message();
  if (commit.expectation) {
    if (download) join(*commit.expectation, std::move(*download));
    return std::move(*commit.expectation);
  }
  if (!download && is_modelscope_download(path)) return expect_from_modelscope(path);
  Expectation out = download ? std::move(*download) : expect_nothing(path);
  if (!commit.unused.empty()) note(out, "find.git_unused", commit.unused);
  if (!download) mention_manifests(path, out);
  return out;
}

}  // namespace

Expectation find_expectation(const fs::path& given, const FindOptions& options) {
  const fs::path path = plain_path(given);
  Expectation out = find_for(path, options);
  if (!options.signature) mention_signature(path, out);
  if (!options.only.empty()) narrow_to_files(out, path, options.only);
  return out;
}

}  // namespace assay
