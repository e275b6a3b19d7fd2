// A Sigstore bundle, and all that is read in it before anybody is believed: statement, certificates, log entries, notes,
// time stamps.
// link: assay_verify
#include "tests/fuzz/refusal.h"
#include "verify/signature/certificate_log.h"
#include "verify/signature/chain.h"
#include "verify/signature/checkpoint.h"
#include "verify/signature/encoding.h"
#include "verify/signature/log_entry.h"
#include "verify/signature/statement.h"
#include "verify/signature/timestamp.h"
#include "verify/signature/verify_bundle.h"

using namespace assay;
using namespace assay::signature;

namespace {

void look_into(const Bundle& bundle) {
  const TrustedRoot& root = embedded_trusted_root();
  for (const std::string& der : bundle.certificates) {
    const Certificate certificate = certificate_from_der(der);
    if (certificate == nullptr) continue;
    fuzz::believed([&] { return identity_of(certificate).subject; });
    fuzz::believed([&] { return check_certificate_log(certificate, certificate, root), 0; });
  }
  for (const std::string& stamp : bundle.timestamps)
    fuzz::believed([&] { return check_timestamp(stamp, "message", root); });
  for (const LogEntry& entry : bundle.entries) {
    fuzz::believed([&] { return check_in_log(entry, bundle.version, root), 0; });
    if (bundle.envelope && !bundle.certificates.empty()) {
      Certificate certificate = certificate_from_der(bundle.certificates[0]);
      if (certificate == nullptr) continue;
      fuzz::believed([&] { return check_body(entry, {&*bundle.envelope, {}, "", certificate}), 0; });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto bundle = fuzz::believed([&] { return parse_bundle(text, "bundle"); });
  if (!bundle) return 0;
  look_into(*bundle);
  if (bundle->envelope) {
    const auto model = fuzz::believed([&] { return parse_statement(bundle->envelope->payload); });
    if (model) fuzz::require(!model->files.empty(), "a signed model has files");
  }
  const Keyless anybody{{"somebody", "somewhere"}, &embedded_trusted_root()};
  fuzz::require(!fuzz::believed([&] { return verify_bundle(*bundle, anybody, "message"); }),
                "nobody was believed who was not named");
  return 0;
}
