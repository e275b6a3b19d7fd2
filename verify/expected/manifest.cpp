#include "verify/expected/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/checksum_manifest.h"
#include "core/formats/chunked_manifest.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_listing.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::size_t kSniffBytes = 4096;

// JSON that is not our own chunked manifest is a hub listing; everything else is lines of text.
bool is_hub_listing(const fs::path& path) {
  const File file = File::open(path);
  std::string head(kSniffBytes, '\0');
  head.resize(file.read_at(0, std::as_writable_bytes(std::span(head.data(), head.size()))));
  const std::string_view text = trim(head);
  return text.starts_with('[') || (text.starts_with('{') && text.find(kManifestSchema) == text.npos);
}

// `sha256sum ./*` and `find . -exec sha256sum` write "./name".
std::string_view without_leading_dot(std::string_view name) {
  while (name.starts_with("./")) {
    name.remove_prefix(2);
    while (name.starts_with('/')) name.remove_prefix(1);
  }
  return name;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

Expectation from_checksums(const fs::path& path, const fs::path& root) {
  ChecksumManifest manifest = read_checksum_manifest(path);
  Expectation out;
  out.kind = manifest.chunk_bytes > 0 ? "chunked manifest" : "checksum manifest";
  out.origin = path.string();
  out.root = root;
  out.chunk_bytes = manifest.chunk_bytes;
  out.findings = std::move(manifest.findings);
  out.ignored = {".git", ".cache"};
  std::error_code ignored;
  const bool beside = fs::equivalent(folder_of(path), root, ignored);
  if (beside) out.ignored.push_back(path.filename().string());
  const Trust trust{TrustSource::manifest, path.filename().string(), beside};
  for (ManifestEntry& entry : manifest.entries) {
    const std::string name(without_leading_dot(entry.name));
    if (!accept_name(name, out.findings)) continue;
    out.files.push_back({.name = name,
                         .path = root / name,
                         .digest = entry.digest,
                         .size = entry.size,
                         .trust = trust,
                         .chunks = std::move(entry.chunks)});
  }
  finish(out);
  return out;
}

// The manifest's line for one file: by its name, or by the only line whose last part is that name.
void select_file(Expectation& out, const fs::path& manifest, const fs::path& path) {
  const std::string base = path.filename().string();
  std::vector<ExpectedFile> matches;
  for (const ExpectedFile& file : out.files) {
    if (file.name == base)
      matches.insert(matches.begin(), file);
    else if (file.name.ends_with("/" + base))
      matches.push_back(file);
  }
  if (matches.empty()) throw Error::input(fmt::format("does not list {}", base)).in(manifest);
  if (matches.size() > 1 && matches[0].name != base) {
    throw Error::input(fmt::format("lists {} in several folders", base))
        .in(manifest)
        .remedy("verify the folder that the manifest was made in");
  }
  matches[0].name = base;
  matches[0].path = path;
  out.files = {matches[0]};
  out.owns_root = false;
  std::erase_if(out.findings, [&](const Finding& finding) { return finding.file != base; });
  out.complete = false;
}

// A source that names no file, no digest, or weights without saying what they should be, would let everything
// pass.
void require_digests(const Expectation& e, const fs::path& manifest) {
  if (e.files.empty() && !has_errors(e.findings)) {
    throw Error::input("lists no file").in(manifest).remedy("save it again, whole");
  }
  const bool any = std::any_of(e.files.begin(), e.files.end(),
                               [](const ExpectedFile& file) { return file.digest.has_value(); });
  for (const ExpectedFile& file : e.files) {
    const bool said = std::any_of(e.findings.begin(), e.findings.end(),
                                  [&](const Finding& finding) { return finding.file == file.name; });
    if (file.digest || said || (any && !may_hold_weights(file.name))) continue;
    throw Error::input(fmt::format("names {} without a digest", file.name))
        .in(manifest)
        .remedy(
            "save a listing that has them: /api/models/ID/tree/REV?recursive=true, or "
            "/api/models/ID?blobs=true");
  }
}

}  // namespace

Expectation expect_from_manifest(const fs::path& manifest, const fs::path& path) {
  const fs::path root = is_folder(path) ? path : folder_of(path);
  Expectation out =
      is_hub_listing(manifest) ? expect_from_hub_listing(manifest, root) : from_checksums(manifest, root);
  require_digests(out, manifest);
  if (!is_folder(path)) select_file(out, manifest, path);
  return out;
}

Expectation expect_from_sha256(std::string_view hex, const fs::path& file) {
  if (is_folder(file)) {
    throw Error::usage("--sha256 is for one file, and this is a folder").in(file).remedy("use --manifest");
  }
  const std::string_view prefix = "sha256:";  // as registries and pointer files write it
  const std::string_view digits = hex.starts_with(prefix) ? hex.substr(prefix.size()) : hex;
  const auto digest = Digest::parse(DigestKind::sha256, digits);
  if (!digest) throw Error::usage(fmt::format("--sha256 takes 64 hexadecimal digits, not '{}'", hex));
  Expectation out;
  out.kind = "file with a given digest";
  out.origin = "--sha256";
  out.root = folder_of(file);
  out.owns_root = false;
  out.files.push_back({.name = file.filename().string(),
                       .path = file,
                       .digest = digest,
                       .trust = {TrustSource::command_line, "--sha256", false}});
  return out;
}

Expectation expect_nothing(const fs::path& path) {
  Expectation out;
  out.ignored = {".git", ".cache"};
  if (is_folder(path)) {
    out.kind = "plain folder";
    out.root = path;
    add_unlisted_files(out);
    finish(out);
    return out;
  }
  out.kind = "single file";
  out.origin = path.string();
  out.root = folder_of(path);
  out.owns_root = false;
  out.files.push_back({.name = path.filename().string(), .path = path});
  return out;
}

}  // namespace assay
