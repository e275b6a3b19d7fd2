// `assay manifest --sign` and signed receipts: what is signed verifies, what must not be signed is refused, and a list
// signed again reads what changed and no more.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/signature/bundle.h"
#include "verify/signature/statement.h"

namespace assay::test {
namespace {

using nlohmann::json;

class Signing : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  void SetUp() override { fs::copy(fixtures() / "model", model(), fs::copy_options::recursive); }
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "signatures"; }
  fs::path model() const { return dir_ / "model"; }
  static Words join(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProcessResult sign(const Words& more = {}) const {
    return assay(join({"manifest", model(), "--sign", "--key", fixtures() / "p256.key"}, more));
  }
  ProcessResult verify(const Words& more = {}) const {
    return assay(join({"verify", model(), "--public-key", fixtures() / "p256.pub"}, more));
  }
  static signature::SignedModel model_of(const fs::path& bundle) {
    return signature::parse_statement(signature::parse_bundle(read_file(bundle), bundle).envelope->payload);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }

  TempDir dir_;
};

TEST_F(Signing, ByAKey) {
  write_file(model() / ".gitattributes", "");
  ASSERT_EQ(sign().exit_code, 0);
  EXPECT_EQ(verify().exit_code, 0);
  const auto signed_model = model_of(model() / "model.sig");
  EXPECT_EQ(signed_model.files.size(), 4u);
  EXPECT_EQ(signed_model.name, "model");
  EXPECT_EQ(signed_model.files.front().name, "config.json");
  const json bundle = json::parse(read_file(model() / "model.sig"));
  EXPECT_EQ(bundle["verificationMaterial"]["publicKey"]["hint"],
            json::parse(read_file(fixtures() / "p256.sig"))["verificationMaterial"]["publicKey"]["hint"])
      << "as model-signing names the key";
  write_file(model() / "config.json", "{}");
  EXPECT_EQ(verify().exit_code, 1);
}

// The same list as model-signing's own, of the same files.
TEST_F(Signing, SaysWhatModelSigningSays) {
  ASSERT_EQ(sign().exit_code, 0);
  const auto ours = model_of(model() / "model.sig"), theirs = model_of(fixtures() / "p256.sig");
  EXPECT_EQ(ours.root, theirs.root);
  EXPECT_EQ(ours.name, theirs.name);
  EXPECT_EQ(ours.files.size(), theirs.files.size());
}

TEST_F(Signing, ByACertificate) {
  const Words certified = {"manifest",
                           model(),
                           "--sign",
                           "--key",
                           fixtures() / "leaf.key",
                           "--certificate",
                           fixtures() / "chain.pem"};
  ASSERT_EQ(assay(certified).exit_code, 0);
  EXPECT_EQ(assay({"verify", model(), "--ca", fixtures() / "ca.pem"}).exit_code, 0);
  EXPECT_EQ(assay({"verify", model(), "--ca", fixtures() / "other_ca.pem"}).exit_code, 1);
  const auto mixed = sign({"--certificate", fixtures() / "chain.pem"});
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_TRUE(says(mixed, "not of the key given")) << mixed.err;
}

TEST_F(Signing, AgainReadsWhatChanged) {
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // longer than a tick: see verify/state
  const Words again = {"--state", dir_ / "state", "--json", "-"};
  const json first = json::parse(sign(again).out);
  EXPECT_EQ(first["bytes_known"], 0);
  write_file(model() / "config.json", "{\"changed\": true}");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const json second = json::parse(sign(again).out);
  EXPECT_EQ(second["bytes_read"], fs::file_size(model() / "config.json"));
  EXPECT_EQ(second["bytes_known"], 2500 + 2100);
  EXPECT_NE(first["signature"]["root_digest"], second["signature"]["root_digest"]);
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(Signing, OneFile) {
  ASSERT_EQ(
      assay({"manifest", model() / "weights.bin", "--sign", "--key", fixtures() / "p256.key"}).exit_code, 0);
  EXPECT_EQ(model_of(model() / "weights.bin.sig").files.at(0).name, ".");
  EXPECT_EQ(assay({"verify", model() / "weights.bin", "--public-key", fixtures() / "p256.pub"}).exit_code, 0);
}

TEST_F(Signing, LeavesOutWhatIsNamed) {
  write_file(model() / "cache" / "x", "");
  ASSERT_EQ(sign({"--ignore-path", "cache", "--state", model() / "state"}).exit_code, 0);
  EXPECT_EQ(model_of(model() / "model.sig").files.size(), 4u);
  EXPECT_EQ(verify().exit_code, 0) << "the bundle says what it leaves out";
  EXPECT_EQ(sign({"--ignore-path", "../cache"}).exit_code, 2);
}

// By the specification hidden folders belong to a model; what a download's client keeps there does not.
TEST_F(Signing, HiddenFoldersAreSigned) {
  write_file(model() / ".cache" / "weights.bin", "w");
  write_file(model() / ".cache" / "huggingface" / ".gitignore", "*");
  ASSERT_EQ(sign().exit_code, 0);
  EXPECT_EQ(model_of(model() / "model.sig").files.front().name, ".cache/weights.bin");
  EXPECT_EQ(model_of(model() / "model.sig").files.size(), 5u);
  EXPECT_EQ(verify().exit_code, 0);
  write_file(model() / ".cache" / "weights.bin", "v");
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(Signing, LeavesOutWhatIsNamedFromTheRoot) {
  write_file(model() / "cache" / "x", "");
  ASSERT_EQ(sign({"--ignore-path", (model() / "cache").string() + "/"}).exit_code, 0);
  EXPECT_EQ(model_of(model() / "model.sig").files.size(), 4u);
  write_file(model() / "more", "");
  EXPECT_EQ(verify().exit_code, 1);
  EXPECT_EQ(verify({"--ignore-path", model() / "more"}).exit_code, 0);
  EXPECT_EQ(verify({"--ignore-path", "/etc/passwd"}).exit_code, 2) << "is elsewhere";
}

TEST_F(Signing, RefusesWhatMustNotBeSigned) {
  fs::copy_file(fixtures() / "p256.key", model() / "p256.key");
  const auto own = assay({"manifest", model(), "--sign", "--key", model() / "p256.key"});
  EXPECT_EQ(own.exit_code, 1);
  EXPECT_TRUE(says(own, "lies in the folder")) << own.err;
  fs::remove(model() / "p256.key");
  fs::create_symlink("weights.bin", model() / "link.bin");
  EXPECT_TRUE(says(sign(), "is a symbolic link"));
  EXPECT_FALSE(fs::exists(model() / "model.sig"));
  EXPECT_EQ(sign({"--follow-links"}).exit_code, 0);
  EXPECT_TRUE(model_of(model() / "model.sig").allow_symlinks);
  fs::create_directory_symlink("sub", model() / "folder");
  EXPECT_TRUE(says(sign({"--follow-links"}), "link to a folder"));
}

TEST_F(Signing, RefusesDamage) {
  // Of the 2,500 bytes 0 to 250 over and over.
  write_file(dir_ / "sums",
             "a75c5b146f3ad9d2e6e54652e71eb6a1d206ffb1348bed2c2f43b51ddaac0f88  weights.bin\n");
  std::string bytes = read_file(model() / "weights.bin");
  bytes[7] ^= 1;
  fs::permissions(model() / "weights.bin", fs::perms::owner_write, fs::perm_options::add);
  write_file(model() / "weights.bin", bytes);
  const auto result = sign({"--manifest", dir_ / "sums"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "not to bless that")) << result.err;
}

TEST_F(Signing, AReceipt) {
  ASSERT_EQ(sign().exit_code, 0);
  const std::string receipt = dir_ / "r.json";
  ASSERT_EQ(verify({"--receipt", receipt, "--sign-receipt", fixtures() / "p256.key"}).exit_code, 0);
  const auto check = [&](const Words& more) {
    return assay(join({"verify", model(), "--check-receipt", receipt}, more));
  };
  const auto good = check({"--public-key", fixtures() / "p256.pub"});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_TRUE(says(good, "signed by the key p256.pub")) << good.out;
  EXPECT_TRUE(says(check({"--public-key", fixtures() / "p384.pub"}), "its signature is not good"));
  EXPECT_EQ(check({"--ca", fixtures() / "ca.pem"}).exit_code, 1);
  std::string text = read_file(receipt);
  text.replace(text.find("\"ok\""), 4, "\"OK\"");
  write_file(receipt, text);
  EXPECT_TRUE(says(check({"--public-key", fixtures() / "p256.pub"}), "its signature is not good"));
}

}  // namespace
}  // namespace assay::test
