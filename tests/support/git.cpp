#include "tests/support/git.h"

#include <stdexcept>

#include "tests/support/support.h"

namespace assay::test {
namespace {

std::string run_or_throw(const std::vector<std::string>& argv, const ProcessOptions& options) {
  ProcessResult result = run(argv, options);
  if (result.exit_code != 0) throw std::runtime_error(argv[0] + " " + argv.back() + ": " + result.err);
  while (result.out.ends_with('\n')) result.out.pop_back();
  return result.out;
}

}  // namespace

GitRepository::GitRepository(fs::path folder) : folder_(std::move(folder)) {
  fs::create_directories(folder_);
  if (!fs::exists(folder_ / ".git") && !fs::exists(folder_ / "HEAD")) git({"init", "-q", "-b", "main"});
}

std::string GitRepository::git(const std::vector<std::string>& arguments, const std::string& input) const {
  std::vector<std::string> argv = {"git"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_or_throw(
      argv, {.directory = folder_,
             .environment = {"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A",
                             "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A",
                             "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=1700000000 +0000",
                             "GIT_COMMITTER_DATE=1700000000 +0000"},
             .input = input});
}

void GitRepository::write(const std::string& name, std::string_view contents) const {
  write_file(folder_ / name, contents);
}

std::string GitRepository::commit() const {
  git({"add", "-A"});
  git({"commit", "-q", "--allow-empty", "-m", "c"});
  return git({"rev-parse", "HEAD"});
}

std::string GitRepository::tree(const std::string& entries) const {
  return git({"mktree", "-z", "--missing"}, entries);
}

std::string GitRepository::blob(const std::string& contents) const {
  return git({"hash-object", "-w", "--stdin"}, contents);
}

std::string GitRepository::commit_tree(const std::string& entries) const {
  const std::string commit = git({"commit-tree", "-m", "c", tree(entries)});
  git({"update-ref", "HEAD", commit});
  return commit;
}

std::string lfs_pointer(const std::string& sha256, std::size_t size) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha256 + "\nsize " +
         std::to_string(size) + "\n";
}

std::string sha256sum(const std::string& contents) {
  return run_or_throw({"sha256sum", "-b", "-"}, {.input = contents}).substr(0, 64);
}

}  // namespace assay::test
