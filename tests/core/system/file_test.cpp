#include "core/system/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/system/error.h"
#include "core/system/tree_names.h"
#include "tests/support/support.h"

namespace assay {
namespace {

TEST(File, RefusesWhatIsNotARegularFile) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_THROW(File::open(dir / "fifo"), Error);  // and does not hang
  EXPECT_THROW(File::open(dir.path()), Error);
  EXPECT_THROW(File::open("/dev/zero"), Error);
  EXPECT_THROW(File::open(dir / "absent"), Error);
}

TEST(File, ReadsShortOnlyAtTheEnd) {
  const test::TempDir dir;
  test::write_file(dir / "f", "0123456789");
  const File file = File::open(dir / "f");
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(file.read_at(4, buffer), 6u);
  EXPECT_EQ(file.read_at(100, buffer), 0u);
  EXPECT_THROW(file.read_exactly(4, buffer), Error);
  EXPECT_EQ(read_small_file(dir / "f", 10), "0123456789");
  EXPECT_THROW(read_small_file(dir / "f", 9), Error);
}

TEST(AtomicFile, AppearsWholeOrNotAtAll) {
  const test::TempDir dir;
  test::write_file(dir / "out", "old");
  {
    AtomicFile file(dir / "out");
    file.write("half");
  }
  EXPECT_EQ(test::read_file(dir / "out"), "old");
  {
    AtomicFile file(dir / "out");
    file.write("new");
    file.commit();
  }
  EXPECT_EQ(test::read_file(dir / "out"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

// kill -9 leaves a temporary; the next run that writes the same file takes it away.
TEST(AtomicFile, WhatDeadProcessesLeftIsRemoved) {
  const test::TempDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(dir / "out");
    AtomicFile other(dir / "other");
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2);
  test::write_file(dir / ".out.assay-0000beef-1.tmp", "of another machine");
  {
    AtomicFile alive(dir / "out");
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 3) << "other's, beef's and ours";
    AtomicFile(dir / "x").commit();
    EXPECT_TRUE(fs::exists(alive.temporary())) << "a living process's stays";
  }
  EXPECT_TRUE(fs::exists(dir / ".out.assay-0000beef-1.tmp"));
}

TEST(ListTree, ListsLinksWithoutFollowingThem) {
  const test::TempDir dir;
  test::write_file(dir / "a/b.txt", "x");
  test::write_file(dir / "skip/c.txt", "x");
  fs::create_symlink("..", dir / "a/loop");
  const std::vector<std::string_view> skip = {"skip"};
  const auto entries = list_tree(dir.path(), skip);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a/b.txt");
  EXPECT_EQ(entries[0].size, 1u);
  EXPECT_EQ(entries[1].name, "a/loop");
  EXPECT_EQ(entries[1].kind, TreeEntry::Kind::link);
  const auto names = list_names(dir.path(), skip);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].name, "a/b.txt");
  EXPECT_EQ(names[0].kind, TreeEntry::Kind::regular);
  EXPECT_EQ(names[1].kind, TreeEntry::Kind::link);
}

TEST(ListTree, OfAFolderThatMayNotBeSearchedListsUnreadableEntries) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIPPED: root may read everything";
  const test::TempDir dir;
  test::write_file(dir / "closed/x", "x");
  fs::permissions(dir / "closed", fs::perms::owner_read);
  for (const auto& entries : {list_tree(dir.path()), list_names(dir.path())}) {
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].kind, TreeEntry::Kind::unreadable);
  }
  fs::permissions(dir / "closed", fs::perms::owner_all);
}

TEST(AtomicFile, WritesIntoAPipeInsteadOfReplacingIt) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const int reader = ::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  {
    AtomicFile file(dir / "pipe");
    file.write(std::string_view("through"));
    file.commit();
  }
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(dir / "pipe"));
}

TEST(AtomicFile, WritesThroughALink) {
  const test::TempDir dir;
  fs::create_directories(dir / "there");
  test::write_file(dir / "there" / "file", "old");
  fs::create_symlink("there/file", dir / "link");
  AtomicFile file(dir / "link");
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(test::read_file(dir / "there" / "file"), "new");
}

}  // namespace
}  // namespace assay
