#include "verify/sign_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/tree_names.h"
#include "verify/expected/signature.h"
#include "verify/signature/statement.h"

namespace assay {
namespace {

// What huggingface_hub keeps of a download, no part of the model.
constexpr const char* kDownloads = ".cache/huggingface";

fs::path default_output(const fs::path& path) {
  if (is_folder(path)) return path / "model.sig";
  fs::path beside = path;
  return beside += ".sig";
}

// The path below the folder; nothing where it lies elsewhere.
std::string name_below(const fs::path& path, const fs::path& folder) {
  if (path.empty()) return {};
  std::error_code error;
  const fs::path parent = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  const std::string name = (parent / path.filename()).lexically_relative(folder).generic_string();
  return error || name.empty() || name.starts_with("..") ? std::string() : name;
}

// What is never signed, what the user leaves out, and what assay itself writes into the folder.
std::set<std::string> left_out(const fs::path& folder, const SigningOptions& signing,
                               std::initializer_list<fs::path> own) {
  std::set<std::string> names(std::begin(kNeverSigned), std::end(kNeverSigned));
  for (const std::string& given : signing.ignore_paths) names.insert(ignored_name(given, folder));
  std::error_code error;
  if (fs::exists(folder / kDownloads, error)) names.emplace(kDownloads);
  for (const fs::path& file : own) {
    if (const std::string name = name_below(file, folder); !name.empty()) names.insert(name);
  }
  return names;
}

bool is_left_out(const std::string& name, const std::set<std::string>& names) {
  for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    if (names.contains(name.substr(0, slash))) return true;
  }
  return names.contains(name);
}

// The signer says of every link whether it was followed: here all of them are, or none may be there.
void check_links(const fs::path& folder, const std::set<std::string>& names, bool follow) {
  std::error_code error;
  for (const TreeEntry& entry : list_names(folder, {})) {
    if (entry.kind != TreeEntry::Kind::link || is_left_out(entry.name, names)) continue;
    const bool to_folder = fs::is_directory(folder / entry.name, error);
    if (follow && !to_folder) continue;
    throw Error::refused(to_folder ? "is a link to a folder, which a signed list cannot hold"
                                   : "is a symbolic link")
        .in(folder / entry.name)
        .remedy(to_folder ? "put the files themselves there, or leave it out with --ignore-path"
                          : "sign what it leads to with --follow-links");
  }
}

// A file alone is called ".": the specification's own name for it, that of the file, is not found by model-signing 1.1,
// whereas every verifier has to know this one (its suite's v1.0.0-elliptic-key).
signature::SignedModel statement_of(const MadeManifest& made, const fs::path& path,
                                    const std::set<std::string>& names, bool follow_links) {
  signature::SignedModel model;
  model.name = path.filename().string().empty() ? "model" : path.filename().string();
  model.allow_symlinks = follow_links;
  model.ignore_paths.assign(names.begin(), names.end());
  for (const ManifestEntry& entry : made.manifest.entries) {
    if (!is_valid_utf8(entry.name))
      throw Error::refused("has a name that is not UTF-8, which a signed list cannot hold").in(entry.name);
    model.files.push_back({is_folder(path) ? entry.name : ".",
                           0,
                           {std::string(entry.digest.bytes.begin(), entry.digest.bytes.end())}});
  }
  return model;
}

}  // namespace

SignedManifest sign_model(const fs::path& given, ManifestOptions options, const SigningOptions& signing,
                          const signature::SigningKey& key) {
  const fs::path path = plain_path(given);
  SignedManifest out;
  out.output = signing.output.empty() ? default_output(path) : signing.output;
  const bool folder = is_folder(path);
  const fs::path root = folder ? path : path.parent_path();
  if (folder && !name_below(signing.private_key, root).empty())
    throw Error::refused("lies in the folder that is to be published")
        .in(signing.private_key)
        .remedy("move it out");
  std::set<std::string> names = left_out(root, signing, {out.output, options.state.value_or(fs::path())});
  if (folder) check_links(path, names, signing.follow_links);
  options.hash = true;
  options.everything = folder;
  options.left_out = [&](const std::string& name) { return is_left_out(name, names); };
  out.made = make_manifest(path, options);
  if (out.made.interrupted) return out;
  for (const Finding& finding : out.made.findings) {
    if (finding.severity == Severity::error)
      throw Error::refused(finding.message + ", and a signature is not to bless that")
          .in(finding.file)
          .remedy(finding.remedy);
  }
  if (out.made.manifest.entries.empty()) throw Error::input("there is nothing to sign").in(path);
  std::error_code ignored;
  for (const std::string& name : out.made.source.ignored) {
    if (fs::exists(path / name, ignored)) names.insert(name);
  }
  const std::string payload =
      signature::write_statement(statement_of(out.made, path, names, signing.follow_links));
  out.bundle = signature::sign_statement(payload, key);
  out.root_digest = signature::parse_statement(payload).root;
  out.ignored.assign(names.begin(), names.end());
  return out;
}

}  // namespace assay
