// A git repository made by git itself, away from the configuration of whoever runs the tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::test {

class GitRepository {
 public:
  // `git init` in a new folder; nothing is done when it holds a repository already.
  explicit GitRepository(std::filesystem::path folder);
  const std::filesystem::path& path() const { return folder_; }

  // Standard output without its last newline; throws when git fails.
  std::string git(const std::vector<std::string>& arguments, const std::string& input = {}) const;
  void write(const std::string& name, std::string_view contents) const;
  // Everything in the work tree, as one commit; its id.
  std::string commit() const;
  // A commit of a tree made by hand, in the form `git ls-tree` prints, separated by NUL; its id. HEAD is
  // moved there.
  std::string commit_tree(const std::string& entries) const;
  std::string tree(const std::string& entries) const;
  std::string blob(const std::string& contents) const;

 private:
  std::filesystem::path folder_;
};

// As `git lfs` would write it.
std::string lfs_pointer(const std::string& sha256, std::size_t size);
// What sha256sum says.
std::string sha256sum(const std::string& contents);

}  // namespace assay::test
