#include "verify/expected/git.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/formats/lfs_pointer.h"
#include "verify/expected/assemble.h"
#include "verify/expected/git_checkout.h"
#include "verify/expected/git_objects.h"

namespace assay {
namespace {

// A few nested trees can list 10^10 files (a "git bomb"). Hubs advise at most 100,000 files a repository.
constexpr std::size_t kMaxEntries = 250'000;
constexpr std::size_t kMaxPathBytes = 4096;  // PATH_MAX
constexpr std::uint64_t kMaxLinkBytes = 4096;

// git refuses these as one path segment (git's verify_path): they would let a checkout write into the
// repository.
bool is_git_folder(std::string_view segment) {
  std::string lower(segment);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  while (!lower.empty() && (lower.back() == ' ' || lower.back() == '.')) lower.pop_back();  // as Windows does
  return lower == ".git" || lower == "git~1";
}

// Walks one commit's tree, without recursion, into an Expectation.
class CommitWalk {
 public:
  CommitWalk(const git::Repository& repository, Expectation& out, std::string commit, bool beside)
      : repository_(repository), out_(out), commit_(std::move(commit)), beside_(beside) {}

  void folder(const git_oid& tree) {
    pending_.push_back({tree, ""});
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      if (seen_ > kMaxEntries) {
        throw Error::input(
            fmt::format("{} lists more than {} files and folders", commit_detail(commit_), kMaxEntries))
            .remedy("name the folder that holds the weights");
      }
      try {
        list(next);
      } catch (const Error& error) {
        if (next.prefix.empty()) throw;
        unreadable(next.prefix, error);
      }
    }
  }

  void entry(const git_tree_entry& entry, const std::string& name) {
    const git_oid& id = *git_tree_entry_id(&entry);
    switch (git_tree_entry_filemode(&entry)) {
      case GIT_FILEMODE_TREE: pending_.push_back({id, name + "/"}); return;
      case GIT_FILEMODE_LINK: link(name, id); return;
      case GIT_FILEMODE_COMMIT: submodule(name, id); return;
      default: file(name, id); return;
    }
  }

 private:
  struct Pending {
    git_oid tree;
    std::string prefix;  // "" or "folder/"
  };

  void list(const Pending& folder) {
    const git::TreePtr tree = repository_.read_tree(folder.tree);
    const std::size_t count = git_tree_entrycount(tree.get());
    seen_ += count + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const git_tree_entry* item = git_tree_entry_byindex(tree.get(), i);
      const std::string_view segment = git_tree_entry_name(item);
      const std::string name = folder.prefix + std::string(segment);
      if (usable(segment, name)) entry(*item, name);
    }
  }

  bool usable(std::string_view segment, const std::string& name) {
    if (!accept_name(name, out_.findings)) {
      out_.settled.push_back(name);
      return false;
    }
    if (segment.find('/') == segment.npos && !is_git_folder(segment) && name.size() <= kMaxPathBytes)
      return true;
    out_.findings.push_back({.severity = Severity::error,
                             .code = "git.unsafe_name",
                             .message = "is a name that git itself would not check out: not looked for",
                             .file = name});
    return false;
  }

  // What one blob says of the file it stands for; equal blobs (and a bomb's) are read once.
  struct BlobFacts {
    Digest digest;
    std::optional<std::uint64_t> size;
    TrustSource source = TrustSource::git_blob;
    bool canonical = true;
  };

  void file(const std::string& name, const git_oid& id) {
    ExpectedFile file{.name = name};
    try {
      const BlobFacts& blob = facts(id);
      file.digest = blob.digest;
      file.size = blob.size;
      file.trust = Trust{blob.source, commit_detail(commit_), beside_, commit_};
      if (!blob.canonical) {
        out_.findings.push_back({.severity = Severity::note,
                                 .code = "git.pointer_not_canonical",
                                 .message = "is an LFS pointer not written as git-lfs writes it",
                                 .file = name});
      }
    } catch (const Error& error) {
      unreadable(name, error);
    }
    out_.files.push_back(std::move(file));
  }

  const BlobFacts& facts(const git_oid& id) {
    const Digest key = *Digest::parse(DigestKind::git_sha1, git::hex(id));
    const auto known = blobs_.find(key);
    if (known != blobs_.end()) return known->second;
    const auto header = repository_.header(id);
    if (!header) throw Error::input(fmt::format("git object {} is not in this clone", key.hex()));
    if (header->type != GIT_OBJECT_BLOB)
      throw Error::input(fmt::format("git object {} is no blob", key.hex()));
    BlobFacts blob{.digest = key, .size = header->size};
    if (header->size > 0 && header->size < kLfsPointerMaxBytes) {
      if (const auto pointer = parse_lfs_pointer(repository_.read(id, kLfsPointerMaxBytes))) {
        blob = {pointer->checkout_digest(), pointer->checkout_size(), TrustSource::lfs_pointer,
                pointer->canonical};
      }
    }
    return blobs_.emplace(key, blob).first->second;
  }

  // A symbolic link is compared here: its blob is the target's name.
  void link(const std::string& name, const git_oid& id) {
    out_.settled.push_back(name);
    std::string target;
    try {
      target = repository_.read(id, kMaxLinkBytes);
    } catch (const Error& error) {
      unreadable(name, error);
      return;
    }
    const auto say = [&](Severity severity, std::string code, std::string message) {
      out_.findings.push_back(
          {.severity = severity, .code = std::move(code), .message = std::move(message), .file = name});
    };
    std::error_code error;
    const fs::path path = out_.root / name;
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::is_symlink(status)) {
      const std::string found = fs::read_symlink(path, error).string();
      if (found != target)
        say(Severity::error, "git.link_differs",
            fmt::format("links to {}; the commit says {}", found, target));
    } else if (!fs::exists(status)) {
      say(Severity::error, "git.link_missing", fmt::format("is missing: a symbolic link to {}", target));
    } else if (!is_plain_copy_of_link(path, target)) {
      say(Severity::error, "git.link_differs",
          fmt::format("is not the symbolic link to {} that the commit has", target));
    }
    const fs::path resolved = (fs::path(name).parent_path() / target).lexically_normal();
    if (fs::path(target).is_absolute() || (!resolved.empty() && *resolved.begin() == "..")) {
      say(Severity::warning, "git.link_outside",
          fmt::format("is a symbolic link out of the repository, to {}; it is not followed", target));
    }
  }

  // core.symlinks=false: git writes a file that holds the target's name.
  static bool is_plain_copy_of_link(const fs::path& path, const std::string& target) {
    try {
      return read_small_file(path, kMaxLinkBytes) == target;
    } catch (const Error&) {
      return false;  // a folder, a device, something long: not the link, whatever it is
    }
  }

  void submodule(const std::string& name, const git_oid& id) {
    out_.settled.push_back(name);
    out_.findings.push_back({.severity = Severity::note,
                             .code = "git.submodule",
                             .message = fmt::format("is a submodule at commit {}: not checked", git::hex(id)),
                             .file = name,
                             .remedy = "verify that folder by itself"});
  }

  void unreadable(std::string name, const Error& error) {
    if (name.ends_with('/')) name.pop_back();
    out_.findings.push_back(
        {.severity = Severity::error,
         .code = "git.object_unreadable",
         .message = fmt::format("{}: nobody says what should be here", error.message()),
         .file = std::move(name),
         .remedy = "complete the clone: 'git fetch --refetch', or 'git fsck' for damage"});
  }

  const git::Repository& repository_;
  Expectation& out_;
  std::string commit_;
  bool beside_;
  std::size_t seen_ = 0;
  std::vector<Pending> pending_;
  std::map<Digest, BlobFacts> blobs_;
};

struct Place {
  std::string subpath;  // of what was asked, in the commit; "" for all of it
  fs::path root;        // where that is on disk
  bool beside = true;   // the repository lies with the files
};

// The links of the folders on the way are resolved; the file's own name stays, link or not.
fs::path without_links_in_folder(const fs::path& path) {
  if (fs::is_directory(path)) return fs::canonical(path);
  return fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path(".")) / path.filename();
}

// Where `inside` lies in the folder of its repository.
Place locate(const git::Repository& repository, const fs::path& inside, const std::optional<fs::path>& root) {
  Place place;
  std::string text = without_links_in_folder(inside).lexically_relative(repository.folder()).generic_string();
  const bool own = repository.is_bare() || is_git_folder(text.substr(0, text.find('/')));
  if (own && !root) {
    throw Error::usage("is a git repository's own folder: it has no files to check")
        .in(inside)
        .remedy("name the folder that holds the files, or say with --root where they are");
  }
  if (!own && text != ".") place.subpath = std::move(text);
  place.root = place.subpath.empty() ? repository.folder() : repository.folder() / place.subpath;
  if (root) {
    place.root = *root;
    place.beside = false;
  }
  return place;
}

// The commit's entry for `subpath`, tree by tree: one that is damaged is not one that does not hold it.
git::TreeEntryPtr find_entry(const git::Repository& repository, const git_oid& commit,
                             const std::string& subpath, const fs::path& inside) {
  git_oid tree_id = repository.root_tree(commit);
  const fs::path path(subpath);
  for (auto segment = path.begin();;) {
    const git::TreePtr tree = repository.read_tree(tree_id);
    const git_tree_entry* found = git_tree_entry_byname(tree.get(), segment->c_str());
    const bool last = ++segment == path.end();
    if (found == nullptr || (!last && git_tree_entry_type(found) != GIT_OBJECT_TREE)) {
      throw git::NotHeld(
          Error::input(fmt::format("commit {} does not hold {}", git::hex(commit), subpath)).in(inside));
    }
    if (last) {
      git_tree_entry* copy = nullptr;
      if (git_tree_entry_dup(&copy, found) != 0) throw std::bad_alloc();
      return git::TreeEntryPtr(copy);
    }
    tree_id = *git_tree_entry_id(found);
  }
}

// A copied work tree, or core.worktree: git itself would look at other files than the ones asked about.
void mention_other_work_tree(const git::Repository& repository, Findings& findings) {
  const fs::path said = repository.configured_work_tree();
  if (repository.is_bare() || said.empty() || said == repository.folder()) return;
  findings.push_back({.severity = Severity::warning,
                      .code = "git.other_work_tree",
                      .message = fmt::format("the repository says that its files lie in {}; those in {} are "
                                             "looked at",
                                             said.string(), repository.folder().string()),
                      .remedy = "verify that folder, or name it with --root, if it is meant"});
}

}  // namespace

Expectation expect_from_git(const fs::path& inside, const std::string& revision,
                            const std::optional<fs::path>& root) {
  const auto repository = git::Repository::find(inside);
  if (!repository) {
    throw Error::input("is not in a git repository")
        .in(inside)
        .remedy("give --manifest, or the clone's folder");
  }
  const Place place = locate(*repository, inside, root);
  const git_oid commit = repository->resolve_commit(revision);
  const std::string commit_hex = git::hex(commit);

  Expectation out;
  out.kind = "git clone";
  out.origin = "commit " + commit_hex;
  out.root = place.root;
  out.ignored = {".git"};
  out.complete = true;
  if (!root) mention_other_work_tree(*repository, out.findings);
  CommitWalk walk(*repository, out, commit_hex, place.beside);
  std::string above = place.subpath.empty() ? "" : place.subpath + "/";  // the names found, in the commit
  if (place.subpath.empty()) {
    walk.folder(repository->root_tree(commit));
  } else {
    const git::TreeEntryPtr entry = find_entry(*repository, commit, place.subpath, inside);
    if (git_tree_entry_filemode(entry.get()) == GIT_FILEMODE_TREE) {
      walk.folder(*git_tree_entry_id(entry.get()));
    } else {
      if (!root) out.root = place.root.parent_path();
      const std::string name = fs::path(place.subpath).filename().string();
      walk.entry(*entry, name);
      above.resize(place.subpath.size() - name.size());
      out.complete = false;
      out.owns_root = false;
    }
  }
  if (out.files.empty() && out.settled.empty() && !has_errors(out.findings)) {
    throw git::NoWord(Error::input(fmt::format("commit {} holds no files here", commit_hex)).in(inside));
  }
  git::expect_as_checked_out(*repository, commit, above, out);
  finish(out);
  return out;
}

}  // namespace assay
