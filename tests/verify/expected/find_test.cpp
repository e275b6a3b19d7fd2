#include "verify/expected/find.h"

#include "core/system/error.h"
#include "tests/verify/expected/hub_fixture.h"
#include "tests/verify/expected/lookup.h"

namespace assay {
namespace {

using namespace test;

std::string kind(const fs::path& path, const FindOptions& options = {}) {
  return find_expectation(path, options).kind;
}

TEST(Find, TellsWhatAPathIs) {
  const TempDir dir;
  const HubCache cache = make_hub_cache(dir / "hub");
  EXPECT_EQ(kind(dir / "hub"), "Hugging Face cache");
  EXPECT_EQ(kind(cache.snapshot() / "config.json"), "Hugging Face cache");
  make_local_dir(dir / "local");
  EXPECT_EQ(kind(dir / "local"), "Hugging Face download");
  const Expectation file = find_expectation(dir / "local" / "model.safetensors");
  EXPECT_EQ(digest(file, "model.safetensors"), kWeightsSha256);
  write_file(dir / "plain" / "model.safetensors", kWeights);
  EXPECT_EQ(kind(dir / "plain"), "plain folder");
  EXPECT_EQ(kind(dir / "plain" / "model.safetensors"), "single file");
  EXPECT_THROW(find_expectation(dir / "absent"), Error);
}

TEST(Find, PrefersTheCommitAndMentionsTheDownload) {
  const TempDir dir;
  const GitRepository repository(dir / "clone");
  repository.write("model.safetensors", lfs_pointer(kWeightsSha256, 5000));
  repository.write("config.json", kConfig);
  const std::string commit = repository.commit();
  make_local_dir(repository.path());
  const Expectation e = find_expectation(repository.path());
  EXPECT_EQ(e.kind, "git clone");
  EXPECT_NE(finding(e, "find.also_download"), nullptr);
  EXPECT_EQ(trust_summary(e),
            "Digests come from LFS pointers (1 file) and git object ids (1 file) in commit " +
                commit.substr(0, 10) +
                " of this clone: they prove that the files match that commit; compare the commit "
                "id with the publisher's.");
  EXPECT_EQ(kind(repository.path() / "config.json"), "git clone");
}

// A home directory, or a code repository with a models/ folder that it ignores.
TEST(Find, PassesOverARepositoryThatMerelyContainsThePath) {
  const TempDir dir;
  const GitRepository repository(dir / "code");
  repository.write("main.py", "pass\n");
  repository.write(".gitignore", "models/\n");
  repository.commit();
  repository.write("models/model.safetensors", kWeights);
  const Expectation e = find_expectation(repository.path() / "models");
  EXPECT_EQ(e.kind, "plain folder");
  EXPECT_NE(finding(e, "find.git_unused"), nullptr);
  make_local_dir(repository.path() / "models");
  EXPECT_EQ(kind(repository.path() / "models"), "Hugging Face download");
}

TEST(Find, ObeysTheUser) {
  const TempDir dir;
  make_local_dir(dir / "local");
  write_file(dir / "sums", kWeightsSha256 + "  model.safetensors\n");
  EXPECT_EQ(kind(dir / "local", {.manifest = dir / "sums"}), "checksum manifest");
  EXPECT_EQ(kind(dir / "local" / "model.safetensors", {.sha256 = kWeightsSha256}),
            "file with a given digest");
  EXPECT_THROW(kind(dir / "local", {.rev = "HEAD"}), Error);
  EXPECT_THROW(kind(dir / "local" / "config.json", {.manifest = dir / "sums", .sha256 = kWeightsSha256}),
               Error);
  const GitRepository repository(dir / "clone");
  repository.write("model.safetensors", lfs_pointer(kWeightsSha256, 5000));
  repository.commit();
  const Expectation elsewhere = find_expectation(repository.path(), {.root = dir / "local"});
  EXPECT_EQ(elsewhere.path_of(elsewhere.files[0]), dir / "local" / "model.safetensors");
}

TEST(Find, MentionsAManifestItWasNotGiven) {
  const TempDir dir;
  write_file(dir / "SHA256SUMS", kWeightsSha256 + "  model.safetensors\n");
  write_file(dir / "model.safetensors", kWeights);
  EXPECT_NE(finding(find_expectation(dir.path()), "find.manifest_unused"), nullptr);
}

TEST(Trust, SaysWhatADigestBesideItsFileProves) {
  const TempDir dir;
  make_local_dir(dir / "local");
  const std::string text = trust_summary(find_expectation(dir / "local"));
  EXPECT_NE(text.find("nothing has rotted since, not that the right files"), std::string::npos) << text;
  for (const TrustSource source :
       {TrustSource::none, TrustSource::lfs_pointer, TrustSource::git_blob, TrustSource::hub_listing,
        TrustSource::hub_tree_cache, TrustSource::download_metadata, TrustSource::blob_name,
        TrustSource::manifest, TrustSource::command_line}) {
    EXPECT_FALSE(describe({source, "x", true}).empty());
    EXPECT_EQ(trust_name(source).find(' '), std::string_view::npos);
  }
}

}  // namespace
}  // namespace assay
