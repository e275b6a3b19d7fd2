#include "verify/expected/hub_cache.h"

#include "core/system/error.h"
#include "tests/verify/expected/hub_fixture.h"
#include "tests/verify/expected/lookup.h"
#include "verify/expected/find.h"

namespace assay {
namespace {

using namespace test;

const std::vector<std::string> kNames = {"config.json", "model.safetensors"};

void expect_model(const Expectation& e, const HubCache& cache) {
  EXPECT_EQ(names(e), kNames);
  EXPECT_EQ(digest(e, "config.json"), kConfigId);
  EXPECT_EQ(digest(e, "model.safetensors"), kWeightsSha256);
  EXPECT_EQ(e.files[0].digest->kind, DigestKind::git_sha1);
  EXPECT_EQ(e.path_of(e.files[1]), cache.repository / "blobs" / kWeightsSha256);
  EXPECT_TRUE(e.files[1].trust->stored_beside);
}

TEST(HubCache, NamesItsDigestsByItsBlobs) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  for (const fs::path& path :
       {cache.snapshot(), cache.repository, fs::path(cache.repository.string() + "/")}) {
    const Expectation e = expect_from_hub_cache(path);
    expect_model(e, cache);
    EXPECT_EQ(e.root, cache.snapshot());
    EXPECT_EQ(e.files[0].trust->source, TrustSource::blob_name);
    EXPECT_FALSE(e.complete);  // nobody says what else the commit holds
    EXPECT_TRUE(e.findings.empty());
  }
}

TEST(HubCache, TakesTheTreeListingWhenThereIsOne) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  cache.write_tree();
  fs::remove(cache.snapshot() / "config.json");
  const Expectation e = expect_from_hub_cache(cache.snapshot());
  EXPECT_EQ(names(e), kNames);
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.path_of(e.files[0]), cache.snapshot() / "config.json");  // to be found missing
  EXPECT_EQ(e.files[0].size, 24u);
  EXPECT_EQ(e.files[1].trust->source, TrustSource::hub_tree_cache);
  EXPECT_EQ(e.files[1].size, 5000u);
}

TEST(HubCache, IgnoresTreeListingsItDoesNotKnowAndRefusesBrokenOnes) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  const fs::path tree = cache.repository / "trees" / (kCommit + ".json");
  write_file(tree, R"({"format_version": 2, "files": []})");
  const Expectation e = expect_from_hub_cache(cache.snapshot());
  EXPECT_NE(finding(e, "hub_cache.unknown_tree"), nullptr);
  expect_model(e, cache);
  for (const char* broken : {R"({"format_version": 1, "files": )", R"({"format_version": 1, "files": {}})",
                             "", "[]", R"({"format_version": 1})",
                             R"({"format_version": 1, "files": {"model.safetensors": {"size": 5000}}})"}) {
    write_file(tree, broken);
    EXPECT_THROW(expect_from_hub_cache(cache.snapshot()), Error) << broken;
  }
}

TEST(HubCache, SaysWhenBlobAndListingDisagree) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  cache.write_tree();
  const std::string other(64, 'a');
  write_file(cache.repository / "blobs" / other, kWeights);
  fs::remove(cache.snapshot() / "model.safetensors");
  cache.link("model.safetensors", "../../blobs/" + other);
  const Expectation e = expect_from_hub_cache(cache.snapshot());
  EXPECT_NE(finding(e, "hub_cache.contradiction", "model.safetensors"), nullptr);
  EXPECT_EQ(digest(e, "model.safetensors"), kWeightsSha256);
}

TEST(HubCache, NamesDanglingLinksAndUnfinishedDownloads) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  const std::string absent(64, 'b');
  cache.link("sub/lost.safetensors", "../../../blobs/" + absent);
  write_file(cache.repository / "blobs" / (absent + ".incomplete"), "half");
  write_file(cache.repository / "blobs" / (kWeightsSha256 + ".0a1b2c3d.incomplete"), "half");
  write_file(cache.repository / ".no_exist" / kCommit / "adapter_config.json", "");
  const Expectation e = expect_from_hub_cache(cache.snapshot());
  EXPECT_NE(finding(e, "hub_cache.dangling_link", "sub/lost.safetensors"), nullptr);
  EXPECT_EQ(digest(e, "sub/lost.safetensors"), absent);
  const Finding* unfinished = finding(e, "hub_cache.incomplete", "blobs/" + absent + ".incomplete");
  const Finding* leftover =
      finding(e, "hub_cache.incomplete", "blobs/" + kWeightsSha256 + ".0a1b2c3d.incomplete");
  ASSERT_NE(unfinished, nullptr);
  ASSERT_NE(leftover, nullptr);
  EXPECT_EQ(unfinished->severity, Severity::error);
  EXPECT_EQ(leftover->severity, Severity::note);
}

TEST(HubCache, FollowsNoLinkOutOfTheRepository) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  write_file(dir / "secret", "s");
  write_file(dir / kWeightsSha256, "s");
  const std::vector<std::string> targets = {"/etc/passwd",
                                            "../../../secret",
                                            "../../../" + kWeightsSha256,
                                            "../../blobs/../../" + kWeightsSha256,
                                            "../../blobs/not-a-digest",
                                            "../../blobs",
                                            "../../blobs/" + std::string(64, 'c')};
  fs::create_symlink("/etc/passwd", cache.repository / "blobs" / std::string(64, 'c'));
  for (std::size_t i = 0; i < targets.size(); ++i) cache.link("f" + std::to_string(i), targets[i]);
  fs::create_symlink("/etc", cache.snapshot() / "folder");
  const Expectation e = expect_from_hub_cache(cache.snapshot());
  EXPECT_EQ(names(e), kNames);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_NE(finding(e, "hub_cache.link_outside", "f" + std::to_string(i)), nullptr) << targets[i];
  }
  EXPECT_NE(finding(e, "hub_cache.link_outside", "folder"), nullptr);
}

// Windows, or HF_HUB_DISABLE_SYMLINKS: the snapshot holds the files themselves.
TEST(HubCache, ReadsSnapshotsOfRealFiles) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  fs::remove(cache.snapshot() / "model.safetensors");
  write_file(cache.snapshot() / "model.safetensors", kWeights);
  const Expectation blind = expect_from_hub_cache(cache.snapshot());
  EXPECT_EQ(digest(blind, "model.safetensors"), "no digest");
  EXPECT_NE(finding(blind, "hub_cache.no_blob_name"), nullptr);
  cache.write_tree();
  const Expectation seeing = expect_from_hub_cache(cache.snapshot());
  EXPECT_EQ(digest(seeing, "model.safetensors"), kWeightsSha256);
  EXPECT_EQ(seeing.path_of(seeing.files[1]), cache.snapshot() / "model.safetensors");
}

TEST(HubCache, ReadsSeveralSnapshotsAndRepositories) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir / "hub");
  make_hub_cache(dir / "hub", "datasets--org--data");
  const std::string second(40, '2');
  fs::create_directories(cache.repository / "snapshots" / second);
  fs::create_symlink("../../blobs/" + kWeightsSha256,
                     cache.repository / "snapshots" / second / "model.safetensors");
  const Expectation model = expect_from_hub_cache(cache.repository);
  EXPECT_EQ(names(model), (std::vector<std::string>{"snapshots/" + kCommit + "/config.json",
                                                    "snapshots/" + kCommit + "/model.safetensors",
                                                    "snapshots/" + second + "/model.safetensors"}));
  EXPECT_EQ(model.path_of(model.files[1]), model.path_of(model.files[2]));  // one blob: hashed once

  for (const fs::path& path : {dir / "hub", dir.path()}) {  // HF_HUB_CACHE, HF_HOME
    const Expectation whole = expect_from_hub_cache(path);
    EXPECT_EQ(whole.files.size(), 5u);
    EXPECT_NE(find(whole, "datasets--org--data/snapshots/" + kCommit + "/config.json"), nullptr);
    EXPECT_EQ(whole.root, dir / "hub");
  }
}

TEST(HubCache, NarrowsToAFileAFolderOrABlob) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  cache.link("sub/again.json", "../../../blobs/" + kConfigId);
  const Expectation file = expect_from_hub_cache(cache.snapshot() / "model.safetensors");
  EXPECT_EQ(names(file), std::vector<std::string>{"model.safetensors"});
  const Expectation folder = expect_from_hub_cache(cache.snapshot() / "sub");
  EXPECT_EQ(names(folder), std::vector<std::string>{"again.json"});
  EXPECT_EQ(folder.root, cache.snapshot() / "sub");
  const Expectation blob = expect_from_hub_cache(cache.repository / "blobs" / kConfigId);
  EXPECT_EQ(digest(blob, kConfigId), kConfigId);
}

// The folder of blobs itself: of a cache, or copied out of one.
TEST(HubCache, ChecksAFolderOfBlobsByTheirNames) {
  const test::TempDir dir;
  const HubCache cache = make_hub_cache(dir / "hub");
  const fs::path blobs = cache.repository / "blobs";
  fs::create_directories(dir / "copy");
  fs::copy(blobs, dir / "copy/blobs", fs::copy_options::recursive);
  fs::copy(blobs, dir / "copy/other", fs::copy_options::recursive);
  for (const fs::path& folder : {blobs, dir / "copy/blobs"}) {
    const Expectation e = find_expectation(folder);
    EXPECT_EQ(e.kind, "Hugging Face cache");
    EXPECT_EQ(names(e), (std::vector<std::string>{kWeightsSha256, kConfigId}));
    EXPECT_EQ(digest(e, kConfigId), kConfigId);
    EXPECT_EQ(find(e, kConfigId)->trust->source, TrustSource::blob_name);
    EXPECT_EQ(test::assay({"verify", folder.string()}).exit_code, 0);
    test::write_file(folder / (std::string(64, 'c') + ".12345678.incomplete"), "half");
    EXPECT_NE(finding(find_expectation(folder), "hub_cache.incomplete"), nullptr);
    EXPECT_EQ(test::assay({"verify", folder.string()}).exit_code, 1);
    fs::remove(folder / (std::string(64, 'c') + ".12345678.incomplete"));
    std::string bytes = kWeights;
    bytes[4000] = 'v';
    test::write_file(folder / kWeightsSha256, bytes);
    EXPECT_EQ(test::assay({"verify", folder.string()}).exit_code, 1);
  }
  EXPECT_EQ(find_expectation(dir / "copy/other").kind, "plain folder") << "by its name alone no cache's";
  test::write_file(dir / "copy/blobs/README.md", "mine");
  EXPECT_EQ(find_expectation(dir / "copy/blobs").kind, "plain folder");
}

TEST(HubCache, NotesRefsWithoutSnapshotAndOrphanBlobs) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir.path());
  write_file(cache.repository / "refs/refs/pr/1", std::string(40, '9'));
  write_file(cache.repository / "refs/bad", "../../etc");
  write_file(cache.repository / "blobs" / std::string(64, 'd'), "old");
  const Expectation e = expect_from_hub_cache(cache.repository);
  EXPECT_NE(finding(e, "hub_cache.ref_without_snapshot", "refs/refs/pr/1"), nullptr);
  EXPECT_NE(finding(e, "hub_cache.bad_ref", "refs/bad"), nullptr);
  EXPECT_NE(finding(e, "hub_cache.orphan_blobs"), nullptr);
}

TEST(HubCache, ReadsWhatHuggingfaceHubWrote) {
  const TempDir dir;
  if (!download_with_huggingface_hub(dir.path()))
    GTEST_SKIP() << "SKIPPED: no huggingface_hub (set ASSAY_PYTHON)";
  const Expectation e = expect_from_hub_cache(dir / "cache");
  ASSERT_EQ(e.files.size(), 3u);
  const Expectation snapshot = expect_from_hub_cache(dir / "cache" / "models--org--name");
  EXPECT_TRUE(snapshot.complete);
  EXPECT_TRUE(snapshot.findings.empty());
  EXPECT_EQ(names(snapshot),
            (std::vector<std::string>{"config.json", "model.safetensors", "sub folder/notes.txt"}));
  EXPECT_EQ(digest(snapshot, "model.safetensors"), kWeightsSha256);
  EXPECT_EQ(digest(snapshot, "config.json"), kConfigId);
}

}  // namespace
}  // namespace assay
