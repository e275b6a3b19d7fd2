#include "verify/make_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/formats/hash/hasher.h"
#include "core/system/error.h"
#include "core/system/threads.h"
#include "verify/chunks.h"
#include "verify/diagnose.h"
#include "verify/expected/assemble.h"
#include "verify/own_files.h"
#include "verify/state.h"

namespace assay {
namespace {

class Maker {
 public:
  Maker(const fs::path& path, const ManifestOptions& options)
      : given_(options.find.root.value_or(path)), options_(options) {
    made_.source = find_expectation(path, options.find);
    made_.findings = made_.source.findings;
    made_.manifest.chunk_bytes = options.chunk_bytes;
  }

  MadeManifest from_known_digests() {
    for (const ExpectedFile& file : made_.source.files) {
      if (file.digest && file.digest->kind == DigestKind::sha256) {
        made_.manifest.entries.push_back({file.name, *file.digest, {}, {}});
      } else {
        made_.omitted.push_back(file.name);
      }
    }
    return std::move(made_);
  }

  MadeManifest by_reading() {
    // A complete source names all there should be; otherwise whatever lies in the folder is meant.
    std::error_code ignored;
    if ((!made_.source.complete || options_.everything) && options_.find.only.empty() &&
        fs::is_directory(given_, ignored)) {
      if (options_.everything) std::erase(made_.source.ignored, ".cache");
      add_unlisted_files(made_.source);
      finish(made_.source);
    }
    leave_out();
    std::vector<bool> good = check_object_ids();
    hash(good);
    return std::move(made_);
  }

 private:
  const std::vector<ExpectedFile>& files() const { return made_.source.files; }

  // The manifest does not list itself: neither under -o nor when the shell redirects it into the folder.
  void leave_out() {
    const OwnFiles own(options_.written);
    std::erase_if(made_.source.files, [&](const ExpectedFile& file) {
      return (!file.digest && own.contains(made_.source.path_of(file))) ||
             (options_.left_out && options_.left_out(file.name));
    });
  }

  // Of a file that has not changed since it was hashed.
  bool recall(const ExpectedFile& file) {
    if (!state_ || options_.chunk_bytes > 0) return false;
    try {
      const fs::path path = made_.source.path_of(file);
      const FileIdentity now = File::open(path).identity();
      const auto entry = state_->find(path, now, DigestKind::sha256);
      if (!entry) return false;
      HashResult known{.digest = entry->digest, .bytes = now.size, .complete = true};
      if (accept(file, known)) made_.manifest.entries.push_back({file.name, entry->digest, now.size, {}});
      made_.bytes_known += now.size;
      return true;
    } catch (const Error&) {
      return false;  // told when it is read
    }
  }

  // Small files of a commit are known by object id, which takes a reading of its own.
  std::vector<bool> check_object_ids() {
    std::vector<bool> good(files().size(), true);
    std::vector<HashJob> jobs;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < files().size(); ++i) {
      const auto& digest = files()[i].digest;
      if (!digest || digest->kind != DigestKind::git_sha1) continue;
      jobs.push_back({made_.source.path_of(files()[i]), DigestKind::git_sha1, nullptr});
      of.push_back(i);
    }
    HashOptions options;
    options.jobs = options_.jobs;
    hash_files(jobs, options,
               [&](std::size_t j, HashResult&& result) { good[of[j]] = accept(files()[of[j]], result); });
    return good;
  }

  void hash(const std::vector<bool>& wanted) {
    if (options_.state) state_.emplace(*options_.state);
    const std::int64_t started_ns = wall_clock_ns();
    std::vector<HashJob> jobs;
    std::vector<std::size_t> of;
    std::vector<std::unique_ptr<ChunkSink>> sinks;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < files().size(); ++i) {
      if (!wanted[i] || recall(files()[i])) continue;
      if (options_.chunk_bytes > 0) sinks.push_back(std::make_unique<ChunkSink>(options_.chunk_bytes));
      jobs.push_back({made_.source.path_of(files()[i]), DigestKind::sha256,
                      sinks.empty() ? nullptr : sinks.back().get()});
      of.push_back(i);
      std::error_code error;
      const auto size = fs::file_size(jobs.back().path, error);
      if (!error) bytes += size;
    }
    Progress progress(options_.progress, "hashing", bytes);
    HashOptions options;
    options.jobs = options_.jobs;
    options.progress = &progress;
    hash_files(jobs, options, [&](std::size_t j, HashResult&& result) {
      const ExpectedFile& file = files()[of[j]];
      if (!accept(file, result)) return;
      made_.bytes_read += result.bytes;
      if (state_)
        state_->record(made_.source.path_of(file), {.identity = result.identity, .digest = result.digest},
                       started_ns);
      ManifestEntry entry{file.name, result.digest, result.bytes, {}};
      if (!sinks.empty()) entry.chunks = sinks[j]->digests();
      made_.manifest.entries.push_back(std::move(entry));
    });
    made_.interrupted = interrupted();
    save_state();
    auto& entries = made_.manifest.entries;
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  void save_state() {
    if (!state_) return;
    state_->save();
    if (state_->failure().empty()) return;
    made_.findings.push_back({.severity = Severity::warning,
                              .code = "state.not_saved",
                              .message = "could not be written: " + state_->failure(),
                              .file = options_.state->string(),
                              .remedy = "the next run reads everything again; free some space"});
  }

  bool accept(const ExpectedFile& file, const HashResult& result) {
    const auto refuse = [&](std::string code, const std::string& why, std::string remedy) {
      made_.findings.push_back({.code = std::move(code),
                                .message = why + ": left out of the manifest",
                                .file = file.name,
                                .remedy = std::move(remedy)});
      return false;
    };
    if (result.error) return refuse("manifest.unreadable", sentence_of(*result.error), "");
    if (!result.complete) return false;
    if (result.changed)
      return refuse("manifest.changed", "changed while it was read", "try again when it is at rest");
    const bool comparable = file.digest && file.digest->kind == result.digest.kind;
    if ((comparable && *file.digest != result.digest) || (file.size && *file.size != result.bytes)) {
      return refuse("manifest.not_as_expected", fmt::format("is not what the {} says", describe(*file.trust)),
                    "see what 'assay verify' says, and make the manifest from a good copy");
    }
    return true;
  }

  fs::path given_;
  const ManifestOptions& options_;
  std::optional<VerifyState> state_;
  MadeManifest made_;
};

}  // namespace

MadeManifest make_manifest(const fs::path& path, const ManifestOptions& options) {
  Maker maker(path, options);
  return options.hash || options.chunk_bytes > 0 ? maker.by_reading() : maker.from_known_digests();
}

}  // namespace assay
