#include "verify/expected/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_listing.h"
#include "verify/expected/hub_names.h"
#include "verify/expected/partial_download.h"

namespace assay {
namespace {

constexpr std::string_view kKinds[] = {"models--", "datasets--", "spaces--"};

bool is_repository_name(std::string_view name) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](auto kind) { return name.starts_with(kind); });
}

bool is_repository(const fs::path& path) {
  if (is_folder(path / "snapshots") && is_folder(path / "blobs")) return true;
  return is_repository_name(path.filename().string()) &&
         (is_folder(path / "snapshots") || is_folder(path / "blobs"));
}

std::vector<fs::path> repositories_in(const fs::path& cache) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(cache, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (is_repository_name(it->path().filename().string()) && is_repository(it->path()))
      found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->is_directory(ignored) && !it->is_symlink(ignored))
      names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The parts of a path into a snapshot: <repository>/snapshots/<commit>/<inside>.
struct SnapshotPath {
  fs::path repository;
  std::string commit;
  std::string inside;
};

std::optional<SnapshotPath> split_snapshot_path(const fs::path& path) {
  std::string inside;
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    const fs::path parent = at.parent_path();
    if (parent.filename() == "snapshots" && is_repository(parent.parent_path())) {
      return SnapshotPath{parent.parent_path(), at.filename().string(), inside};
    }
    inside = inside.empty() ? at.filename().string() : at.filename().string() + "/" + inside;
  }
  return std::nullopt;
}

// Absolute and without "." or "..", but with its links: a snapshot's name must not become its blob.
fs::path without_dots(const fs::path& path) {
  fs::path plain = fs::absolute(path).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

// Reads one models--… folder, snapshot by snapshot.
class Repository {
 public:
  // `prefix`: of the repository's folder below the root, "" or with a '/' at its end.
  Repository(fs::path folder, std::string prefix, Expectation& out)
      : folder_(std::move(folder)), prefix_(std::move(prefix)), out_(out) {}

  // `name_prefix`: of the snapshot's files below the root. Says whether its tree listing is there.
  bool snapshot(const std::string& commit, const std::string& name_prefix) {
    const fs::path place = folder_ / "snapshots" / commit;
    commit_ = commit;
    const auto listing = tree();
    DownloadedPart part;
    for (const TreeEntry& entry : list_tree(place)) {
      part.present.insert(entry.name);
      const HubListing::Entry* said = nullptr;
      if (listing) {
        const auto it = listing->files.find(entry.name);
        if (it != listing->files.end())
          said = &it->second;
        else if (entry.kind != TreeEntry::Kind::link)
          continue;  // extra: the listing is all there should be, and no blob's name speaks for it
      }
      file(place / entry.name, name_prefix + entry.name, entry, said);
    }
    if (!listing) {
      if (holds_models()) {
        Findings missed = missed_without_listing(part.present, name_prefix);
        std::move(missed.begin(), missed.end(), std::back_inserter(out_.findings));
      }
      return false;
    }
    for (const Finding& finding : listing->findings) out_.findings.push_back(finding);
    for (const auto& [name, said] : listing->files) {
      if (!part.present.contains(name)) part.absent.push_back(name);
    }
    const std::set<std::string> needed = missed(part);
    for (const std::string& name : needed) {
      const HubListing::Entry& said = listing->files.at(name);
      out_.files.push_back({.name = name_prefix + name,
                            .digest = said.digest,
                            .trust = tree_trust(),
                            .size = said.size,
                            .xet = boxed(said.xet),
                            .elsewhere = elsewhere(place / name, name_prefix + name)});
    }
    std::erase_if(part.absent, [&](const std::string& name) { return needed.contains(name); });
    note_left_out(part.absent, name_prefix, out_.findings);
    return true;
  }

  // Blobs no snapshot read here links to, and unfinished ones. `all_snapshots`: were all read?
  void leftovers(bool all_snapshots) {
    std::size_t orphans = 0;
    std::uint64_t bytes = 0;
    for (const TreeEntry& entry : list_tree(folder_ / "blobs")) {
      if (is_incomplete(entry.name))
        incomplete(entry, prefix_ + "blobs/");
      else if (entry.kind == TreeEntry::Kind::regular && !linked_.contains(entry.name))
        ++orphans, bytes += entry.size;
    }
    if (!all_snapshots || orphans == 0) return;
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "hub_cache.orphan_blobs",
         .message = fmt::format("{} {} ({}) belong{} to no snapshot: not checked", orphans,
                                orphans == 1 ? "blob" : "blobs", human_bytes(bytes), orphans == 1 ? "s" : ""),
         .file = prefix_ + "blobs",
         .remedy = "'hf cache prune' removes them"});
  }

  // Downloads that were not finished, by their names in the folder of blobs.
  void unfinished() {
    for (const TreeEntry& entry : list_tree(folder_ / "blobs")) {
      if (is_incomplete(entry.name)) incomplete(entry, "");
    }
  }

  void references() {
    for (const TreeEntry& entry : list_tree(folder_ / "refs")) {
      if (entry.kind != TreeEntry::Kind::regular) continue;
      std::string commit;
      try {
        commit = trim(read_small_file(folder_ / "refs" / entry.name, 256));
      } catch (const Error&) {
        commit.clear();
      }
      if (is_commit_id(commit) && is_folder(folder_ / "snapshots" / commit)) continue;
      const bool id = is_commit_id(commit);
      out_.findings.push_back(
          {.severity = Severity::warning,
           .code = id ? "hub_cache.ref_without_snapshot" : "hub_cache.bad_ref",
           .message = id ? fmt::format("names commit {}, of which there is no snapshot", commit.substr(0, 10))
                         : std::string("does not hold the id of a commit"),
           .file = prefix_ + "refs/" + entry.name,
           .remedy = "run the download again"});
    }
  }

 private:
  bool holds_models() const {
    const std::string name = folder_.filename().string();
    return !name.starts_with("datasets--") && !name.starts_with("spaces--");
  }

  Box<fs::path> elsewhere(fs::path path, const std::string& name) const {
    return path == out_.root / name ? Box<fs::path>() : Box<fs::path>(std::move(path));
  }

  Trust tree_trust() const {
    return {TrustSource::hub_tree_cache, "trees/" + commit_.substr(0, 10) + ".json", true, commit_};
  }

  std::optional<HubListing> tree() {
    const fs::path path = folder_ / "trees" / (commit_ + ".json");
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) return std::nullopt;
    if (auto listing = read_tree_cache(path)) return listing;
    say(Severity::note, "hub_cache.unknown_tree", "is of a format version not known here: not used",
        prefix_ + "trees/" + commit_ + ".json");
    return std::nullopt;
  }

  void file(const fs::path& path, const std::string& name, const TreeEntry& entry,
            const HubListing::Entry* said) {
    ExpectedFile file{.name = name, .elsewhere = elsewhere(path, name)};
    if (said != nullptr) {
      file.digest = said->digest;
      file.size = said->size;
      file.trust = tree_trust();
      file.xet = boxed(said->xet);
    }
    if (entry.kind == TreeEntry::Kind::link) {
      const auto blob = blob_of(path, name);
      if (!blob) return out_.settled.push_back(name);
      file.elsewhere = folder_ / "blobs" / *blob;
      check_blob_name(*blob, file);
    } else if (entry.kind != TreeEntry::Kind::regular) {
      say(Severity::error, "hub_cache.not_a_file", "is neither a file nor a link to a blob", name);
      return out_.settled.push_back(name);
    } else if (!file.digest) {
      ++unnamed_;
      if (unnamed_ == 1) {
        say(Severity::note, "hub_cache.no_blob_name",
            "is a real file, not a link: no blob name says what it should be, nor does a tree listing", name);
      }
    }
    out_.files.push_back(std::move(file));
  }

  // The one kind of link a snapshot may hold: up to its repository, into blobs/, to a digest.
  std::optional<std::string> blob_of(const fs::path& link, const std::string& name) {
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    const fs::path reached = (link.parent_path() / target).lexically_normal();
    const std::string blob = reached.filename().string();
    if (error || target.is_absolute() || reached.parent_path() != (folder_ / "blobs").lexically_normal() ||
        !digest_named(blob)) {
      say(Severity::error, "hub_cache.link_outside",
          fmt::format("links to {}, not to a blob of this repository: not followed", target.string()), name,
          "remove it and run the download again");
      return std::nullopt;
    }
    linked_.insert(blob);
    const fs::file_status status = fs::symlink_status(reached, error);
    if (!fs::exists(status)) {
      say(Severity::error, "hub_cache.dangling_link",
          fmt::format("links to blobs/{}, which is not there", blob), name, "run the download again");
    } else if (!fs::is_regular_file(status)) {
      say(Severity::error, "hub_cache.link_outside",
          fmt::format("links to blobs/{}, which is not a file: not followed", blob), name);
      return std::nullopt;
    }
    return blob;
  }

  void check_blob_name(const std::string& blob, ExpectedFile& file) {
    const Digest named = *digest_named(blob);
    if (!file.digest || file.digest->kind == DigestKind::xet) {  // any other says more than a Xet hash
      file.digest = named;
      file.trust = Trust{TrustSource::blob_name, "", true, commit_};
    } else if (file.digest->kind == named.kind && *file.digest != named) {
      say(Severity::error, "hub_cache.contradiction",
          fmt::format("links to blob {}, but the tree listing says {}", blob.substr(0, 10),
                      file.digest->hex().substr(0, 10)),
          file.name, "remove the link and run the download again");
    }
  }

  void incomplete(const TreeEntry& entry, const std::string& prefix) {
    const auto digest = digest_of_incomplete(entry.name);
    std::error_code ignored;
    const bool finished = digest && fs::exists(folder_ / "blobs" / digest->hex(), ignored);
    say(finished ? Severity::note : Severity::error, "hub_cache.incomplete",
        finished ? fmt::format("is left over from a download that was finished later ({})",
                               human_bytes(entry.size))
                 : fmt::format("is an unfinished download ({} so far)", human_bytes(entry.size)),
        prefix + entry.name, finished ? "delete it" : "run the download again");
  }

  void say(Severity severity, std::string code, std::string message, std::string file,
           std::string remedy = {}) {
    out_.findings.push_back({.severity = severity,
                             .code = std::move(code),
                             .message = std::move(message),
                             .file = std::move(file),
                             .remedy = std::move(remedy)});
  }

  fs::path folder_;
  std::string prefix_;
  std::string commit_;  // of the snapshot being read
  Expectation& out_;
  std::set<std::string> linked_;
  std::size_t unnamed_ = 0;
};

void use_snapshot(const SnapshotPath& at, Expectation& out) {
  out.root = at.repository / "snapshots" / at.commit;
  out.origin = at.repository.filename().string() + " @ " + at.commit;
  Repository repository(at.repository, "", out);
  out.complete = repository.snapshot(at.commit, "");
  repository.leftovers(folders_in(at.repository / "snapshots").size() == 1);
}

void use_repository(const fs::path& folder, const std::string& prefix, Expectation& out) {
  Repository repository(folder, prefix, out);
  for (const std::string& commit : folders_in(folder / "snapshots")) {
    out.complete &= repository.snapshot(commit, prefix + "snapshots/" + commit + "/");
  }
  repository.references();
  repository.leftovers(true);
}

ExpectedFile named_after_itself(const fs::path& blob) {
  const std::string name = blob.filename().string();
  return {.name = name, .digest = digest_named(name), .trust = Trust{TrustSource::blob_name, "", true}};
}

void use_blob(const fs::path& blob, Expectation& out) {
  out.root = blob.parent_path();
  out.owns_root = false;
  out.origin = "blob of " + blob.parent_path().parent_path().filename().string();
  out.files.push_back(named_after_itself(blob));
}

// Every blob by its name; which files of which snapshots they are is not asked.
void use_blobs(const fs::path& folder, Expectation& out) {
  out.origin = "blobs of " + folder.parent_path().filename().string();
  Repository(folder.parent_path(), "", out).unfinished();
  for (const TreeEntry& entry : list_tree(folder)) {
    if (digest_named(entry.name)) out.files.push_back(named_after_itself(folder / entry.name));
    if (is_incomplete(entry.name)) out.settled.push_back(entry.name);
  }
}

bool is_folder_of_blobs(const fs::path& path) {
  if (path.filename() != "blobs" || !is_folder(path)) return false;
  const std::vector<TreeEntry> entries = list_tree(path);
  const auto is_blob = [](const TreeEntry& entry) { return digest_named(entry.name).has_value(); };
  if (std::none_of(entries.begin(), entries.end(), is_blob)) return false;
  return is_repository(path.parent_path()) ||
         std::all_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return is_blob(entry) || is_incomplete(entry.name); });
}

}  // namespace

std::optional<HubCachePlace> hub_cache_place(const fs::path& given) {
  const fs::path path = without_dots(given);
  if (split_snapshot_path(path)) return HubCachePlace::snapshot;
  if (is_repository(path)) return HubCachePlace::model;
  if (path.parent_path().filename() == "blobs" && is_repository(path.parent_path().parent_path()) &&
      digest_named(path.filename().string())) {
    return HubCachePlace::blob;
  }
  if (is_folder_of_blobs(path)) return HubCachePlace::blobs;
  if (!repositories_in(path).empty() || !repositories_in(path / "hub").empty()) return HubCachePlace::cache;
  return std::nullopt;
}

Expectation expect_from_hub_cache(const fs::path& given) {
  fs::path path = without_dots(given);
  Expectation out;
  out.kind = "Hugging Face cache";
  out.root = path;
  const auto place = hub_cache_place(path);
  if (!place) throw Error::input("is no Hugging Face cache").in(path);
  const auto snapshot = split_snapshot_path(path);
  std::error_code ignored;
  if (snapshot) {
    use_snapshot(*snapshot, out);
  } else if (*place == HubCachePlace::blob) {
    use_blob(path, out);
  } else if (*place == HubCachePlace::blobs) {
    use_blobs(path, out);
  } else if (const auto commits = folders_in(path / "snapshots");
             *place == HubCachePlace::model && commits.size() == 1) {
    use_snapshot({path, commits[0], ""}, out);
    Repository(path, "", out).references();
  } else if (*place == HubCachePlace::model) {
    out.complete = true;
    out.origin = fmt::format("{}, {} snapshots", path.filename().string(), commits.size());
    out.ignored = {"blobs", "refs", "trees", ".no_exist"};
    use_repository(path, "", out);
  } else {
    auto repositories = repositories_in(path);
    if (repositories.empty()) {
      out.root = path / "hub";
      repositories = repositories_in(out.root);
    }
    out.origin = fmt::format("{} repositories", repositories.size());
    for (const fs::path& repository : repositories) {
      use_repository(repository, repository.filename().string() + "/", out);
    }
    out.complete = false;  // a cache is whatever was asked for
    out.owns_root = false;
  }
  finish(out);
  if (snapshot && !snapshot->inside.empty()) {
    if (fs::is_directory(path, ignored))
      narrow_to_folder(out, snapshot->inside);
    else
      narrow_to_file(out, snapshot->inside);
  }
  return out;
}

}  // namespace assay
