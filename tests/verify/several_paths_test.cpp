// `assay verify *.safetensors`, `assay verify dirA dirB`: files of one folder are judged together, folders
// each by itself.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/git.h"
#include "tests/support/small_model.h"
#include "tests/verify/hub_layouts.h"

namespace assay::test {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto begin = text.find_last_of('\n', end);
  return text.substr(begin + 1, end - begin);
}

void damage(const fs::path& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  write_file(path, bytes);
}

class SeveralPaths : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSAY_PROGRAM_OR_SKIP("git");
    ASSAY_PROGRAM_OR_SKIP("openssl");
    model_ = write_small_model(dir_ / "clone");
    commit_with_pointers(model_.folder);
  }
  ProcessResult verify(std::vector<std::string> arguments, const fs::path& from) const {
    arguments.insert(arguments.begin(), "verify");
    return assay(arguments, {.directory = from});
  }
  json verify_json(std::vector<std::string> arguments, const fs::path& from) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    const ProcessResult result = verify(arguments, from);
    return json::parse(result.out);
  }
  const std::string& shard(std::size_t i) const { return model_.shards[i]; }

  TempDir dir_;
  SmallModel model_;
};

TEST_F(SeveralPaths, ShardsOfOneFolderAreJudgedTogether) {
  const ProcessResult good = verify(model_.shards, model_.folder);
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  for (const std::string& name : model_.shards) EXPECT_TRUE(contains(good.out, name + ": OK\n")) << good.out;
  EXPECT_TRUE(last_line(good.out).starts_with("OK: 3 files")) << good.out;

  const json report = verify_json({shard(0), "./" + shard(1), shard(0)}, model_.folder);
  EXPECT_EQ(report.at("schema"), "assay.verify/1");
  EXPECT_EQ(report.at("verdict"), "ok");
  ASSERT_EQ(report.at("files").size(), 2u) << "one of them is named twice";
  EXPECT_EQ(report.at("files")[0].at("actual"), sha256_by_openssl(model_.folder / shard(0)));
  EXPECT_EQ(report.at("files")[0].at("trust"), "lfs_pointer");
  EXPECT_TRUE(report.at("findings").empty()) << "the third shard was not asked about";

  damage(model_.folder / shard(2));
  EXPECT_EQ(verify({shard(0), shard(1)}, model_.folder).exit_code, 0);
  EXPECT_EQ(verify({shard(0), shard(2)}, model_.folder).exit_code, 1);
}

// As with --include: the index speaks of the files named, and only of them.
TEST_F(SeveralPaths, TheIndexIsAskedForTheFilesNamed) {
  fs::remove_all(model_.folder / ".git");
  const fs::path index = model_.folder / "model.safetensors.index.json";
  std::string text = read_file(index);
  const auto at = text.find(shard(1));
  write_file(index, text.replace(at, shard(1).size(), shard(0)));  // one of the second shard's tensors
  const json found = verify_json({shard(0), shard(2)}, model_.folder);
  ASSERT_EQ(found.at("verdict"), "failed") << found.at("verdict_line");
  EXPECT_EQ(found.at("findings").at(0).at("code"), "index.tensor_misplaced");
  EXPECT_EQ(found.at("findings").at(0).at("file"), shard(0));
  EXPECT_EQ(verify_json({shard(1), shard(2)}, model_.folder).at("verdict"), "well_formed");
  fs::remove(model_.folder / shard(1));
  write_file(index, text.replace(at, shard(0).size(), shard(1)));
  EXPECT_EQ(verify_json({shard(0), shard(2)}, model_.folder).at("verdict"), "well_formed");
  EXPECT_EQ(assay({"verify", model_.folder.string()}).exit_code, 1) << "of the whole one is missing";
}

TEST_F(SeveralPaths, FilesThatTheSourceDoesNotKnowAreUnvouched) {
  fs::copy(model_.folder / shard(0), model_.folder / "adapter.safetensors");
  const json report = verify_json({shard(0), "adapter.safetensors"}, model_.folder);
  EXPECT_EQ(report.at("verdict"), "partial");
  EXPECT_EQ(report.at("files")[0].at("name"), "adapter.safetensors");
  EXPECT_EQ(report.at("files")[0].at("status"), "unchecked");
  EXPECT_EQ(verify({shard(0), "adapter.safetensors", "--require-digests"}, model_.folder).exit_code, 1);
  const ProcessResult nowhere = verify({shard(0), "adapter"}, model_.folder);
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(contains(nowhere.err, "adapter")) << nowhere.err;
  EXPECT_EQ(nowhere.out, "") << "known before anything is hashed";
}

// Texts alone, too, are asked of the commit, as one of them is.
TEST_F(SeveralPaths, OfAProjectThatHoldsNoWeights) {
  const GitRepository project(dir_ / "project");
  project.write("README.md", "hello\n");
  project.write("config.json", "{}\n");
  project.commit();
  const json good = verify_json({"README.md", "config.json"}, project.path());
  EXPECT_EQ(good.at("verdict"), "ok") << good.dump(1);
  damage(project.path() / "README.md");
  EXPECT_EQ(verify({"README.md", "config.json"}, project.path()).exit_code, 1);
}

TEST_F(SeveralPaths, FilesOfASnapshotAndOfADownload) {
  const CacheLayout cache = write_hub_cache(dir_ / "hub", model_.folder, kNotDownloaded);
  EXPECT_EQ(verify_json(model_.shards, cache.snapshot).at("verdict"), "ok");
  damage(cache.repository / "blobs" / sha256_by_openssl(model_.folder / shard(1)));
  EXPECT_EQ(verify_json(model_.shards, cache.snapshot).at("verdict"), "failed");
  fs::remove_all(model_.folder / ".git");
  write_download_metadata(model_.folder, kNotDownloaded);
  EXPECT_EQ(verify_json(model_.shards, model_.folder).at("verdict"), "ok");
  damage(model_.folder / shard(0));
  EXPECT_EQ(verify_json(model_.shards, model_.folder).at("verdict"), "failed");
}

TEST_F(SeveralPaths, FoldersHaveAVerdictEach) {
  fs::copy(model_.folder, dir_ / "copy", fs::copy_options::recursive);
  damage(dir_ / "copy" / shard(1));
  const ProcessResult both = verify({"clone", "copy"}, dir_.path());
  EXPECT_EQ(both.exit_code, 1) << both.out;
  EXPECT_TRUE(contains(both.out, "\nOK: 5 files")) << both.out;
  EXPECT_TRUE(contains(both.out, "\nFAILED: 1 damaged, of 5 files")) << both.out;
  EXPECT_TRUE(last_line(both.out).starts_with("FAILED: 2 paths: 1 failed (copy), 1 ok")) << both.out;

  const json set = verify_json({"clone", "copy", "clone/"}, dir_.path());
  EXPECT_EQ(set.at("schema"), "assay.verify-set/1");
  EXPECT_EQ(set.at("verdict"), "failed");
  ASSERT_EQ(set.at("reports").size(), 2u);
  EXPECT_EQ(set.at("reports")[0].at("path"), "clone");
  EXPECT_EQ(set.at("reports")[0].at("report").at("verdict"), "ok");
  EXPECT_EQ(set.at("reports")[1].at("report").at("verdict"), "failed");
  EXPECT_EQ(set.at("reports")[1].at("report").at("source").at("root"), fs::canonical(dir_ / "copy").string());

  EXPECT_EQ(verify_json({"clone", "copy/" + shard(0), "copy/" + shard(2)}, dir_.path()).at("verdict"), "ok");
}

TEST_F(SeveralPaths, OneThatCannotBeReadDoesNotKeepTheOthersFromBeingVerified) {
  const SmallModel broken = write_small_model(dir_ / "broken");
  write_file(broken.folder / ".git", "gitdir: /nowhere\n");
  const ProcessResult result = verify({"broken", "clone", "--json", "-"}, dir_.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  const json set = json::parse(result.out);
  EXPECT_EQ(set.at("verdict"), "failed");
  EXPECT_TRUE(contains(set.at("reports")[0].at("error"), "git repository")) << set.dump(1);
  EXPECT_EQ(set.at("reports")[1].at("report").at("verdict"), "ok");
  EXPECT_TRUE(contains(set.at("verdict_line"), "1 unreadable (broken), 1 ok"));
}

TEST_F(SeveralPaths, AManifestSpeaksOfEachFolder) {
  const ProcessResult sums =
      run({"sh", "-c", "sha256sum clone/*.safetensors clone/*.json"}, {.directory = dir_.path()});
  write_file(dir_ / "SUMS", sums.out);
  EXPECT_EQ(verify({shard(0), shard(1), "--manifest", "../SUMS"}, model_.folder).exit_code, 0);
  fs::copy(model_.folder / shard(0), model_.folder / "adapter.safetensors");
  const ProcessResult unlisted =
      verify({shard(0), "adapter.safetensors", "--manifest", "../SUMS"}, model_.folder);
  EXPECT_EQ(unlisted.exit_code, 2);
  EXPECT_TRUE(contains(unlisted.err, "does not list adapter.safetensors")) << unlisted.err;

  fs::create_directories(dir_ / "other");
  fs::copy(model_.folder / shard(0), dir_ / "other/weights.safetensors");
  write_file(dir_ / "SUMS",
             sums.out + sha256_by_openssl(model_.folder / shard(0)) + "  other/weights.safetensors\n");
  EXPECT_EQ(verify({"clone", "other", "--manifest", "SUMS"}, dir_.path()).exit_code, 0);
  damage(dir_ / "other/weights.safetensors");
  EXPECT_EQ(verify({"clone", "other", "--manifest", "SUMS"}, dir_.path()).exit_code, 1);
}

TEST_F(SeveralPaths, OneStateServesThemAll) {
  fs::copy(model_.folder, dir_ / "copy", fs::copy_options::recursive);
  ::usleep(50'000);  // files touched this very moment are never trusted
  verify({"clone", "copy", "--state", "state"}, dir_.path());
  const json set = verify_json({"clone", "copy", "--state", "state"}, dir_.path());
  for (const json& entry : set.at("reports"))
    EXPECT_EQ(entry.at("report").at("summary").at("bytes"), 0) << entry.at("path");
}

TEST_F(SeveralPaths, WhatSpeaksOfOneIsRefusedByName) {
  const std::string digest(64, 'a');
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--sha256", digest},
                                                 {"--root", "."},
                                                 {"--receipt", "r.json"},
                                                 {"--check-receipt", "r.json"},
                                                 {"--manifest", "-"}}) {
    std::vector<std::string> arguments = model_.shards;
    arguments.insert(arguments.end(), option.begin(), option.end());
    const ProcessResult result = verify(arguments, model_.folder);
    EXPECT_EQ(result.exit_code, 2) << option[0];
    EXPECT_TRUE(contains(result.err, option[0])) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(SeveralPaths, AManifestOfFilesOfOneFolder) {
  std::vector<std::string> arguments = {"manifest", shard(0), shard(2)};
  const ProcessResult sums = run({"sha256sum", shard(0), shard(2)}, {.directory = model_.folder});
  EXPECT_EQ(assay(arguments, {.directory = model_.folder}).out, sums.out) << "from the commit's pointers";
  arguments.emplace_back("--hash");
  EXPECT_EQ(assay(arguments, {.directory = model_.folder}).out, sums.out);
  fs::remove_all(model_.folder / ".git");
  EXPECT_EQ(assay(arguments, {.directory = model_.folder}).out, sums.out);
  fs::create_directories(dir_ / "other");
  EXPECT_EQ(assay({"manifest", "clone", "other", "--hash"}, {.directory = dir_.path()}).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
