// OpenSSF Model Signing: the conformance suite's verify cases, the specification's vectors, and the folders that
// model-transparency's releases have signed, as a user meets them: through `assay verify`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "tests/support/support.h"
#include "verify/signature/bundle.h"
#include "verify/signature/statement.h"

namespace assay::signature {
namespace {

using test::assay;
using test::read_file;
using test::TempDir;
using test::write_file;

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// A case of the suite: its model copied, and changed as it says.
class ConformanceCase {
 public:
  ConformanceCase(const fs::path& folder, const fs::path& assets)
      : folder_(folder), assets_(assets), config_(read_json(folder / "config.json")) {
    const std::string model = config_.at("model");
    const bool own = config_.value("model_relative_to", "") == "test_dir";
    const fs::path from = (own ? folder : assets) / model;
    path_ = copy_.path() / fs::path(model).filename();
    fs::copy(from, path_, fs::copy_options::recursive);
    change();
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> out = {"verify", path_, "--signature", folder_ / "bundle.sig"};
    const ParsedJson& how = config_.at("verify");
    // One case names a key that the suite's copy lacks; any other will do for it.
    const auto asset = [&](const std::string& name) {
      return (assets_ / (fs::exists(assets_ / name) ? name : "keys/certificate/signing-key-pub.pem"))
          .string();
    };
    const auto method = config_.at("method").get<std::string>();
    if (method == "key") out.insert(out.end(), {"--public-key", asset(how.at("public_key"))});
    if (method == "certificate") {
      for (const auto& file : how.at("cert_chain")) out.insert(out.end(), {"--ca", asset(file)});
    }
    if (method == "sigstore")
      out.insert(out.end(), {"--identity", how.at("identity"), "--issuer", how.at("identity_provider")});
    for (const auto& path : how.value("ignore_paths", ParsedJson::array()))
      out.insert(out.end(), {"--ignore-path", path});
    if (how.value("ignore_unsigned_files", false)) out.emplace_back("--ignore-unsigned");
    return out;
  }
  bool fails() const { return config_.value("expect", "") == "fail"; }

 private:
  void change() {
    const ParsedJson changes = config_.value("model_modifications", ParsedJson::object());
    for (const auto& name : changes.value("delete", ParsedJson::array()))
      fs::remove_all(path_ / name.get<std::string>());
    for (const char* kind : {"tamper", "inject"}) {
      const ParsedJson files = changes.value(kind, ParsedJson::object());
      for (const auto& [name, text] : files.items()) write_file(path_ / name, text.get<std::string>());
    }
  }

  TempDir copy_;
  fs::path folder_, assets_, path_;
  ParsedJson config_;
};

TEST(OmsConformance, EachCaseHasItsVerdict) {
  ASSAY_CASE_OR_SKIP(suite, "oms/conformance/test");
  std::size_t count = 0;
  for (const char* kind : {"historical", "negative", "positive"}) {
    for (const fs::path& folder : folders_in(suite / "test-cases" / "verify" / kind)) {
      const ConformanceCase one(folder, suite / "assets");
      const auto result = assay(one.arguments());
      EXPECT_TRUE(one.fails() ? result.exit_code == 1 || result.exit_code == 2 : result.exit_code == 0)
          << folder.filename() << ": " << result.exit_code << "\n"
          << result.out << result.err;
      ++count;
    }
  }
  EXPECT_EQ(count, 43u);
}

// A refusal has to be for the reason that the case is about, not by chance.
TEST(OmsConformance, RefusalsNameTheReason) {
  ASSAY_CASE_OR_SKIP(suite, "oms/conformance/test");
  const std::pair<const char*, const char*> reasons[] = {
      {"certificate-expired_fail", "not yet valid"},
      {"certificate-simple-wrong-ca_fail", "does not lead to one that is trusted"},
      {"key-simple-extra-file_fail", "was not signed"},
      {"key-simple-missing-file_fail", "MISSING"},
      {"key-simple-no-signature_fail", "no signature"},
      {"key-simple-tampered-content_fail", "signme-1: FAILED"},
      {"key-simple-wrong-key_fail", "not by that key"},
      {"key-simple-wrong-mediatype_fail", "media type"},
      {"key-verify-as-certificate_fail", "by way of a key"},
      {"malformed-wrong-payload-type_fail", "changed"},
      {"sigstore-tampered-content_fail", "signme-1: FAILED"},
      {"sigstore-verify-as-key_fail", "by way of keyless"},
      {"sigstore-wrong-identity_fail", "it is signed by"}};
  for (const auto& [name, reason] : reasons) {
    const ConformanceCase one(suite / "test-cases" / "verify" / "negative" / name, suite / "assets");
    const auto result = assay(one.arguments());
    EXPECT_NE((result.out + result.err).find(reason), std::string::npos) << name << "\n"
                                                                         << result.out << result.err;
  }
}

TEST(OmsSpecification, ItsVectorsAreReadOrRefused) {
  ASSAY_CASE_OR_SKIP(folder, "oms/spec/test-vectors/v1.0");
  std::size_t count = 0;
  for (const char* kind : {"valid", "invalid", "invalid-payload"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / kind)) {
      ++count;
      bool good = true;
      try {
        const Bundle bundle = parse_bundle(read_file(entry.path()), entry.path());
        parse_statement(bundle.envelope.value().payload);
      } catch (const Error& error) {
        good = false;
      }
      EXPECT_EQ(good, kind == std::string("valid")) << entry.path();
    }
  }
  EXPECT_EQ(count, 8u);
}

TEST(ModelTransparency, EachReleasesFolderVerifies) {
  ASSAY_CASE_OR_SKIP(releases, "oms/model-transparency");
  const fs::path keys = test::cases() / "oms/conformance/test/assets/keys/certificate";
  std::size_t count = 0;
  for (const fs::path& folder : folders_in(releases)) {
    const std::string name = folder.filename().string();
    // The first ones signed the file, not the folder that it lies in.
    const bool one_file = name == "v0.3.1-elliptic-key" || name == "v1.0.0-elliptic-key";
    std::vector<std::string> arguments = {"verify", one_file ? folder / "signme-1" : folder, "--signature",
                                          folder / "model.sig"};
    const auto add = [&](std::initializer_list<std::string> more) {
      arguments.insert(arguments.end(), more);
    };
    if (name.ends_with("certificate")) add({"--ca", keys / "ca-cert.pem"});
    if (name.ends_with("key")) add({"--public-key", keys / "signing-key-pub.pem"});
    if (name.ends_with("sigstore"))
      add({"--identity", "stefanb@us.ibm.com", "--issuer", "https://sigstore.verify.ibm.com/oauth2"});
    if (name.starts_with("v1.0.1")) add({"--ignore-path", "ignore-me"});
    const auto result = assay(arguments);
    EXPECT_EQ(result.exit_code, 0) << name << "\n" << result.out << result.err;
    ++count;
  }
  EXPECT_EQ(count, 13u);
}

TEST(ModelTransparency, TheIssuerHasToBeTheOneNamed) {
  ASSAY_CASE_OR_SKIP(folder, "oms/model-transparency/v1.1.0-sigstore");
  const auto result =
      assay({"verify", folder, "--identity", "stefanb@us.ibm.com", "--issuer", "https://example.org"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(
      result.out.find("attested by 'https://sigstore.verify.ibm.com/oauth2', not by 'https://example.org'"),
      std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace assay::signature
