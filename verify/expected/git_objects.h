// A git repository as a read-only database of objects (libgit2 underneath).
//
// Nothing in the repository can make us run or fetch anything: no hooks, filters, drivers or credential
// helpers, no configuration of the user or the system, no network. Every object read is checked against its
// id by libgit2.
#pragma once

#include <git2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/system/error.h"
#include "core/system/file.h"

namespace assay::git {

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* pointer) const { Free(pointer); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Deleter<T, Free>>;

using RepositoryPtr = Owned<git_repository, git_repository_free>;
using DatabasePtr = Owned<git_odb, git_odb_free>;
using RawObjectPtr = Owned<git_odb_object, git_odb_object_free>;
using ObjectPtr = Owned<git_object, git_object_free>;
using TreePtr = Owned<git_tree, git_tree_free>;
using TreeEntryPtr = Owned<git_tree_entry, git_tree_entry_free>;

std::string hex(const git_oid& id);

// A repository that is whole, but has no word for us: no commit yet, an object format that is not read here.
class NoWord : public Error {
 public:
  explicit NoWord(Error error) : Error(std::move(error)) {}
};
// One whose commit says nothing about the path asked for.
class NotHeld : public Error {
 public:
  explicit NotHeld(Error error) : Error(std::move(error)) {}
};

struct ObjectHeader {
  std::uint64_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
};

class Repository {
 public:
  // The repository that holds `inside`: of the folder itself or the nearest above it. nullopt when there is
  // none. Throws Error::input for one that cannot be read: a `.git` that is no repository, or leads nowhere.
  static std::optional<Repository> find(const fs::path& inside);

  // The folder in which it was found, canonical. Its files lie there and nowhere else: where the repository
  // says that its work tree is may be the place it was copied from, or anybody's (core.worktree).
  const fs::path& folder() const { return folder_; }
  // The repository's own folder: .git, or wherever that leads.
  fs::path git_folder() const;
  // That folder is the repository's own (.git, bare): files do not lie there.
  bool is_bare() const { return bare_; }
  // Where the repository says that its files lie, canonical; empty where it says nothing.
  fs::path configured_work_tree() const;
  // "HEAD", a branch, a tag, an abbreviated id: the id of its commit.
  git_oid resolve_commit(const std::string& revision) const;
  git_oid root_tree(const git_oid& commit) const;
  // The blob that the commit has under this path.
  std::optional<git_oid> find_file(const git_oid& commit, const std::string& path) const;

  // nullopt: not in this clone. Size and type without reading the contents.
  std::optional<ObjectHeader> header(const git_oid& id) const;
  // An object of at most `limit` bytes. Throws Error::input on damage.
  std::string read(const git_oid& id, std::uint64_t limit) const;
  TreePtr read_tree(const git_oid& id) const;

 private:
  Repository(RepositoryPtr repository, fs::path folder);
  RepositoryPtr repository_;
  fs::path folder_;
  bool bare_ = false;
  DatabasePtr database_;
};

}  // namespace assay::git
