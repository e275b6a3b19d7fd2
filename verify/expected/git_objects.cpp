#include "verify/expected/git_objects.h"

#include <fmt/format.h>

#include <array>

namespace assay::git {
namespace {

constexpr std::uint64_t kMaxTreeBytes = 64ull << 20;  // a folder of a million files; a bomb is refused unread

// libgit2's settings are global to the process: made once, before its first use.
struct Library {
  Library() {
    git_libgit2_init();
    // We read objects by id and check them; who owns the folder changes nothing (git's "dubious ownership").
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    for (const int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
                            GIT_CONFIG_LEVEL_GLOBAL}) {
      git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    }
    // Extensions that change nothing about how present objects are stored. (objectformat and refstorage do.)
    std::array extensions = {"partialclone", "worktreeconfig", "preciousobjects", "relativeworktrees"};
    git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions.data(), extensions.size());
  }
};

void use_library() {
  static const Library library;
}

std::string last_error() {
  const git_error* error = git_error_last();
  return error != nullptr && error->message != nullptr ? error->message : "no reason given";
}

constexpr std::string_view kWithoutGit =
    "mend it, name the digests with --manifest, or leave it aside with --no-git";

[[noreturn]] void throw_unreadable(const fs::path& folder) {
  const std::string reason = last_error();
  if (reason.find("objectformat") != std::string::npos) {
    throw NoWord(Error::input("is a git repository with SHA-256 object ids, which are not supported")
                     .in(folder)
                     .remedy("give the digests with --manifest, or leave it aside with --no-git"));
  }
  if (reason.find("refstorage") != std::string::npos) {
    throw NoWord(Error::input("is a git repository whose refs are stored as reftable, which is not supported")
                     .in(folder)
                     .remedy("run 'git refs migrate --ref-format=files' in it"));
  }
  throw Error::input(fmt::format("cannot read the git repository: {}", reason))
      .in(folder)
      .remedy(kWithoutGit);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

std::string hex(const git_oid& id) {
  std::array<char, GIT_OID_HEXSZ + 1> text{};
  return git_oid_tostr(text.data(), text.size(), &id);
}

Repository::Repository(RepositoryPtr repository, fs::path folder)
    : repository_(std::move(repository)), folder_(std::move(folder)), bare_(!is_there(folder_ / ".git")) {
  git_odb* database = nullptr;
  if (git_repository_odb(&database, repository_.get()) != 0) {
    throw Error::input(fmt::format("cannot open the git object database: {}", last_error()))
        .in(git_repository_path(repository_.get()))
        .remedy(kWithoutGit);
  }
  database_.reset(database);
}

std::optional<Repository> Repository::find(const fs::path& inside) {
  use_library();
  for (fs::path at = fs::is_directory(inside) ? fs::canonical(inside) : fs::canonical(inside).parent_path();;
       at = at.parent_path()) {
    git_repository* repository = nullptr;
    const int code = git_repository_open_ext(&repository, at.c_str(), GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr);
    if (code == 0) return Repository(RepositoryPtr(repository), at);
    if (code != GIT_ENOTFOUND || is_there(at / ".git")) throw_unreadable(at);
    if (!at.has_relative_path()) return std::nullopt;
  }
}

fs::path Repository::git_folder() const {
  return git_repository_path(repository_.get());
}

fs::path Repository::configured_work_tree() const {
  const char* path = git_repository_workdir(repository_.get());
  if (path == nullptr) return {};
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  if (error) real = path;
  return real.has_filename() ? real : real.parent_path();
}

git_oid Repository::resolve_commit(const std::string& revision) const {
  const fs::path where = git_repository_path(repository_.get());
  if (revision == "HEAD" && git_repository_head_unborn(repository_.get()) == 1) {
    throw NoWord(Error::input("the git repository has no commit yet")
                     .in(where)
                     .remedy("finish the clone, give the digests with --manifest, or leave it aside with "
                             "--no-git"));
  }
  git_object* raw = nullptr;
  if (git_revparse_single(&raw, repository_.get(), revision.c_str()) != 0) {
    throw Error::input(fmt::format("no commit '{}' in this clone: {}", revision, last_error()))
        .in(where)
        .remedy("give another --rev, or fetch it");
  }
  const ObjectPtr object(raw);
  if (git_object_peel(&raw, object.get(), GIT_OBJECT_COMMIT) != 0) {
    throw Error::input(fmt::format("'{}' does not name a commit: {}", revision, last_error())).in(where);
  }
  const ObjectPtr commit(raw);
  return *git_object_id(commit.get());
}

git_oid Repository::root_tree(const git_oid& commit) const {
  git_commit* raw = nullptr;
  if (git_commit_lookup(&raw, repository_.get(), &commit) != 0) {
    throw Error::input(fmt::format("cannot read commit {}: {}", hex(commit), last_error()));
  }
  const Owned<git_commit, git_commit_free> owner(raw);
  return *git_commit_tree_id(raw);
}

std::optional<git_oid> Repository::find_file(const git_oid& commit, const std::string& path) const {
  git_tree_entry* raw = nullptr;
  const TreePtr tree = read_tree(root_tree(commit));
  if (git_tree_entry_bypath(&raw, tree.get(), path.c_str()) != 0) return std::nullopt;
  const TreeEntryPtr entry(raw);
  if (git_tree_entry_type(raw) != GIT_OBJECT_BLOB) return std::nullopt;
  return *git_tree_entry_id(raw);
}

std::optional<ObjectHeader> Repository::header(const git_oid& id) const {
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  const int code = git_odb_read_header(&size, &type, database_.get(), &id);
  if (code == GIT_ENOTFOUND) return std::nullopt;
  if (code != 0) throw Error::input(fmt::format("git object {} is damaged: {}", hex(id), last_error()));
  return ObjectHeader{size, type};
}

std::string Repository::read(const git_oid& id, std::uint64_t limit) const {
  const auto known = header(id);
  if (!known) throw Error::input(fmt::format("git object {} is not in this clone", hex(id)));
  if (known->size > limit) {
    throw Error::input(
        fmt::format("git object {} is {} bytes long; at most {} are expected", hex(id), known->size, limit));
  }
  git_odb_object* raw = nullptr;
  if (git_odb_read(&raw, database_.get(), &id) != 0) {
    throw Error::input(fmt::format("git object {} is damaged: {}", hex(id), last_error()));
  }
  const RawObjectPtr object(raw);
  return std::string(static_cast<const char*>(git_odb_object_data(raw)), git_odb_object_size(raw));
}

TreePtr Repository::read_tree(const git_oid& id) const {
  const auto known = header(id);
  if (!known) throw Error::input(fmt::format("git tree {} is not in this clone", hex(id)));
  if (known->type != GIT_OBJECT_TREE || known->size > kMaxTreeBytes) {
    throw Error::input(fmt::format("git object {} is no tree of at most {} bytes", hex(id), kMaxTreeBytes));
  }
  git_tree* tree = nullptr;
  if (git_tree_lookup(&tree, repository_.get(), &id) != 0) {
    throw Error::input(fmt::format("git tree {} is damaged: {}", hex(id), last_error()));
  }
  return TreePtr(tree);
}

}  // namespace assay::git
