// `assay verify` of a signed model: whom it believes, what it holds the files against, what it refuses. The bundles were
// made by model-signing (data/make_signature_fixtures.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

constexpr const char* kIdentity = "signer@example.org";
constexpr const char* kIssuer = "https://accounts.example.org";

class SignedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::copy(fixtures() / "model", model(), fs::copy_options::recursive);
    fs::permissions(model() / "weights.bin", fs::perms::owner_write, fs::perm_options::add);
  }
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "signatures"; }
  fs::path model() const { return dir_ / "model"; }
  void put(const std::string& bundle, const std::string& as = "model.sig") const {
    fs::copy_file(fixtures() / bundle, model() / as, fs::copy_options::overwrite_existing);
  }
  using Words = std::vector<std::string>;
  static Words by_key(const std::string& name = "p256.pub") { return {"--public-key", fixtures() / name}; }
  static Words by_certificate(const std::string& name = "ca.pem") { return {"--ca", fixtures() / name}; }
  static Words keyless(const std::string& identity = kIdentity, const std::string& issuer = kIssuer) {
    return {"--identity", identity, "--issuer", issuer, "--trusted-root", fixtures() / "keyless_root.json"};
  }
  ProcessResult verify(const Words& words, const Words& more = {}) const {
    Words all = {"verify", model()};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), more.begin(), more.end());
    return assay(all);
  }
  void change(const std::string& name, std::size_t byte) const {
    std::string bytes = read_file(model() / name);
    bytes.at(byte) ^= 1;
    write_file(model() / name, bytes);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }

  TempDir dir_;
};

TEST_F(SignedModel, EachKindOfKeyAndHash) {
  for (const char* name : {"p256", "p384", "p521", "blake2", "blake3", "shards", "blake2_shards"}) {
    put(std::string(name) + ".sig");
    const bool own = name[0] == 'p';
    const auto result = verify(by_key(own ? std::string(name) + ".pub" : "p256.pub"));
    EXPECT_EQ(result.exit_code, 0) << name << "\n" << result.out << result.err;
    EXPECT_TRUE(says(result, "weights.bin: OK") && says(result, "sub/adapter.bin: OK")) << result.out;
    change("weights.bin", 1700);
    const auto damaged = verify(by_key(own ? std::string(name) + ".pub" : "p256.pub"));
    EXPECT_EQ(damaged.exit_code, 1) << name;
    EXPECT_TRUE(says(damaged, "weights.bin: FAILED") && says(damaged, "sub/adapter.bin: OK")) << damaged.out;
    change("weights.bin", 1700);
  }
}

TEST_F(SignedModel, DamagedShardsAreRanges) {
  put("blake2_shards.sig");
  change("weights.bin", 1700);
  const auto result = verify(by_key(), {"--json", "-"});
  const json report = json::parse(result.out);
  EXPECT_EQ(report["files"].back()["damaged_ranges"], json::array({"1000-1999"}));
  EXPECT_EQ(report["files"].back()["digest"], "sha256-of-shards");
}

TEST_F(SignedModel, TheMethodIsTheUsersChoice) {
  const std::pair<const char*, Words> ways[] = {
      {"p256.sig", by_key()}, {"certificate.sig", by_certificate()}, {"rekor1.sig", keyless()}};
  for (const auto& [bundle, own] : ways) {
    put(bundle);
    for (const auto& [other, words] : ways) {
      const auto result = verify(words);
      EXPECT_EQ(result.exit_code, bundle == other ? 0 : 1)
          << bundle << " by the way of " << other << result.out;
      EXPECT_EQ(says(result, "the signature is not good"), bundle != other);
      EXPECT_EQ(says(result, "Digests come from the signature"), bundle == other);
    }
  }
}

TEST_F(SignedModel, SomebodyElseIsRefused) {
  put("p256.sig");
  EXPECT_TRUE(says(verify(by_key("p384.pub")), "not by that key"));
  put("certificate.sig");
  EXPECT_TRUE(says(verify(by_certificate("other_ca.pem")), "does not lead to one that is trusted"));
  for (const char* bundle : {"rekor1.sig", "rekor2.sig"}) {
    put(bundle);
    EXPECT_EQ(verify(keyless()).exit_code, 0) << bundle;
    EXPECT_TRUE(says(verify(keyless("Signer@example.org")), "not by 'Signer@example.org'"));
    EXPECT_TRUE(says(verify(keyless(kIdentity, "https://accounts.example.org/")), "attested by"));
    EXPECT_EQ(verify({"--identity", kIdentity, "--issuer", kIssuer}).exit_code, 1)
        << "by Sigstore's own root";
  }
}

// Of a log whose checkpoints are signed under another name, a trusted root has both (checkpointKeyId).
TEST_F(SignedModel, ALogMayHaveAnotherNameInItsCheckpoints) {
  put("rekor2.sig");
  json root = json::parse(read_file(fixtures() / "keyless_root.json"));
  for (json& log : root["tlogs"]) {
    log["checkpointKeyId"] = log["logId"];
    log["logId"]["keyId"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  }
  const auto verdict = [&] {
    write_file(dir_ / "root.json", root.dump());
    return verify({"--identity", kIdentity, "--issuer", kIssuer, "--trusted-root", dir_ / "root.json"})
        .exit_code;
  };
  EXPECT_EQ(verdict(), 0);
  for (json& log : root["tlogs"]) log["checkpointKeyId"] = nullptr;
  EXPECT_EQ(verdict(), 1);
}

TEST_F(SignedModel, TheReportNamesTheSigner) {
  put("rekor2.sig");
  const json report = json::parse(verify(keyless(), {"--json", "-"}).out);
  EXPECT_EQ(report["signature"]["identity"], kIdentity);
  EXPECT_EQ(report["signature"]["issuer"], kIssuer);
  EXPECT_EQ(report["signature"]["method"], "keyless");
  EXPECT_EQ(report["signature"]["times"].size(), 1u);
  EXPECT_EQ(report["files"][0]["trust"], "signature");
  EXPECT_NE(report["verdict_line"].get<std::string>().find(kIdentity), std::string::npos);
}

TEST_F(SignedModel, WhatIsHereAndUnsigned) {
  put("p256.sig");
  write_file(model() / "injected.py", "import os");
  const auto strict = verify(by_key());
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_TRUE(says(strict, "injected.py: is here and was not signed")) << strict.out;
  EXPECT_EQ(verify(by_key(), {"--ignore-unsigned"}).exit_code, 0);
  EXPECT_EQ(verify(by_key(), {"--ignore-path", "injected.py"}).exit_code, 0);
  fs::remove(model() / "injected.py");
  fs::create_directory_symlink("/usr/share", model() / "more");
  EXPECT_EQ(verify(by_key()).exit_code, 1) << "a link to a folder";
}

TEST_F(SignedModel, WhatEverySignerLeavesOutIsTold) {
  put("p256.sig");
  write_file(model() / ".git" / "config", "");
  write_file(model() / "sub" / ".gitignore", "");
  const auto result = verify(by_key());
  EXPECT_TRUE(says(result, "not looked at: .git\n")) << result.out;
  EXPECT_EQ(result.exit_code, 1) << "only in the model's root";
  EXPECT_TRUE(says(result, "sub/.gitignore: is here and was not signed")) << result.out;
}

TEST_F(SignedModel, WhatIsSignedAndAbsent) {
  put("p256.sig");
  fs::remove(model() / "sub" / "adapter.bin");
  const auto result = verify(by_key(), {"--ignore-unsigned"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "sub/adapter.bin: MISSING")) << result.out;
}

TEST_F(SignedModel, TheBundleIsFoundWhereSignersLeaveIt) {
  for (const char* name :
       {"model.sig", "nemotron.oms.sig", "claims.jsonl", "../model.sig", "../model.oms.sig"}) {
    std::string bundle = json::parse(read_file(fixtures() / "p256.sig")).dump();
    if (std::string_view(name) == "claims.jsonl")
      bundle = json::parse(read_file(fixtures() / "p384.sig")).dump() + "\n" + bundle + "\n";
    write_file(model() / name, bundle);
    EXPECT_EQ(verify(by_key()).exit_code, 0) << name;
    const auto unasked = verify({});
    EXPECT_TRUE(says(unasked, "may be the publisher's signature")) << unasked.out;
    EXPECT_FALSE(says(unasked, "Digests come from the signature"));
    fs::remove(model() / name);
  }
  EXPECT_EQ(verify(by_key()).exit_code, 2) << "none is here";
}

TEST_F(SignedModel, OneFileOfTheModel) {
  put("p256.sig");
  Words words = {"verify", model() / "weights.bin", "--signature", model() / "model.sig"};
  for (const std::string& word : by_key()) words.push_back(word);
  EXPECT_EQ(assay(words).exit_code, 0);
  write_file(model() / "other.bin", "not signed");
  words[1] = model() / "other.bin";
  const auto result = assay(words);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "is not among the files")) << result.out;
}

// Names in a hub cache are links to blobs outside their folder.
TEST_F(SignedModel, InAHubCache) {
  const fs::path repository = dir_ / "models--lab--model";
  const fs::path snapshot = repository / "snapshots" / std::string(40, '1');
  const auto add = [&](const fs::path& from, const std::string& name) {
    const std::string blob = std::to_string(std::hash<std::string>()(name));
    write_file(repository / "blobs" / blob, read_file(from));
    fs::create_directories((snapshot / name).parent_path());
    const fs::path up = name.find('/') == name.npos ? "../../blobs" : "../../../blobs";
    fs::create_symlink(up / blob, snapshot / name);
  };
  for (const char* name : {"config.json", "weights.bin", "sub/adapter.bin", "empty.txt"})
    add(model() / name, name);
  add(fixtures() / "p256.sig", "model.sig");
  for (const fs::path& path : {snapshot, repository}) {
    Words words = {"verify", path};
    for (const std::string& word : by_key()) words.push_back(word);
    const auto good = assay(words);
    EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
    EXPECT_TRUE(says(good, "OK: 4 files, 4.62 kB")) << "each read once\n" << good.out;
  }
  add(model() / "config.json", "a_new_file");
  Words words = {"verify", snapshot};
  for (const std::string& word : by_key()) words.push_back(word);
  const auto extended = assay(words);
  EXPECT_EQ(extended.exit_code, 1);
  EXPECT_TRUE(says(extended, "a_new_file: is here and was not signed")) << extended.out;
  EXPECT_FALSE(says(extended, "weights.bin: is here")) << extended.out;
  words.emplace_back("--ignore-unsigned");
  EXPECT_EQ(assay(words).exit_code, 0);
}

// Of several folders each has a signature of its own, by the same signer.
TEST_F(SignedModel, SeveralModels) {
  put("p256.sig");
  fs::copy(model(), dir_ / "other", fs::copy_options::recursive);
  EXPECT_EQ(verify(by_key(), {dir_ / "other"}).exit_code, 0);
  fs::copy_file(fixtures() / "p384.sig", dir_ / "other" / "model.sig", fs::copy_options::overwrite_existing);
  EXPECT_EQ(verify(by_key(), {dir_ / "other"}).exit_code, 1);
  EXPECT_EQ(verify(by_key(), {dir_ / "other", "--signature", model() / "model.sig"}).exit_code, 2);
}

// A signature costs no second reading of any file.
TEST_F(SignedModel, EachByteIsReadOnce) {
  std::uint64_t bytes = 0;
  for (const char* name : {"config.json", "weights.bin", "sub/adapter.bin", "empty.txt"})
    bytes += fs::file_size(model() / name);
  for (const char* bundle : {"p256.sig", "blake3.sig", "shards.sig"}) {
    put(bundle);
    const json report = json::parse(verify(by_key(), {"--json", "-"}).out);
    EXPECT_EQ(report["summary"]["bytes"], bytes) << bundle;
  }
}

TEST_F(SignedModel, RequestsThatSayNothingOrTooMuch) {
  put("p256.sig");
  EXPECT_EQ(verify({"--signature", model() / "model.sig"}).exit_code, 2);
  EXPECT_EQ(verify(by_key(), by_certificate()).exit_code, 2);
  EXPECT_EQ(verify({"--identity", kIdentity}).exit_code, 2);
  EXPECT_EQ(verify({"--ignore-unsigned"}).exit_code, 2);
  EXPECT_EQ(verify(by_key(), {"--manifest", model() / "model.sig"}).exit_code, 2);
  EXPECT_EQ(verify(by_key("ca.pem")).exit_code, 2) << "a certificate is no key";
}

TEST_F(SignedModel, APolicySaysWhoMaySignWhat) {
  const auto policy = [&](const std::string& path, const std::string& more = "") {
    const json document = {
        {"schema", "assay.signers/1"},
        {"signers",
         {{"lab", {{"public_key", "p256.pub"}}},
          {"house", {{"ca", {"ca.pem"}}}},
          {"cloud", {{"identity", kIdentity}, {"issuer", kIssuer}, {"trusted_root", "keyless_root.json"}}}}},
        {"models", {{{"path", path}, {"signers", {"house", "cloud"}}}}}};
    std::string text = document.dump();
    if (!more.empty()) text.insert(1, more);
    for (const char* name : {"p256.pub", "ca.pem", "keyless_root.json"})
      fs::copy_file(fixtures() / name, dir_ / name, fs::copy_options::overwrite_existing);
    write_file(dir_ / "policy.json", text);
    return Words{"--policy", dir_ / "policy.json"};
  };
  put("rekor1.sig");
  const auto good = verify(policy("mod*"));
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_TRUE(says(good, "signer 'cloud' of the policy"));
  put("certificate.sig");
  EXPECT_EQ(verify(policy("*")).exit_code, 0);
  put("p256.sig");
  EXPECT_EQ(verify(policy("*")).exit_code, 1) << "the lab may not sign this one";
  put("certificate.sig");
  const auto uncovered = verify(policy("other/*"));
  EXPECT_EQ(uncovered.exit_code, 1);
  EXPECT_TRUE(says(uncovered, "no rule of the policy")) << uncovered.out;
  EXPECT_EQ(verify(policy("*", "\"modles\": [],")).exit_code, 2) << "a misspelled rule";
}

// The trusted root is built in, and nobody is asked for a newer one.
TEST_F(SignedModel, NoNetwork) {
  ASSAY_PROGRAM_OR_SKIP("strace");
  put("rekor2.sig");
  // LeakSanitizer traces its own process, which one that is traced already may not.
  Words words = {"strace", "-E",           "ASAN_OPTIONS=detect_leaks=0",
                 "-f",     "-e",           "trace=network",
                 "-o",     dir_ / "calls", assay_binary(),
                 "verify", model()};
  for (const std::string& word : keyless()) words.push_back(word);
  const auto result = run(words);
  if (says(result, "Operation not permitted")) GTEST_SKIP() << "SKIPPED: no process may be traced here";
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::string calls = read_file(dir_ / "calls");
  for (const char* call : {"socket(", "connect(", "sendto(", "bind("})
    EXPECT_EQ(calls.find(call), std::string::npos) << calls;
}

}  // namespace
}  // namespace assay::test
