#include "verify/expected/local_dir.h"
#include "core/system/json.h"

#include "core/system/error.h"
#include "tests/verify/expected/hub_fixture.h"
#include "tests/verify/expected/lookup.h"

namespace assay {
namespace {

using namespace test;

constexpr const char* kDownload = ".cache/huggingface/download/";

TEST(LocalDir, ReadsDownloadMetadata) {
  const TempDir dir;
  make_local_dir(dir.path());
  write_file(dir.path() / kDownload / "sub/n.txt.metadata", kCommit + "\n" + kConfigId + "\n1795221253\n");
  const Expectation e = expect_from_local_dir(dir.path());
  EXPECT_EQ(names(e), (std::vector<std::string>{"config.json", "model.safetensors", "sub/n.txt"}));
  EXPECT_EQ(digest(e, "model.safetensors"), kWeightsSha256);
  EXPECT_EQ(digest(e, "sub/n.txt"), kConfigId);
  EXPECT_EQ(e.files[0].trust->source, TrustSource::download_metadata);
  EXPECT_TRUE(e.files[0].trust->stored_beside);
  EXPECT_EQ(e.origin, "commit " + kCommit);
  EXPECT_FALSE(e.complete);
  EXPECT_TRUE(e.findings.empty());
}

TEST(LocalDir, IsCompleteWithATreeListing) {
  const TempDir dir;
  make_local_dir(dir.path());
  fs::remove(dir.path() / kDownload / "config.json.metadata");
  write_file(dir.path() / ".cache/huggingface/trees" / (kCommit + ".json"), tree_json());
  const Expectation e = expect_from_local_dir(dir.path());
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(digest(e, "config.json"), kConfigId);
  EXPECT_EQ(find(e, "model.safetensors")->size, 5000u);
}

TEST(LocalDir, SaysWhenMetadataAndListingDisagree) {
  const TempDir dir;
  make_local_dir(dir.path());
  write_file(dir.path() / ".cache/huggingface/trees" / (kCommit + ".json"), tree_json());
  write_file(dir.path() / kDownload / "model.safetensors.metadata",
             kCommit + "\n" + std::string(64, 'a') + "\n1795221253\n");
  EXPECT_NE(finding(expect_from_local_dir(dir.path()), "local_dir.contradiction", "model.safetensors"),
            nullptr);
  // The same of an older commit is a file that was not downloaded again.
  write_file(dir.path() / kDownload / "model.safetensors.metadata",
             std::string(40, '9') + "\n" + std::string(64, 'a') + "\n1795221000\n");
  const Expectation e = expect_from_local_dir(dir.path());
  EXPECT_NE(finding(e, "local_dir.stale_file", "model.safetensors"), nullptr);
  EXPECT_NE(finding(e, "local_dir.mixed_commits"), nullptr);
  EXPECT_EQ(e.origin, "commit " + kCommit);
}

TEST(LocalDir, DoubtsMalformedMetadata) {
  const std::vector<std::string> malformed = {
      "",
      "\n\n\n",
      kCommit + "\n" + kConfigId + "\n",
      kCommit + "\n" + kConfigId + "\nyesterday\n",
      "main\n" + kConfigId + "\n1\n",
      kCommit + "\n../../../etc/passwd\n1\n",
      kCommit + "\n" + kConfigId.substr(1) + "\n1\n",
      std::string(5000, 'x'),
  };
  for (const std::string& text : malformed) {
    const TempDir dir;
    make_local_dir(dir.path());
    write_file(dir.path() / kDownload / "config.json.metadata", text);
    const Expectation e = expect_from_local_dir(dir.path());
    EXPECT_NE(finding(e, "local_dir.bad_metadata", "config.json"), nullptr) << text;
    EXPECT_EQ(digest(e, "config.json"), "no digest");
  }
}

TEST(LocalDir, NamesUnfinishedDownloads) {
  const TempDir dir;
  make_local_dir(dir.path());
  const std::string prefix = "5Ud8FhxnPjzcXb1TFjYvX2RkHqg=.";
  write_file(dir.path() / kDownload / (prefix + std::string(64, 'e') + ".incomplete"), "half");
  write_file(dir.path() / kDownload / (prefix + kWeightsSha256 + ".incomplete"), "half");
  const Expectation e = expect_from_local_dir(dir.path());
  const std::string folder = ".cache/huggingface/download/" + prefix;
  ASSERT_NE(finding(e, "local_dir.incomplete", folder + std::string(64, 'e') + ".incomplete"), nullptr);
  EXPECT_TRUE(has_errors(e.findings));
  EXPECT_EQ(finding(e, "local_dir.incomplete", folder + kWeightsSha256 + ".incomplete")->severity,
            Severity::note);
}

TEST(LocalDir, ReadsWhatHuggingfaceHubWrote) {
  const TempDir dir;
  if (!download_with_huggingface_hub(dir.path()))
    GTEST_SKIP() << "SKIPPED: no huggingface_hub (set ASSAY_PYTHON)";
  const Expectation e = expect_from_local_dir(dir / "local");
  EXPECT_EQ(names(e), (std::vector<std::string>{"config.json", "model.safetensors", "sub folder/notes.txt"}));
  EXPECT_EQ(digest(e, "model.safetensors"), kWeightsSha256);
  EXPECT_EQ(digest(e, "config.json"), kConfigId);
  EXPECT_TRUE(e.complete);
  EXPECT_TRUE(e.findings.empty());
}

}  // namespace
}  // namespace assay
