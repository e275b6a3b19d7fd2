// What `assay verify` says of files in relation to each other and to the folder they lie in: extra, renamed,
// swapped, selected.
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/small_model.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

json verify_json(const fs::path& path, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"verify", path.string()});
  options.insert(options.end(), {"--json", "-"});
  return json::parse(assay(options).out);
}

json entry(const json& report, const std::string& name) {
  for (const json& file : report.at("files")) {
    if (file.at("name") == name) return file;
  }
  return json::object();
}

std::string codes(const json& report) {
  std::string all;
  for (const json& finding : report.at("findings")) all += finding.at("code").get<std::string>() + " ";
  return all;
}

// The small model's config names no architecture that could be compared with its tensors: a note says so.
constexpr const char* kOnlyTheConfig = "model.not_compared ";

class Relations : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSAY_PROGRAM_OR_SKIP("git");
    ASSAY_PROGRAM_OR_SKIP("sha256sum");
    model_ = write_small_model(dir_ / "model");
  }
  fs::path shard(int i) const { return model_.folder / model_.shards[static_cast<std::size_t>(i)]; }
  const std::string& name(int i) const { return model_.shards[static_cast<std::size_t>(i)]; }
  // By a program that is not ours; it knows no sizes.
  std::string manifest_of_all() {
    const ProcessResult sums = run({"sh", "-c", "sha256sum -- *"}, {.directory = model_.folder});
    write_file(dir_ / "SUMS", sums.out);
    return (dir_ / "SUMS").string();
  }
  void swap(int a, int b) {
    fs::rename(shard(a), dir_ / "x");
    fs::rename(shard(b), shard(a));
    fs::rename(dir_ / "x", shard(b));
  }

  TempDir dir_;
  SmallModel model_;
};

TEST_F(Relations, OfASingleFileNobodyExpectsItsNeighbours) {
  const json report = verify_json(shard(1));
  ASSERT_EQ(report.at("files").size(), 1u) << report.dump(1);
  EXPECT_EQ(report.at("files")[0].at("name"), name(1));
  EXPECT_EQ(report.at("findings").size(), 0u);
  const ProcessResult text = assay({"verify", shard(1).string()});
  EXPECT_TRUE(text.out.starts_with("single file: " + shard(1).string() + "\n")) << text.out;
}

TEST_F(Relations, AFileOfACloneMayBeNamedFromWithinItsFolder) {
  commit_with_pointers(model_.folder);
  const ProcessResult result = assay({"verify", name(1)}, {.directory = model_.folder});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "\nOK: 1 file, ")) << result.out;
}

TEST_F(Relations, AgainstAManifestARenamedFileIsFoundAndAnExtraOneNamed) {
  const std::string manifest = manifest_of_all();
  fs::rename(shard(0), model_.folder / "other.safetensors");
  fs::rename(model_.folder / "config.json", model_.folder / "old.json");
  const json report = verify_json(model_.folder, {"--manifest", manifest});
  EXPECT_TRUE(contains(entry(report, name(0)).at("diagnosis"), "its bytes are in other.safetensors"));
  EXPECT_TRUE(contains(entry(report, "config.json").at("diagnosis"), "its bytes are in old.json"));
  EXPECT_EQ(entry(report, "other.safetensors").at("status"), "extra");
}

TEST_F(Relations, AManifestMakesFilesExtraButNotItself) {
  const std::string manifest = manifest_of_all();
  const std::string beside = (model_.folder / "SUMS").string();
  fs::copy(manifest, beside);
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--manifest", beside, "--fail-on-extra"}).exit_code, 0);
  write_file(model_.folder / "modeling_x.py", "pass");
  write_file(model_.folder / "evil.ckpt", "x");
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--manifest", beside}).exit_code, 0);
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--manifest", beside, "--fail-on-extra"}).exit_code, 1);
  const json report = verify_json(model_.folder, {"--manifest", beside});
  EXPECT_EQ(entry(report, "evil.ckpt").at("findings")[0].at("code"), "code.pickle");
}

TEST_F(Relations, StateAndReceiptInTheFolderAreNotExtra) {
  commit_with_pointers(model_.folder);
  const std::vector<std::string> command = {"verify",    ".",      "--fail-on-extra", "--state", "s.json",
                                            "--receipt", "r.json", "--json",          "out.json"};
  EXPECT_EQ(assay(command, {.directory = model_.folder}).exit_code, 0);
  EXPECT_EQ(assay(command, {.directory = model_.folder}).exit_code, 0);
}

TEST_F(Relations, ASmallFileOfACommitIsFoundUnderItsOtherName) {
  commit_with_pointers(model_.folder);
  fs::rename(model_.folder / "config.json", model_.folder / "conf.json");
  EXPECT_TRUE(contains(entry(verify_json(model_.folder), "config.json").at("diagnosis"),
                       "its bytes are in conf.json"));
}

TEST_F(Relations, WithoutHashingEqualSizesSuggestARenaming) {
  commit_with_pointers(model_.folder);
  fs::rename(shard(0), model_.folder / "moved.safetensors");
  const json report = verify_json(model_.folder, {"--quick"});
  EXPECT_TRUE(contains(entry(report, name(0)).at("diagnosis"), "moved.safetensors, which nobody expected"));
}

TEST_F(Relations, AFileThatIsRightElsewhereIsToBeCopiedNotRenamed) {
  fs::create_directories(model_.folder / "copy");
  fs::copy(model_.folder / "config.json", model_.folder / "copy" / "config.json");
  commit_with_pointers(model_.folder);
  fs::remove(model_.folder / "config.json");
  const json file = entry(verify_json(model_.folder), "config.json");
  EXPECT_EQ(file.at("remedy"), "copy copy/config.json");
}

TEST_F(Relations, OfSwappedShardsOnlyTheSwapIsSaid) {
  commit_with_pointers(model_.folder);
  swap(0, 2);
  const json report = verify_json(model_.folder);
  EXPECT_TRUE(contains(entry(report, name(0)).at("diagnosis"), "is swapped with " + name(2)));
  EXPECT_EQ(codes(report), kOnlyTheConfig);
  // Without their digests the index is what speaks.
  EXPECT_TRUE(contains(codes(verify_json(model_.folder, {"--quick"})), "index.tensor_misplaced"));
}

TEST_F(Relations, SwappedFilesOfDifferentSizesAreNotCalledTruncated) {
  write_file(model_.folder / "a.gguf", "GGUF a");
  write_file(model_.folder / "b.gguf", "GGUF, longer");
  commit_with_pointers(model_.folder);
  fs::rename(model_.folder / "a.gguf", dir_ / "x");
  fs::rename(model_.folder / "b.gguf", model_.folder / "a.gguf");
  fs::rename(dir_ / "x", model_.folder / "b.gguf");
  const json report = verify_json(model_.folder);
  EXPECT_TRUE(contains(entry(report, "a.gguf").at("diagnosis"), "seems swapped with b.gguf"));
  EXPECT_TRUE(contains(entry(report, "b.gguf").at("diagnosis"), "seems swapped with a.gguf"));
}

TEST_F(Relations, AShardCopiedOverAnotherIsNamed) {
  commit_with_pointers(model_.folder);
  fs::copy(shard(0), shard(1), fs::copy_options::overwrite_existing);
  const json report = verify_json(model_.folder);
  EXPECT_EQ(entry(report, name(1)).at("diagnosis"), "holds the bytes of " + name(0));
  EXPECT_EQ(codes(report), kOnlyTheConfig);
}

TEST_F(Relations, WhatASelectionLeavesOutIsNotMissing) {
  commit_with_pointers(model_.folder);
  const ProcessResult one = assay({"verify", model_.folder.string(), "--include", "00002"});
  EXPECT_EQ(one.exit_code, 0) << one.out;
  EXPECT_TRUE(contains(one.out, "LFS pointers (1 file)")) << one.out;
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--exclude", "00002"}).exit_code, 0);
  fs::remove(shard(1));
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--exclude", "00002"}).exit_code, 0);
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--include", "00002"}).exit_code, 1);
}

TEST_F(Relations, NothingToVerifyIsNoGoodResult) {
  fs::create_directories(dir_ / "empty");
  EXPECT_EQ(assay({"verify", (dir_ / "empty").string()}).exit_code, 2);
  EXPECT_EQ(assay({"verify", model_.folder.string(), "--include", "no such name"}).exit_code, 2);
}

TEST_F(Relations, ABareRepositoryIsNoPlainFolder) {
  commit_with_pointers(model_.folder);
  const std::string bare = (dir_ / "bare.git").string();
  run({"git", "clone", "-q", "--bare", model_.folder.string(), bare});
  const ProcessResult alone = assay({"verify", bare});
  EXPECT_EQ(alone.exit_code, 2) << alone.out;
  EXPECT_TRUE(contains(alone.err, "--root")) << alone.err;
  EXPECT_EQ(assay({"verify", bare, "--root", model_.folder.string()}).exit_code, 0);
}

TEST_F(Relations, AnUnreadableShardIsNotCalledMissingToo) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIPPED: root can read everything";
  commit_with_pointers(model_.folder);
  fs::permissions(shard(1), fs::perms::none);
  const json report = verify_json(model_.folder);
  EXPECT_EQ(report.at("findings").size(), 0u) << codes(report);
  EXPECT_EQ(entry(report, name(1)).at("status"), "unreadable");
}

TEST_F(Relations, ARunOfZerosWithinIsNamed) {
  const std::string manifest = manifest_of_all();
  std::string bytes = read_file(shard(0));
  std::fill(bytes.begin() + 8192, bytes.begin() + 16384, '\0');
  write_file(shard(0), bytes);
  const json report = verify_json(model_.folder, {"--manifest", manifest});
  EXPECT_EQ(entry(report, name(0)).at("diagnosis"),
            "has wrong bytes; the longest run of zeros, 8,192 bytes, begins at byte 8,192")
      << "a manifest knows no size, so none is called right";
}

TEST_F(Relations, AFileOfZerosIsNamedWithoutHashing) {
  const auto size = fs::file_size(shard(0));
  const std::string zeros(size, '\0');
  write_file(shard(0), zeros);
  const json report = verify_json(model_.folder, {"--quick"});
  EXPECT_TRUE(contains(entry(report, name(0)).at("diagnosis"), "zero-filled from byte 0 to its end"));
}

TEST_F(Relations, HolesOfAFileWithTheRightDigestAreNoWarning) {
  const std::uint64_t size = 1 << 20;
  write_file(model_.folder / "sparse.dat", "");
  fs::resize_file(model_.folder / "sparse.dat", size);
  const std::string manifest = manifest_of_all();
  const json report = verify_json(model_.folder, {"--manifest", manifest});
  EXPECT_EQ(entry(report, "sparse.dat").at("status"), "ok");
  EXPECT_FALSE(entry(report, "sparse.dat").contains("findings"));
}

TEST_F(Relations, OutputsThatCannotBeWrittenAreRefusedAtOnce) {
  const std::string nowhere = (dir_ / "no" / "such" / "file").string();
  for (const char* option : {"--state", "--receipt", "--json"}) {
    const ProcessResult result = assay({"verify", model_.folder.string(), option, nowhere});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "") << "nothing is verified before";
  }
}

TEST_F(Relations, AReceiptOfOneFileIsCheckedByThatFile) {
  const std::string receipt = (dir_ / "r.json").string(), file = shard(0).string();
  ASSERT_EQ(assay({"verify", file, "--sha256", "sha256:" + sha256_by_openssl(shard(0)), "--receipt", receipt})
                .exit_code,
            0);
  const ProcessResult check = assay({"verify", file, "--check-receipt", receipt});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST(VerifyFolder, AFolderLinkIsNoDamage) {
  const TempDir dir;
  const std::string file =
      safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
  write_file(dir / "m/checkpoint-100/model.safetensors", file);
  write_file(dir / "other/model.safetensors", file);
  fs::create_directory_symlink("checkpoint-100", dir / "m/latest");
  const ProcessResult inside = assay({"verify", (dir / "m").string()});
  EXPECT_EQ(inside.exit_code, 0) << inside.out;
  EXPECT_TRUE(contains(inside.out, "note: latest: is a link to a folder")) << inside.out;
  fs::create_directory_symlink("../other", dir / "m/elsewhere");
  const ProcessResult outside = assay({"verify", (dir / "m").string()});
  EXPECT_EQ(outside.exit_code, 0) << outside.out;
  EXPECT_TRUE(contains(outside.out, "warning: elsewhere: is a link to a folder elsewhere")) << outside.out;
  write_file(dir / "SUMS", sha256_by_openssl(dir / "m/checkpoint-100/model.safetensors") +
                               "  checkpoint-100/model.safetensors\n");
  EXPECT_EQ(assay({"verify", (dir / "m").string(), "--manifest", (dir / "SUMS").string()}).exit_code, 0);
}

// A header no loader here reads, byte for byte as published: downloading it again would not help.
TEST(VerifyFolder, MalformedAsPublishedIsToldFromDamaged) {
  const TempDir dir;
  const std::string big_endian = std::string("GGUF") + std::string("\0\0\0\3", 4) + std::string(16, '\0');
  const std::string version1 = std::string("GGUF") + std::string("\1\0\0\0", 4) + std::string(8, '\0');
  for (const std::string& bytes : {big_endian, version1}) {
    write_file(dir / "m.gguf", bytes);
    const std::string digest = sha256_by_openssl(dir / "m.gguf");
    const ProcessResult same = assay({"verify", (dir / "m.gguf").string(), "--sha256", digest});
    EXPECT_EQ(same.exit_code, 1);
    EXPECT_TRUE(contains(same.out, "is exactly what the publisher has; malformed there: ")) << same.out;
    EXPECT_TRUE(contains(same.out, "m.gguf: FAILED\n")) << same.out;
    EXPECT_FALSE(contains(same.out, "download it again;")) << same.out;
    const ProcessResult other =
        assay({"verify", (dir / "m.gguf").string(), "--sha256", std::string(64, 'a')});
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_TRUE(contains(other.out, "is malformed: ")) << other.out;
    EXPECT_TRUE(contains(other.out, "download it again")) << other.out;
    const ProcessResult quick = assay({"verify", (dir / "m.gguf").string(), "--sha256", digest, "--quick"});
    EXPECT_TRUE(contains(quick.out, "m.gguf: FAILED\n")) << quick.out;
  }
}

}  // namespace
}  // namespace assay::test
