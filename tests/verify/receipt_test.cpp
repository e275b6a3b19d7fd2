// Receipts under attack: narrowed, edited, outlived.
#include <nlohmann/json.hpp>

#include "tests/support/small_model.h"
#include "tests/verify/hub_layouts.h"

namespace assay::test {
namespace {

using nlohmann::json;

class Receipts : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSAY_PROGRAM_OR_SKIP("git");
    ASSAY_PROGRAM_OR_SKIP("openssl");
    model_ = write_small_model(dir_ / "clone");
    commit_with_pointers(model_.folder);
    write_file(key(), "0123456789abcdef0123456789abcdef");
  }
  std::string receipt() const { return (dir_ / "r.json").string(); }
  std::string key() const { return (dir_ / "key").string(); }
  ProcessResult ask(std::vector<std::string> options) {
    options.insert(options.begin(), {"verify", model_.folder.string()});
    return assay(options);
  }
  int make(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--receipt", receipt()});
    return ask(options).exit_code;
  }
  ProcessResult check(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--check-receipt", receipt()});
    return ask(options);
  }
  // Replaces text in the receipt, as an editor would.
  void edit(const std::string& from, const std::string& to) {
    std::string text = read_file(receipt());
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    write_file(receipt(), text.replace(at, from.size(), to));
  }
  static bool says(const ProcessResult& result, const std::string& text) {
    return result.out.find(text) != std::string::npos;
  }

  TempDir dir_;
  SmallModel model_;
};

TEST_F(Receipts, OfAPartIsNoReceiptOfTheWhole) {
  ASSERT_EQ(make({"--include", "00003"}), 0);
  EXPECT_EQ(check().exit_code, 1);
  EXPECT_EQ(check({"--include", "00003"}).exit_code, 0);
  EXPECT_EQ(check({"--include", "0000[23]"}).exit_code, 1);
  edit("\"include\": \"00003\"", "\"include\": \"\"");
  EXPECT_EQ(check().exit_code, 1) << "the other files were not there when it was made";
  ASSERT_EQ(make({"--exclude", "00001"}), 0);
  EXPECT_EQ(check().exit_code, 1);
}

TEST_F(Receipts, OfAFileIsNoReceiptOfItsFolder) {
  const fs::path shard = model_.folder / model_.shards[0];
  ASSERT_EQ(assay({"verify", shard.string(), "--receipt", receipt()}).exit_code, 0);
  EXPECT_EQ(assay({"verify", shard.string(), "--check-receipt", receipt()}).exit_code, 0);
  edit("\"whole\": false", "\"whole\": true");
  EXPECT_EQ(check().exit_code, 1);
}

TEST_F(Receipts, NoticeFilesThatCameLaterOrWentAway) {
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(check().exit_code, 0);
  fs::create_directory(model_.folder / "sub");
  fs::copy(model_.folder / model_.shards[0], model_.folder / "sub/late.safetensors");
  const ProcessResult added = check();
  EXPECT_EQ(added.exit_code, 1);
  EXPECT_TRUE(says(added, "sub/late.safetensors")) << added.out;
  ASSERT_EQ(make(), 0) << "an extra file";
  EXPECT_EQ(check().exit_code, 1) << "the verdict was partial";
  fs::remove_all(model_.folder / "sub");
  ASSERT_EQ(make(), 0);
  fs::remove(model_.folder / "config.json");
  EXPECT_EQ(check().exit_code, 1);
}

TEST_F(Receipts, NoticeALinkOfTheCommitThatLeadsElsewhere) {
  const std::string folder = model_.folder.string();
  fs::create_symlink("config.json", model_.folder / "latest.json");
  run({"git", "-C", folder, "add", "latest.json"});
  run({"git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "link"});
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(check().exit_code, 0);
  fs::remove(model_.folder / "latest.json");
  fs::create_symlink("model.safetensors.index.json", model_.folder / "latest.json");
  EXPECT_EQ(check().exit_code, 1);
}

// The receipt, the state and the key may lie in the folder they are about.
TEST_F(Receipts, DoNotCountThemselves) {
  const std::string inside = (model_.folder / "r.json").string(), state = (model_.folder / "s.json").string();
  const std::string key = (model_.folder / "key").string();
  write_file(key, std::string(32, 'k'));
  ASSERT_EQ(ask({"--receipt", inside, "--state", state, "--receipt-key", key}).exit_code, 0);
  const ProcessResult result = ask({"--check-receipt", inside, "--receipt-key", key});
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

TEST_F(Receipts, OfHubCachesNoticeALaterSnapshot) {
  const CacheLayout cache = write_hub_cache(dir_ / "hub", model_.folder, {});
  fs::remove(cache.tree);
  const std::string path = (dir_ / "hub").string();
  ASSERT_EQ(assay({"verify", path, "--receipt", receipt()}).exit_code, 0);
  EXPECT_EQ(assay({"verify", path, "--check-receipt", receipt()}).exit_code, 0);
  write_file(cache.repository / "snapshots" / std::string(40, '2') / "model.safetensors", "late");
  EXPECT_EQ(assay({"verify", path, "--check-receipt", receipt()}).exit_code, 1);
}

TEST_F(Receipts, WithAnEditedVerdictContradictThemselves) {
  std::string bytes = read_file(model_.folder / model_.shards[0]);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(model_.folder / model_.shards[0], bytes);
  ASSERT_EQ(make(), 1);
  edit("\"verdict\": \"failed\"", "\"verdict\": \"ok\"");
  EXPECT_EQ(check().exit_code, 1);
  edit("\"status\": \"failed\"", "\"status\": \"ok\"");
  const ProcessResult result = check();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "its digest is not the one expected")) << result.out;
}

TEST_F(Receipts, AreAuthenticatedByTheKeyAndSayWhenTheyAreNot) {
  ASSERT_EQ(make({"--receipt-key", key()}), 0);
  const ProcessResult good = check({"--receipt-key", key()});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_TRUE(says(good, "authenticated by the key"));
  EXPECT_TRUE(says(check(), "NOT authenticated"));

  // The same by OpenSSL's program.
  const std::string mac = json::parse(read_file(receipt())).at("authentication").at("mac");
  std::string text = read_file(receipt());
  text.replace(text.find(mac), mac.size(), std::string(64, '0'));
  write_file(dir_ / "zeros.json", text);
  const ProcessResult theirs =
      run({"openssl", "dgst", "-sha256", "-hmac", read_file(key()), "-r", (dir_ / "zeros.json").string()});
  EXPECT_EQ(theirs.out.substr(0, 64), mac);

  const std::string whole = read_file(receipt());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"verified_unix\": ", "\"verified_unix\": 1"},
           {"\"include\": \"\"", "\"include\": \"x\""},
           {"\"trust\": \"lfs_pointer\"", "\"trust\": \"command_line\""},
           {"\n", "\n\n"},
           {mac.substr(0, 8), "00000000"}}) {
    write_file(receipt(), whole);
    edit(from, to);
    EXPECT_EQ(check({"--receipt-key", key()}).exit_code, 1) << from;
  }
  write_file(receipt(), whole);
  write_file(key(), "another key, as long as need be");
  EXPECT_EQ(check({"--receipt-key", key()}).exit_code, 1);
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(check({"--receipt-key", key()}).exit_code, 1) << "it carries no code";
  write_file(key(), "short");
  EXPECT_EQ(check({"--receipt-key", key()}).exit_code, 2);
}

TEST_F(Receipts, ShowWhatAGateDemands) {
  ASSERT_EQ(make(), 0);
  const std::string commit =
      run({"git", "-C", model_.folder.string(), "rev-parse", "HEAD"}).out.substr(0, 40);
  EXPECT_EQ(check({"--require-digests"}).exit_code, 0);
  EXPECT_EQ(check({"--expect-commit", commit}).exit_code, 0);
  EXPECT_EQ(check({"--expect-commit", std::string(40, 'b')}).exit_code, 1);
  write_file(model_.folder / "notes.txt", "mine");
  ASSERT_EQ(make(), 0);
  EXPECT_EQ(check().exit_code, 0);
  EXPECT_EQ(check({"--fail-on-extra"}).exit_code, 1);
}

}  // namespace
}  // namespace assay::test
