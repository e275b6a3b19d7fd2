#include "verify/signature/trusted_root.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/file.h"
#include "verify/signature/encoding.h"
#include "verify/signature/json_fields.h"

namespace assay::signature {

// Written by the build out of verify/signature/sigstore_public_good.json.
extern const std::string_view kEmbeddedRoot;

namespace {

constexpr std::uint64_t kMostRootBytes = 16ull << 20;
constexpr std::string_view kEmbeddedDate = "2025-09-22";

Window window_in(const ParsedJson& object) {
  const ParsedJson& json = object_in(object, "validFor");
  Window window;
  window.begin_ms = parse_time_ms(text_in(json, "start"));
  if (field(json, "end") != nullptr) window.end_ms = parse_time_ms(text_in(json, "end"));
  return window;
}

std::string host_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != url.npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find('/')));
}

// A log whose key is of a kind that is not known here is as good as absent: what it has signed is refused.
void add_logs(const ParsedJson& root, std::string_view name, std::vector<Log>& logs) {
  if (field(root, name) == nullptr) return;
  for (const ParsedJson& json : array_in(root, name)) {
    const ParsedJson& described = object_in(json, "publicKey");
    const Window window = window_in(described);
    auto key = PublicKey::from_der(bytes_in(described, "rawBytes"));
    if (!key) continue;
    const std::string id = bytes_in(object_in(json, "logId"), "keyId");
    const ParsedJson* checkpoint = field(json, "checkpointKeyId");
    logs.push_back({host_of(text_in(json, "baseUrl")), id, std::move(*key), window,
                    checkpoint != nullptr ? bytes_in(*checkpoint, "keyId") : id});
  }
}

void add_authorities(const ParsedJson& root, std::string_view name, std::vector<Authority>& authorities) {
  if (field(root, name) == nullptr) return;
  for (const ParsedJson& json : array_in(root, name)) {
    Authority authority{{}, window_in(json)};
    for (const ParsedJson& one : array_in(object_in(json, "certChain"), "certificates")) {
      authority.chain.push_back(certificate_from_der(bytes_in(one, "rawBytes")));
      if (authority.chain.back() == nullptr)
        throw Error::input(fmt::format("{} holds a certificate that cannot be read", name));
    }
    if (authority.chain.empty()) throw Error::input(fmt::format("{} holds a chain of no certificate", name));
    authorities.push_back(std::move(authority));
  }
}

}  // namespace

TrustedRoot parse_trusted_root(std::string_view text, const std::filesystem::path& source) {
  const ParsedJson json = parse_json(text, source, {.max_bytes = kMostRootBytes, .max_depth = 32});
  try {
    const ParsedJson& root = field(json, "trustedRoot") != nullptr ? object_in(json, "trustedRoot") : json;
    const std::string& type = text_in(root, "mediaType");
    if (!type.starts_with("application/vnd.dev.sigstore.trustedroot"))
      throw Error::input(fmt::format("is of media type '{}', no trusted root of Sigstore", type));
    TrustedRoot out;
    out.origin = source.string();
    out.digest = hex(sha256(text));
    add_logs(root, "tlogs", out.logs);
    add_logs(root, "ctlogs", out.certificate_logs);
    add_authorities(root, "certificateAuthorities", out.certificate_authorities);
    add_authorities(root, "timestampAuthorities", out.timestamp_authorities);
    return out;
  } catch (Error& error) {
    throw error.in(source);
  }
}

TrustedRoot read_trusted_root(const std::filesystem::path& file) {
  return parse_trusted_root(read_small_file(file, kMostRootBytes), file);
}

const TrustedRoot& embedded_trusted_root() {
  static const TrustedRoot root = [] {
    TrustedRoot read = parse_trusted_root(kEmbeddedRoot, "the built-in trusted root");
    read.origin = fmt::format("built in, of Sigstore's public-good instance, {}", kEmbeddedDate);
    return read;
  }();
  return root;
}

std::string_view embedded_trusted_root_date() {
  return kEmbeddedDate;
}

}  // namespace assay::signature
