// Hostile inputs, one attack a test: each must end quickly, in exit code 1 or 2, with plain words and no
// control character on the terminal. Parsers have their own attacks in tests/core/formats and tests/fuzz.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/paths.h"
#include "tests/support/small_model.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_clean_terminal(const ProcessResult& result) {
  for (const std::string* text : {&result.out, &result.err}) {
    const bool clean = std::all_of(text->begin(), text->end(), [](char c) {
      return c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    });
    EXPECT_TRUE(clean) << "a control character reached the terminal";
  }
}

// Refused: a verdict of no, or unreadable input; never a crash, a hang or our own fault.
void expect_refused(const ProcessResult& result) {
  EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 2) << result.exit_code << "\n"
                                                              << result.out << result.err;
  expect_clean_terminal(result);
}

const std::string kDigest(64, 'a');

TEST(Attack, ManifestNamesThatClimbAreNotFollowed) {
  const TempDir dir;
  write_file(dir / "outside.bin", "secret");
  fs::create_directories(dir / "in");
  for (const std::string& name :
       {std::string("../outside.bin"), (dir / "outside.bin").string(), std::string("a/../../outside.bin"),
        std::string("..\\outside.bin"), std::string("C:outside.bin"), std::string("//host/x")}) {
    write_file(dir / "SUMS", kDigest + "  " + name + "\n");
    const ProcessResult result =
        assay({"verify", (dir / "in").string(), "--manifest", (dir / "SUMS").string()});
    expect_refused(result);
    EXPECT_FALSE(contains(result.out, "wrong bytes")) << name << " was opened";
  }
}

TEST(Attack, ControlCharactersInNamesDoNotReachTheTerminal) {
  const TempDir dir;
  const std::string evil = "model\x1b[2J\r\n\x07.safetensors";
  write_file(dir / evil,
             safetensors_bytes(R"({"w\u001b[2J\u0000":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                               "12345678"));
  expect_clean_terminal(assay({"verify", dir.path().string()}));
  expect_clean_terminal(assay({"inspect", dir.path().string()}));
}

TEST(Attack, LinksOutOfTheTreeAreNotFollowed) {
  const TempDir dir;
  write_file(dir / "outside.safetensors",
             safetensors_bytes(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"));
  fs::create_directories(dir / "in");
  fs::create_symlink(dir / "outside.safetensors", dir / "in/model.safetensors");
  const ProcessResult result = assay({"verify", (dir / "in").string()});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "link out of the folder")) << result.out;
  EXPECT_EQ(assay({"verify", (dir / "in").string(), "--follow-links"}).exit_code, 0);
}

TEST(Attack, LinkLoopsEnd) {
  const TempDir dir;
  fs::create_symlink("b", dir / "a");
  fs::create_symlink("a", dir / "b");
  fs::create_symlink(".", dir / "here");
  write_file(dir / "SUMS", kDigest + "  a\n" + kDigest + "  here/here/here/a\n");
  expect_refused(assay({"verify", dir.path().string(), "--manifest", (dir / "SUMS").string()}));
  expect_clean_terminal(assay({"verify", dir.path().string()}));
}

TEST(Attack, FifosAndDevicesDoNotHang) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "model.safetensors").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir / "model.gguf").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir / "zero.safetensors");
  write_file(dir / "SUMS", kDigest + "  model.safetensors\n" + kDigest + "  zero.safetensors\n");
  const ProcessOptions quick{.timeout_seconds = 20};
  expect_refused(assay({"verify", dir.path().string()}, quick));
  expect_refused(assay({"verify", dir.path().string(), "--manifest", (dir / "SUMS").string()}, quick));
  expect_refused(assay({"verify", (dir / "model.safetensors").string()}, quick));
  expect_refused(assay({"verify", "/dev/zero"}, quick));
  expect_refused(assay({"inspect", (dir / "model.gguf").string()}, quick));
  expect_refused(assay({"verify", dir.path().string(), "--follow-links"}, quick));
}

TEST(Attack, HeaderLengthsThatLie) {
  const TempDir dir;
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\xff", 8),
      hundred_mb("\x00\xe1\xf5\x05\x00\x00\x00\x00", 8);
  for (const std::string& bytes : {huge + "{}", hundred_mb + "{}", std::string("\x01"), std::string(),
                                   std::string(8, '\0'), huge.substr(0, 7) + '\x7f' + "{}"}) {
    write_file(dir / "model.safetensors", bytes);
    expect_refused(assay({"verify", (dir / "model.safetensors").string()}));
    expect_refused(assay({"inspect", (dir / "model.safetensors").string()}));
  }
}

TEST(Attack, NestedJsonIsRefusedEverywhere) {
  const TempDir dir;
  const std::string deep(2'000'000, '[');
  write_file(dir / "model.safetensors", safetensors_bytes(deep, ""));
  expect_refused(assay({"verify", dir.path().string()}));
  write_file(dir / "x/model.safetensors.index.json", deep);
  expect_refused(assay({"verify", (dir / "x").string()}));
  write_file(dir / "m/manifest.json", deep);
  expect_refused(assay({"verify", (dir / "m").string(), "--manifest", (dir / "m/manifest.json").string()}));
  write_file(dir / "c/config.json", deep);
  const ProcessResult config = assay({"verify", (dir / "c").string()});
  EXPECT_LE(config.exit_code, 2);
  expect_clean_terminal(config);
}

TEST(Attack, IndexNamesThatClimb) {
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "in");
  write_file(dir / "in/model.safetensors.index.json",
             R"({"metadata":{"total_size":8},"weight_map":{"w":"../../../etc/passwd","v":"/etc/shadow"}})");
  expect_refused(assay({"verify", (dir / "in").string()}));
  expect_refused(assay({"inspect", (dir / "in").string()}));
}

TEST(Attack, DigestsAreNeverUsedAsPaths) {
  const TempDir dir;
  const fs::path repo = dir / "models--a--b";
  write_file(dir / "secret", "x");
  write_file(repo / "refs/main", "../../../secret");
  fs::create_directories(repo / "snapshots" / std::string(40, '1'));
  fs::create_directories(repo / "blobs");
  fs::create_symlink("../../../../secret", repo / "snapshots" / std::string(40, '1') / "model.safetensors");
  fs::create_symlink("../../blobs/../../../secret",
                     repo / "snapshots" / std::string(40, '1') / "b.safetensors");
  const ProcessResult result = assay({"verify", repo.string()});
  expect_refused(result);
  EXPECT_FALSE(contains(result.out, "model.safetensors: OK"));
}

TEST(Attack, HugeGgufArraysCostNoMemory) {
  const TempDir dir;
  // One key, an array of 2^63 u8: 43 bytes that once ate 120 MB of memory a second elsewhere.
  std::string gguf("GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", 24);
  gguf += std::string("\x01\0\0\0\0\0\0\0k\x09\0\0\0\0\0\0\0", 17) + std::string("\0\0\0\0\0\0\0\x80", 8);
  write_file(dir / "m.gguf", gguf);
  const ProcessOptions quick{.timeout_seconds = 20};
  expect_refused(assay({"verify", (dir / "m.gguf").string()}, quick));
  expect_refused(assay({"inspect", (dir / "m.gguf").string()}, quick));
}

TEST(Attack, AFullDiskLeavesNoHalfReport) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "SKIPPED: no /dev/full";
  const TempDir dir;
  write_small_model(dir.path());
  const ProcessResult result =
      run({"sh", "-c", test::assay_binary() + " verify " + dir.path().string() + " > /dev/full"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "write to standard output")) << result.err;
  EXPECT_EQ(
      assay({"verify", dir.path().string(), "--json", (dir / "no/such/folder/x.json").string()}).exit_code,
      2);
}

TEST(Attack, ManyTinyFilesDoNotExhaustDescriptors) {
  const TempDir dir;
  std::string sums;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "f" + std::to_string(i);
    write_file(dir / name, name);
    sums += kDigest + "  " + name + "\n";
  }
  write_file(dir / "SUMS", sums);
  const ProcessResult result =
      run({"sh", "-c",
           "ulimit -n 64; " + test::assay_binary() + " verify " + dir.path().string() + " --manifest " +
               (dir / "SUMS").string() + " --quiet --keep-going"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "3000 damaged")) << result.out.substr(0, 500) << result.err;
}

TEST(Attack, InterruptLeavesAResumableState) {
  const TempDir dir;
  // Sparse files: enough to be hashing long after the signal, also where a loaded machine starts us late.
  std::string sums;
  for (int i = 0; i < 16; ++i) {
    const std::string name = "f" + std::to_string(i);
    write_file(dir / name, "x");
    fs::resize_file(dir / name, 4ull << 30);
    sums += kDigest + "  " + name + "\n";
  }
  write_file(dir / "small", "small");
  sums += kDigest + "  small\n";
  write_file(dir / "SUMS", sums);
  const std::string state = (dir / "state").string();
  const ProcessResult result = run({"timeout", "--foreground", "-s", "INT", "--preserve-status", "3",
                                    test::assay_binary(), "verify", dir.path().string(), "--manifest",
                                    (dir / "SUMS").string(), "--state", state, "--keep-going", "-j", "2"});
  EXPECT_EQ(result.exit_code, 130) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "INTERRUPTED")) << result.out;
  EXPECT_TRUE(fs::exists(state));
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    EXPECT_FALSE(contains(entry.path().filename().string(), ".tmp")) << entry.path();
  }
}

}  // namespace
}  // namespace assay::test
