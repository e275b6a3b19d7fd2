// Sigstore's own conformance vectors (sigstore/sigstore-conformance): a folder whose name ends in _fail has to be
// refused, every other one accepted.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "tests/support/support.h"
#include "verify/signature/trusted_root.h"
#include "verify/signature/verify_bundle.h"

namespace assay::signature {
namespace {

using test::cases;
using test::read_file;

constexpr std::string_view kIdentity =
    "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
    "extremely-dangerous-oidc-beacon.yml@refs/heads/main";
constexpr std::string_view kIssuer = "https://token.actions.githubusercontent.com";

std::string text_or(const fs::path& file, std::string_view otherwise) {
  return fs::exists(file) ? read_file(file) : std::string(otherwise);
}

// nullopt where it is accepted.
std::optional<std::string> refusal_of(const fs::path& folder) {
  try {
    const Bundle bundle = parse_bundle(read_file(folder / "bundle.sigstore.json"), "bundle");
    const std::string artifact = fs::exists(folder / "artifact") ? read_file(folder / "artifact")
                                                                 : read_file(folder.parent_path() / "a.txt");
    if (fs::exists(folder / "key.pub")) {
      verify_bundle(bundle, ByKey{PublicKey::from_pem(read_file(folder / "key.pub"), "key.pub"), "key.pub"},
                    artifact);
      return std::nullopt;
    }
    const bool own = fs::exists(folder / "trusted_root.json");
    const TrustedRoot root = own ? read_trusted_root(folder / "trusted_root.json") : embedded_trusted_root();
    verify_bundle(
        bundle,
        Keyless{{text_or(folder / "identity", kIdentity), text_or(folder / "issuer", kIssuer)}, &root},
        artifact);
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(SigstoreVectors, EachHasItsPrescribedVerdict) {
  ASSAY_CASE_OR_SKIP(folder, "oms/sigstore-conformance");
  std::vector<fs::path> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), 70u);
  for (const fs::path& one : all) {
    const std::string name = one.filename().string();
    const auto refusal = refusal_of(one);
    EXPECT_EQ(refusal.has_value(), name.ends_with("_fail")) << name << ": " << refusal.value_or("accepted");
  }
}

// One vector's time stamp is written with line breaks, which base64 in JSON has not: without them it is refused for its
// time.
TEST(SigstoreVectors, ATimeOutsideTheCertificatesIsRefused) {
  ASSAY_CASE_OR_SKIP(folder, "oms/sigstore-conformance/rekor2-timestamp-with-incorrect-time_fail");
  std::string text = read_file(folder / "bundle.sigstore.json");
  const auto begin = text.find("signedTimestamp");
  const auto end = text.find('}', begin);
  std::string stamp = text.substr(begin, end - begin);
  for (auto at = stamp.find("\\n"); at != stamp.npos; at = stamp.find("\\n")) stamp.erase(at, 2);
  text.replace(begin, end - begin, stamp);
  const TrustedRoot root = read_trusted_root(folder / "trusted_root.json");
  const Bundle bundle = parse_bundle(text, "bundle");
  try {
    verify_bundle(bundle, Keyless{{std::string(kIdentity), std::string(kIssuer)}, &root},
                  read_file(folder.parent_path() / "a.txt"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("expired"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace assay::signature
