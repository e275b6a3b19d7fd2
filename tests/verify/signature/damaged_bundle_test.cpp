// Each byte of what a bundle brings, changed by itself: refused, every time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/signature/encoding.h"
#include "verify/signature/trusted_root.h"
#include "verify/signature/verify_bundle.h"

namespace assay::signature {
namespace {

using test::cases;
using test::read_file;

struct Place {
  std::string name;
  std::string* bytes;
  bool long_one = false;  // and covered by one hash or signature as a whole
};

std::vector<Place> places_of(Bundle& bundle) {
  std::vector<Place> places = {{"payload", &bundle.envelope->payload, true},
                               {"payload type", &bundle.envelope->payload_type},
                               {"signature", &bundle.envelope->signatures.at(0)}};
  for (std::string& certificate : bundle.certificates) places.push_back({"certificate", &certificate, true});
  if (bundle.entries.empty()) return places;
  LogEntry& entry = bundle.entries.at(0);
  places.push_back({"log id", &entry.log_id});
  places.push_back({"body", &entry.body, true});
  if (!entry.promise.empty()) places.push_back({"promise", &entry.promise});
  for (std::string& hash : entry.proof->hashes) places.push_back({"proof", &hash});
  places.push_back({"root", &entry.proof->root});
  places.push_back({"checkpoint", &entry.proof->checkpoint});
  for (std::string& stamp : bundle.timestamps) places.push_back({"time stamp", &stamp});
  return places;
}

bool is_accepted(const Bundle& bundle, const Method& method) {
  try {
    verify_bundle(bundle, method);
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::refused) << error.message();
    return false;
  }
}

// Other lines than the log's own, in a checkpoint, are witnesses', of whom a trusted root knows nothing.
bool is_by_a_witness(const Bundle& bundle, const Place& place, std::size_t byte) {
  if (place.name != "checkpoint") return false;
  const std::string hint = encode_base64(bundle.entries[0].log_id.substr(0, 3));
  const std::string& text = *place.bytes;
  const auto begin = text.rfind('\n', byte == 0 ? 0 : byte - 1);
  const auto line = begin == text.npos ? text : text.substr(begin + 1, text.find('\n', byte) - begin);
  return byte > text.find("\n\n") + 1 && line.find(" " + hint) == line.npos;
}

// One of a byte's bits, another one at each byte; with ASSAY_CHANGES=255 each other value of each byte.
std::vector<char> changes_of(std::size_t byte) {
  const char* wanted = std::getenv("ASSAY_CHANGES");
  if (wanted == nullptr) return {static_cast<char>(1u << ((byte + byte / 8) % 8))};
  std::vector<char> changes;
  for (int value = 1; value <= std::atoi(wanted); ++value) changes.push_back(static_cast<char>(value));
  return changes;
}

// Of the long ones every `stride`-th byte.
void expect_all_refused(const Bundle& good, const Method& method, std::size_t stride = 1) {
  ASSERT_TRUE(is_accepted(good, method));
  Bundle first = good;
  const std::size_t count = places_of(first).size();
  for (std::size_t p = 0; p < count; ++p) {
    parallel_for(2, 8, [&](std::size_t part) {
      Bundle bundle = good;
      const Place place = places_of(bundle)[p];
      for (std::size_t i = part; i < place.bytes->size(); i += 8 * (place.long_one ? stride : 1)) {
        if (is_by_a_witness(good, places_of(first)[p], i)) continue;
        for (const char change : changes_of(i)) {
          (*place.bytes)[i] ^= change;
          EXPECT_FALSE(is_accepted(bundle, method))
              << place.name << ", byte " << i << ", bits " << int{change};
          (*place.bytes)[i] ^= change;
        }
      }
    });
  }
  if (good.entries.empty()) return;
  Bundle bundle = good;
  LogEntry& entry = bundle.entries[0];
  for (std::int64_t* number : {&entry.proof->index, &entry.proof->size}) {
    for (const std::int64_t step : {-1, 1}) {
      *number += step;
      EXPECT_FALSE(is_accepted(bundle, method));
      *number -= step;
    }
  }
}

TEST(DamagedBundle, OfOurOwnSigstore) {
  const fs::path folder = test::source_dir() / "data" / "fixtures" / "signatures";
  const TrustedRoot root = read_trusted_root(folder / "keyless_root.json");
  const Keyless method{{"signer@example.org", "https://accounts.example.org"}, &root};
  for (const char* name : {"rekor1.sig", "rekor2.sig"})
    expect_all_refused(parse_bundle(read_file(folder / name), name), method);
}

TEST(DamagedBundle, OfAKey) {
  const fs::path folder = test::source_dir() / "data" / "fixtures" / "signatures";
  for (const char* name : {"p256", "p384", "p521"}) {
    const fs::path key = folder / (std::string(name) + ".pub");
    expect_all_refused(parse_bundle(read_file(folder / (std::string(name) + ".sig")), name),
                       ByKey{PublicKey::from_pem(read_file(key), key), name},
                       name == std::string_view("p256") ? 1 : 7);
  }
}

// The chain's own root lies in the bundle, too, and is not needed for the way to the one that is trusted.
TEST(DamagedBundle, OfACertificateChain) {
  const fs::path folder = test::source_dir() / "data" / "fixtures" / "signatures";
  const Certificates anchors = certificates_from_pem(read_file(folder / "ca.pem"), "ca.pem");
  Bundle bundle = parse_bundle(read_file(folder / "certificate.sig"), "certificate.sig");
  for (const Certificate& anchor : anchors) bundle.certificates.push_back(der_of(anchor));
  ASSERT_GE(bundle.certificates.size(), 3u);
  expect_all_refused(bundle, ByCertificate{anchors});
}

TEST(DamagedBundle, OfAModelSignedKeylessly) {
  ASSAY_CASE_OR_SKIP(folder, "oms/model-transparency/v1.1.0-sigstore");
  const Bundle bundle = parse_bundle(read_file(folder / "model.sig"), "model.sig");
  expect_all_refused(
      bundle,
      Keyless{{"stefanb@us.ibm.com", "https://sigstore.verify.ibm.com/oauth2"}, &embedded_trusted_root()}, 7);
}

TEST(DamagedBundle, OfTheSecondRekor) {
  ASSAY_CASE_OR_SKIP(folder, "oms/sigstore-conformance/rekor2-dsse-happy-path");
  const TrustedRoot root = read_trusted_root(folder / "trusted_root.json");
  const Bundle bundle = parse_bundle(read_file(folder / "bundle.sigstore.json"), "bundle");
  expect_all_refused(
      bundle,
      Keyless{{"https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/"
               "workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main",
               "https://token.actions.githubusercontent.com"},
              &root},
      7);
}

}  // namespace
}  // namespace assay::signature
