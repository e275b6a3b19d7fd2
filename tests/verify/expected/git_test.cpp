#include "verify/expected/git.h"

#include <unistd.h>

#include "core/system/error.h"
#include "tests/support/git.h"
#include "tests/support/support.h"
#include "tests/verify/expected/lookup.h"

namespace assay {
namespace {

using test::digest;
using test::find;
using test::finding;
using test::GitRepository;
using test::names;

const std::string kWeights(5000, 'w');

std::string pointer_to_weights() {
  return test::lfs_pointer(test::sha256sum(kWeights), kWeights.size());
}

void fill(const GitRepository& repository) {
  repository.write("config.json", "{}\n");
  repository.write("model.safetensors", pointer_to_weights());
  repository.write("sub/deep/big.txt", std::string(3000, 'x'));
  repository.write("empty", "");
}

void expect_filled(const Expectation& e, const GitRepository& repository) {
  EXPECT_EQ(names(e),
            (std::vector<std::string>{"config.json", "empty", "model.safetensors", "sub/deep/big.txt"}));
  EXPECT_EQ(digest(e, "config.json"), repository.git({"hash-object", "--stdin"}, "{}\n"));
  EXPECT_EQ(digest(e, "model.safetensors"), test::sha256sum(kWeights));
  ASSERT_NE(find(e, "model.safetensors"), nullptr);
  EXPECT_EQ(find(e, "model.safetensors")->size, 5000u);
  EXPECT_EQ(find(e, "model.safetensors")->trust->source, TrustSource::lfs_pointer);
  EXPECT_EQ(find(e, "sub/deep/big.txt")->size, 3000u);
  EXPECT_EQ(find(e, "sub/deep/big.txt")->trust->source, TrustSource::git_blob);
  EXPECT_EQ(digest(e, "empty"), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");  // git's id of the empty blob
  EXPECT_TRUE(e.complete);
  EXPECT_TRUE(e.findings.empty()) << to_line(e.findings[0]);
}

TEST(GitExpectation, ReadsLooseAndPackedObjects) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  const std::string commit = repository.commit();
  const Expectation loose = expect_from_git(repository.path());
  expect_filled(loose, repository);
  EXPECT_EQ(loose.origin, "commit " + commit);
  EXPECT_EQ(loose.path_of(loose.files[0]), repository.path() / "config.json");
  repository.git({"gc", "-q", "--prune=now"});
  expect_filled(expect_from_git(repository.path()), repository);
}

// What git-lfs leaves in the work tree is the file, not the pointer.
TEST(GitExpectation, AsksTheCommitNotTheWorkTree) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  repository.git({"lfs", "install", "--local"});
  repository.git({"lfs", "track", "*.safetensors"});
  repository.write("model one.safetensors", kWeights);
  repository.commit();
  const Expectation e = expect_from_git(repository.path());
  EXPECT_EQ(digest(e, "model one.safetensors"), test::sha256sum(kWeights));
  EXPECT_EQ(find(e, "model one.safetensors")->trust->source, TrustSource::lfs_pointer);
  EXPECT_EQ(find(e, ".gitattributes")->trust->source, TrustSource::git_blob);
}

TEST(GitExpectation, TakesTheRevisionAskedFor) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  repository.write("f", "one");
  const std::string first = repository.commit();
  repository.write("f", "two");
  repository.commit();
  EXPECT_EQ(digest(expect_from_git(repository.path()), "f"), repository.git({"rev-parse", "HEAD:f"}));
  EXPECT_EQ(digest(expect_from_git(repository.path(), first.substr(0, 8)), "f"),
            repository.git({"rev-parse", "HEAD~1:f"}));
  EXPECT_EQ(digest(expect_from_git(repository.path(), "main~1"), "f"),
            repository.git({"rev-parse", "HEAD~1:f"}));
  EXPECT_THROW(expect_from_git(repository.path(), "no-such-branch"), Error);
}

TEST(GitExpectation, OfASubfolderOrAFileIsOnlyThat) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.commit();
  const Expectation folder = expect_from_git(repository.path() / "sub");
  EXPECT_EQ(names(folder), std::vector<std::string>{"deep/big.txt"});
  EXPECT_EQ(folder.root / "deep/big.txt", repository.path() / "sub/deep/big.txt");
  const Expectation file = expect_from_git(repository.path() / "model.safetensors");
  EXPECT_EQ(names(file), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(file.path_of(file.files[0]), repository.path() / "model.safetensors");
  EXPECT_FALSE(file.complete);
  fs::create_directory(repository.path() / "untracked");
  EXPECT_THROW(expect_from_git(repository.path() / "untracked"), Error);
  EXPECT_THROW(expect_from_git(repository.path() / ".git"), Error) << "it holds no files to check";
}

TEST(GitExpectation, ReadsBareRepositoriesWorkTreesAndShallowClones) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.commit();
  repository.commit();
  const std::string url = "file://" + repository.path().string();
  repository.git({"clone", "-q", "--bare", url, (dir / "bare").string()});
  repository.git({"clone", "-q", "--depth", "1", url, (dir / "shallow").string()});
  repository.git({"worktree", "add", "-q", "--detach", (dir / "linked").string()});

  EXPECT_THROW(expect_from_git(dir / "bare"), Error);
  const Expectation bare = expect_from_git(dir / "bare", "HEAD", dir / "elsewhere");
  expect_filled(bare, repository);
  EXPECT_EQ(bare.path_of(bare.files[0]), dir / "elsewhere" / "config.json");
  EXPECT_FALSE(bare.files[0].trust->stored_beside);
  expect_filled(expect_from_git(dir / "shallow"), repository);
  const Expectation linked = expect_from_git(dir / "linked");
  expect_filled(linked, repository);
  EXPECT_EQ(linked.path_of(linked.files[0]), dir / "linked" / "config.json");
}

TEST(GitExpectation, KeepsOddNames) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  const std::vector<std::string> odd = {" leading", "new\nline",         "sp ace",
                                        "tab\t",    "\xC3\xA9t\xC3\xA9", "\xFF\xFE"};
  for (const std::string& name : odd) repository.write(name, name);
  repository.commit();
  EXPECT_EQ(names(expect_from_git(repository.path())), odd);
}

TEST(GitExpectation, RefusesNamesThatClimb) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  const std::string blob = repository.blob("x");
  const std::string inner = repository.tree("100644 blob " + blob + "\thooks" + std::string(1, '\0'));
  std::string entries;
  for (const std::string name : {"..", ".", "a\\b", "ok", "c:x"}) {
    entries += "100644 blob " + blob + "\t" + name + std::string(1, '\0');
  }
  for (const std::string name : {".git", ".GIT", "git~1", ".git. "}) {
    entries += "040000 tree " + inner + "\t" + name + std::string(1, '\0');
  }
  repository.commit_tree(entries);
  const Expectation e = expect_from_git(repository.path());
  EXPECT_EQ(names(e), std::vector<std::string>{"ok"});
  for (const std::string name : {"..", ".", "a\\b", "c:x"}) {
    EXPECT_NE(finding(e, "expected.unsafe_name", name), nullptr) << name;
  }
  for (const std::string name : {".git", ".GIT", "git~1", ".git. "}) {
    EXPECT_NE(finding(e, "git.unsafe_name", name), nullptr) << name;
  }
}

// Ten folders in ten folders … ten levels deep: ten thousand million files in eleven objects.
TEST(GitExpectation, RefusesAGitBomb) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  std::string entry = "100644 blob " + repository.blob("x");
  std::string entries;
  for (int level = 0; level < 10; ++level) {
    entries.clear();
    for (char name = '0'; name <= '9'; ++name) entries += entry + "\t" + name + std::string(1, '\0');
    entry = "040000 tree " + repository.tree(entries);
  }
  repository.commit_tree(entries);
  EXPECT_THROW(expect_from_git(repository.path()), Error);
}

TEST(GitExpectation, ComparesLinksAndPassesOverSubmodules) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  repository.write("target", "t");
  fs::create_symlink("target", repository.path() / "good");
  fs::create_symlink("target", repository.path() / "changed");
  fs::create_symlink("target", repository.path() / "gone");
  fs::create_symlink("target", repository.path() / "as-text");
  fs::create_symlink("../../etc/passwd", repository.path() / "outside");
  repository.commit();
  repository.git({"update-index", "--add", "--cacheinfo", "160000," + std::string(40, '1') + ",module"});
  repository.git({"commit", "-q", "-m", "m"});
  fs::remove(repository.path() / "changed");
  fs::create_symlink("/etc/passwd", repository.path() / "changed");
  fs::remove(repository.path() / "gone");
  fs::remove(repository.path() / "as-text");
  repository.write("as-text", "target");

  const Expectation e = expect_from_git(repository.path());
  EXPECT_EQ(names(e), std::vector<std::string>{"target"});
  EXPECT_EQ(finding(e, "git.link_differs", "good"), nullptr);
  EXPECT_EQ(finding(e, "git.link_differs", "as-text"), nullptr);
  EXPECT_NE(finding(e, "git.link_differs", "changed"), nullptr);
  EXPECT_NE(finding(e, "git.link_missing", "gone"), nullptr);
  EXPECT_NE(finding(e, "git.link_outside", "outside"), nullptr);
  EXPECT_NE(finding(e, "git.submodule", "module"), nullptr);
  EXPECT_EQ(e.settled, (std::vector<std::string>{"as-text", "changed", "gone", "good", "module", "outside"}));
}

TEST(GitExpectation, NamesWhatAPartialCloneLacks) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.commit();
  repository.git({"config", "uploadpack.allowFilter", "true"});
  repository.git({"clone", "-q", "--no-checkout", "--filter=blob:none",
                  "file://" + repository.path().string(), (dir / "partial").string()});
  const Expectation e = expect_from_git(dir / "partial");
  EXPECT_EQ(digest(e, "model.safetensors"), "no digest");
  EXPECT_NE(finding(e, "git.object_unreadable", "model.safetensors"), nullptr);
}

TEST(GitExpectation, NamesDamagedObjects) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.commit();
  const std::string id = repository.git({"rev-parse", "HEAD:model.safetensors"});
  const fs::path object = repository.path() / ".git/objects" / id.substr(0, 2) / id.substr(2);
  std::string bytes = test::read_file(object);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
  fs::permissions(object, fs::perms::owner_all);
  test::write_file(object, bytes);
  const Expectation e = expect_from_git(repository.path());
  EXPECT_EQ(digest(e, "config.json"), repository.git({"rev-parse", "HEAD:config.json"}));
  EXPECT_NE(finding(e, "git.object_unreadable", "model.safetensors"), nullptr);
}

TEST(GitExpectation, SaysPlainlyWhatItCannotRead) {
  const test::TempDir dir;
  EXPECT_THROW(expect_from_git(dir.path()), Error);
  const GitRepository empty(dir / "empty");
  EXPECT_THROW(expect_from_git(empty.path()), Error);
  fs::create_directory(dir / "new");
  test::run({"git", "init", "-q", "--object-format=sha256", (dir / "new").string()});
  try {
    expect_from_git(dir / "new");
    FAIL() << "a SHA-256 repository was read";
  } catch (const Error& error) {
    EXPECT_NE(error.line().find("SHA-256"), std::string::npos) << error.line();
  }
}

// git itself does without: `git -C bare log` answers.
TEST(GitExpectation, ReadsABareRepositoryWithoutItsConfig) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  const std::string commit = repository.commit();
  repository.git({"clone", "-q", "--bare", repository.path().string(), (dir / "bare").string()});
  fs::remove(dir / "bare/config");
  ASSERT_EQ(repository.git({"-C", (dir / "bare").string(), "rev-parse", "HEAD"}), commit);
  expect_filled(expect_from_git(dir / "bare", "HEAD", repository.path()), repository);
  EXPECT_THROW(expect_from_git(dir / "bare"), Error) << "no files lie in it";
}

TEST(GitExpectation, ReadsARepositoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can give files away";
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.commit();
  for (const char* place : {"", ".git"})
    ASSERT_EQ(::chown((repository.path() / place).c_str(), 4711, 4711), 0);
  EXPECT_EQ(expect_from_git(repository.path()).files.size(), 4u);
}

TEST(GitExpectation, RunsNothing) {
  const test::TempDir dir;
  const GitRepository repository(dir / "r");
  fill(repository);
  repository.write(".gitattributes", "* filter=evil diff=evil\n");
  repository.commit();
  const std::string touch = "touch " + (dir / "ran").string();
  for (const char* key : {"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "core.fsmonitor",
                          "diff.evil.textconv", "core.sshCommand", "credential.helper"}) {
    repository.git({"config", key, touch});
  }
  repository.git({"config", "include.path", "/dev/null"});
  EXPECT_EQ(expect_from_git(repository.path()).files.size(), 5u);
  EXPECT_FALSE(fs::exists(dir / "ran"));
}

}  // namespace
}  // namespace assay
