#include "verify/expected/manifest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/formats/checksum_manifest.h"
#include "core/formats/chunked_manifest.h"
#include "core/system/die_when_interrupted.h"
#include "core/system/error.h"
#include "core/system/memory_pages.h"
#include "core/system/text.h"
#include "verify/expected/assemble.h"
#include "verify/expected/gguf_hashes.h"
#include "verify/expected/hub_listing.h"
#include "verify/expected/manifest_names.h"
#include "verify/expected/sbom.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::size_t kPiece = 1u << 16;
constexpr std::uint64_t kMaxManifestBytes = 1ull << 30;

// What --manifest names, read: "-" is standard input.
struct Given {
  fs::path source;
  std::string text;
};

std::string read_standard_input() {
  const DieWhenInterrupted guard;  // nobody may ever write to it
  std::string text;
  std::string piece(kPiece, '\0');
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error::from_errno("read standard input", errno);
    if (n == 0) return text;
    text.append(piece, 0, static_cast<std::size_t>(n));
    if (text.size() > kMaxManifestBytes) throw Error::input("standard input is longer than any manifest");
  }
}

Given read_given(const fs::path& manifest) {
  if (manifest == "-") return {"standard input", read_standard_input()};
  return {manifest, read_small_file(manifest, kMaxManifestBytes)};
}

// JSON that is not our own chunked manifest is a hub listing; everything else is lines of text.
bool is_hub_listing(std::string_view document) {
  const std::string_view text = trim(document);
  return text.starts_with('[') || (text.starts_with('{') && !is_chunked_manifest(text));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// The one digest that has no name is of the one file that is meant.
void name_the_nameless(ChecksumManifest& manifest, const fs::path& source, const fs::path& path) {
  if (!manifest.nameless) return;
  if (is_folder(path)) {
    throw Error::input("gives a digest without a name").in(source).remedy("name the one file that it is of");
  }
  manifest.entries[0].name = path.filename().string();
}

// A backslash is a letter like any other of a file's name here: where there is such a file, and where the name
// would not lead out of the folder elsewhere either.
bool accept_listed(const std::string& name, const fs::path& root, Findings& findings) {
  std::string divided = name;
  std::replace(divided.begin(), divided.end(), '\\', '/');
  std::error_code ignored;
  if (divided != name && is_safe_relative_path(divided) && fs::exists(root / name, ignored)) return true;
  return accept_name(name, findings);
}

// `wanted`: the names of the files that are meant; none: all. `given` is read once: its text goes.
Expectation from_checksums(Given& given, const fs::path& root, const fs::path& path,
                           const std::vector<std::string>& wanted) {
  static_assert(kEntriesAlwaysKept >= kNamesTried, "fit_names() is to see what it would of the whole");
  PassingText passing(given.text.data(), given.text.size());
  ManifestReading reading{.passing = &passing};
  if (!wanted.empty()) {
    reading.wanted = [&](std::string_view name) {
      return std::find(wanted.begin(), wanted.end(), base_of(name)) != wanted.end();
    };
  }
  ChecksumManifest manifest = parse_checksum_manifest(given.text, given.source, reading);
  std::string().swap(given.text);
  name_the_nameless(manifest, given.source, path);
  fit_names(manifest, root);
  Expectation out;
  out.kind = manifest.chunk_bytes > 0 ? "chunked manifest" : "checksum manifest";
  out.origin = given.source.string();
  out.root = root;
  out.chunk_bytes = manifest.chunk_bytes;
  out.findings = std::move(manifest.findings);
  out.ignored = {".git", ".cache"};
  const bool beside = lies_in(given.source, root);
  if (beside) out.ignored.push_back(given.source.filename().string());
  const SharedTrust trust = Trust{TrustSource::manifest, given.source.filename().string(), beside};
  std::erase_if(manifest.entries,
                [&](const ManifestEntry& entry) { return !accept_listed(entry.name, root, out.findings); });
  out.files = drain<ExpectedFile>(manifest.entries, [&](ManifestEntry&& entry) {
    return ExpectedFile{.name = std::move(entry.name),
                        .digest = entry.digest,
                        .trust = trust,
                        .size = entry.size,
                        .chunks = std::move(entry.chunks)};
  });
  finish(out);
  return out;
}

// The manifest's line for one file: by its name, or by the only line whose last part is that name. `files`
// are sorted.
const ExpectedFile& line_of(const std::string& base, const std::vector<ExpectedFile>& files,
                            const fs::path& manifest) {
  const auto exact = std::lower_bound(files.begin(), files.end(), base,
                                      [](const ExpectedFile& file, const auto& b) { return file.name < b; });
  if (exact != files.end() && exact->name == base) return *exact;
  const auto ends_so = [end = "/" + base](const ExpectedFile& file) { return file.name.ends_with(end); };
  const auto first = std::find_if(files.begin(), files.end(), ends_so);
  if (first == files.end()) throw Error::input(fmt::format("does not list {}", base)).in(manifest);
  if (std::find_if(std::next(first), files.end(), ends_so) != files.end()) {
    throw Error::input(fmt::format("lists {} in several folders", base))
        .in(manifest)
        .remedy("verify the folder that the manifest was made in");
  }
  return *first;
}

void select_files(Expectation& out, const fs::path& manifest, const fs::path& folder,
                  const std::vector<std::string>& names) {
  std::vector<ExpectedFile> selected;
  for (const std::string& name : names) {
    selected.push_back(line_of(name, out.files, manifest));
    selected.back().name = name;
    selected.back().elsewhere = folder == out.root ? Box<fs::path>() : Box<fs::path>(folder / name);
  }
  for (const std::string& name : names) {  // what is said of a file goes with it
    const std::string& listed = line_of(name, out.files, manifest).name;
    if (listed == name || !out.claims.contains(listed)) continue;
    auto said = out.claims.extract(listed);
    said.key() = name;
    out.claims.insert(std::move(said));
  }
  out.files = std::move(selected);
  out.owns_root = false;
  out.complete = false;
  std::erase_if(out.findings, [&](const Finding& finding) {
    return std::find(names.begin(), names.end(), finding.file) == names.end();
  });
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

Expectation expect_from_manifest(const fs::path& manifest, const fs::path& path,
                                 const std::vector<std::string>& only) {
  const fs::path root = is_folder(path) ? path : folder_of(path);
  Given given = read_given(manifest);
  const std::vector<std::string> wanted =
      is_folder(path) ? only : std::vector<std::string>{path.filename().string()};
  Expectation out;
  if (is_sbom(given.text)) {
    out = expect_from_sbom(given.text, given.source, root);
  } else if (is_gguf_hash_manifest(given.text)) {
    out = expect_from_gguf_hashes(given.text, given.source, root);
  } else {
    out = is_hub_listing(given.text) ? expect_from_hub_listing(given.text, given.source, root)
                                     : from_checksums(given, root, path, wanted);
    require_digests(out, given.source);
  }
  if (!is_folder(path)) select_files(out, given.source, root, {path.filename().string()});
  if (!only.empty()) select_files(out, given.source, root, only);
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
                       .digest = digest,
                       .trust = Trust{TrustSource::command_line, "--sha256", false}});
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
  out.files.push_back({.name = path.filename().string()});
  return out;
}

}  // namespace assay
