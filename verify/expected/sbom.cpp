#include "verify/expected/sbom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/formats/checksum_manifest.h"
#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/claims/claim_digest.h"
#include "verify/expected/assemble.h"
#include "verify/expected/manifest_names.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

// From the strongest that a file can be vouched for by, in the order they are taken.
constexpr std::pair<std::string_view, DigestKind> kStrong[] = {{"sha256", DigestKind::sha256},
                                                               {"sha512", DigestKind::sha512},
                                                               {"sha384", DigestKind::sha384},
                                                               {"blake2b512", DigestKind::blake2b},
                                                               {"blake3", DigestKind::blake3}};

// Digests longer than 32 bytes are kept as their SHA-256.
std::optional<Digest> strong_digest(DigestKind kind, std::string_view hex) {
  if (kind == DigestKind::sha256 || kind == DigestKind::blake3) return Digest::parse(kind, hex);
  std::array<std::uint8_t, 64> bytes{};
  const auto digest = std::span(bytes).first(kind == DigestKind::sha384 ? 48 : 64);
  if (!from_hex(hex, digest)) return std::nullopt;
  return Digest{kind, digest_of(DigestKind::sha256, std::as_bytes(digest)).bytes};
}

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class SbomReader {
 public:
  SbomReader(const fs::path& source, Expectation& out)
      : source_(source), beside_(lies_in(source, out.root)), out_(out) {
    trust_ = Trust{TrustSource::manifest, source.filename().string(), beside_};
    if (beside_) out.ignored.push_back(source.filename().string());
  }

  void take(const SbomFile& file, const std::string& name) {
    if (!accept_name(name, out_.findings)) return;
    ExpectedFile expected{.name = name, .trust = trust_};
    for (const auto& [algorithm, kind] : kStrong) {
      const auto hash = std::find_if(file.hashes.begin(), file.hashes.end(),
                                     [&, a = algorithm](const auto& one) { return one.first == a; });
      if (hash == file.hashes.end()) continue;
      expected.digest = strong_digest(kind, hash->second);
      if (!expected.digest) malformed(name, *hash);
      break;
    }
    if (!expected.digest) take_claims(file, name);
    out_.files.push_back(std::move(expected));
  }

 private:
  void take_claims(const SbomFile& file, const std::string& name) {
    FileClaims claims;
    std::string unknown;
    for (const auto& hash : file.hashes) {
      const auto& [algorithm, written] = hash;
      const std::string digits = lower_case(written);
      const std::size_t length = claim_digits(algorithm);
      if (length == 0)
        unknown = algorithm;
      else if (digits.size() != length || !is_hexadecimal(digits))
        malformed(name, hash);
      else
        claims.push_back({.algorithm = algorithm, .digest = digits, .said_by = source_.filename().string()});
    }
    if (!unknown.empty() && claims.empty())
      out_.findings.push_back(
          {.severity = Severity::warning,
           .code = "sbom.algorithm",
           .message = fmt::format("has a hash by {} alone, which is not computed here", unknown),
           .file = name});
    if (!claims.empty()) out_.claims[name] = std::move(claims);
  }
  void malformed(const std::string& name, const std::pair<std::string, std::string>& hash) {
    out_.findings.push_back(
        {.code = "sbom.bad_digest",
         .message = fmt::format("has no {} in {}: '{}' is none", hash.first, source_.string(), hash.second),
         .file = name});
  }

  const fs::path& source_;
  const bool beside_;
  Expectation& out_;
  SharedTrust trust_;
};

// What all entries of one name say together: a file may be listed for its SHA-256 and once more for its MD5.
std::map<std::string, SbomFile> by_name(const Sbom& sbom, const ChecksumManifest& names, Findings& findings) {
  std::map<std::string, SbomFile> files;
  for (const ManifestEntry& entry : names.entries) {
    const SbomFile& said = sbom.files[*entry.size];
    SbomFile& file = files[entry.name];
    file.surely |= said.surely;
    for (const auto& hash : said.hashes) {
      const auto same = std::find_if(file.hashes.begin(), file.hashes.end(),
                                     [&](const auto& one) { return one.first == hash.first; });
      if (same == file.hashes.end())
        file.hashes.push_back(hash);
      else if (lower_case(same->second) != lower_case(hash.second))
        findings.push_back({.code = "expected.contradiction",
                            .message = fmt::format(
                                "is listed with two different hashes by {}; the first is used", hash.first),
                            .file = entry.name});
    }
  }
  return files;
}

bool is_here(const fs::path& root, std::string_view name) {
  std::error_code error;
  return is_safe_relative_path(name) && fs::is_regular_file(root / name, error);
}

}  // namespace

Expectation expect_from_sbom(std::string_view text, const fs::path& source, const fs::path& root) {
  const Sbom sbom = parse_sbom(text, source);
  Expectation out;
  out.kind = sbom.kind + " bill of materials";
  out.origin = source.string();
  out.root = root;
  out.ignored = {".git", ".cache"};
  // Names are fitted to the folder as those of checksum files are; each carries its place in place of a size.
  ChecksumManifest names;
  for (std::size_t i = 0; i < sbom.files.size(); ++i) {
    ManifestEntry entry;
    entry.name = sbom.files[i].name;
    entry.size = i;
    names.entries.push_back(std::move(entry));
  }
  fit_names(names, root);
  out.findings = std::move(names.findings);
  SbomReader reader(source, out);
  std::size_t others = 0;
  for (const auto& [name, file] : by_name(sbom, names, out.findings)) {
    if (file.surely || may_hold_weights(name) || is_here(root, name))
      reader.take(file, name);
    else
      ++others;
  }
  if (others > 0)
    out.findings.push_back({.severity = Severity::note,
                            .code = "sbom.other_components",
                            .message = fmt::format("{} components with hashes are no files here", others)});
  if (out.files.empty() && !has_errors(out.findings))
    throw Error::input("lists no file with a hash")
        .in(source)
        .remedy("make it with the files of the model in it");
  finish(out);
  return out;
}

}  // namespace assay
