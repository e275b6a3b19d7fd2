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

struct ObjectHeader {
  std::uint64_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
};

class Repository {
 public:
  // The repository that holds `inside` (a work tree or something in it, its .git, a linked work tree, a bare
  // repository); nullopt when there is none. Throws Error::input for one that cannot be read.
  static std::optional<Repository> find(const fs::path& inside);

  fs::path work_tree() const;  // empty: bare
  // "HEAD", a branch, a tag, an abbreviated id: the id of its commit.
  git_oid resolve_commit(const std::string& revision) const;
  git_oid root_tree(const git_oid& commit) const;

  // nullopt: not in this clone. Size and type without reading the contents.
  std::optional<ObjectHeader> header(const git_oid& id) const;
  // An object of at most `limit` bytes. Throws Error::input on damage.
  std::string read(const git_oid& id, std::uint64_t limit) const;
  TreePtr read_tree(const git_oid& id) const;

 private:
  explicit Repository(RepositoryPtr repository);
  RepositoryPtr repository_;
  DatabasePtr database_;
};

}  // namespace assay::git
