#include "verify/self_declared.h"

#include <fmt/format.h>

#include "core/formats/digest.h"

namespace assay {

FileClaims self_declared(const safetensors::Header& header, const std::string& file, Findings& findings) {
  for (const char* key : {"modelspec.hash_sha256", "sshs_model_hash"}) {
    for (const auto& [name, value] : header.metadata) {
      if (name != key) continue;
      const bool prefixed = value.starts_with("0x") || value.starts_with("0X");
      const auto digest = Digest::parse(DigestKind::sha256, std::string_view(value).substr(prefixed ? 2 : 0));
      if (digest)
        return {{.of = FileClaim::Of::buffer,
                 .algorithm = "sha256",
                 .digest = digest->hex(),
                 .said_by = fmt::format("the {} in its own header", key)}};
      findings.push_back(
          {.severity = Severity::warning,
           .code = "modelspec.bad_hash",
           .message = fmt::format("{} in its header is no SHA-256: '{}'", key, value.substr(0, 80)),
           .file = file});
    }
  }
  return {};
}

}  // namespace assay
