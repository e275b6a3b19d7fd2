#include "verify/expected/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/tree_names.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_cache.h"
#include "verify/expected/manifest.h"
#include "verify/expected/signature_methods.h"
#include "verify/signature/encoding.h"
#include "verify/signature/statement.h"
#include "verify/signature/verify_bundle.h"

namespace assay {
namespace {

using signature::Bundle;
using signature::FileHash;
using signature::NamedMethod;
using signature::SignedFile;
using signature::SignedModel;
using signature::Signer;

constexpr std::uint64_t kMaxBundleBytes = 512ull << 20;

// One, or in claims.jsonl one a line.
std::vector<Bundle> read_bundles(const fs::path& file) {
  const std::string text = read_small_file(file, kMaxBundleBytes);
  if (file.extension() != ".jsonl") return {signature::parse_bundle(text, file)};
  std::vector<Bundle> bundles;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") != line.npos) bundles.push_back(signature::parse_bundle(line, file));
  }
  if (bundles.empty()) throw Error::input("holds no signature").in(file);
  return bundles;
}

struct Verified {
  Signer signer;
  SignedModel model;
};

Verified verify_one(const Bundle& bundle, const NamedMethod& method) {
  Verified out;
  out.signer = signature::verify_bundle(bundle, method.method);
  if (bundle.envelope->payload_type != signature::kStatementType)
    throw Error::refused(
        fmt::format("its payload is of type '{}', no statement", bundle.envelope->payload_type));
  out.model = signature::parse_statement(bundle.envelope->payload);
  if (!method.name.empty()) out.signer.words += fmt::format(" (signer '{}' of the policy)", method.name);
  return out;
}

// The first that is good, by the first way in which it is; otherwise a finding for each that is not.
std::optional<Verified> verify_any(const std::vector<Bundle>& bundles, const SignatureMethods& methods,
                                   const std::string& file, Findings& findings) {
  Findings refused;
  for (const Bundle& bundle : bundles) {
    for (const NamedMethod& method : methods.all) {
      try {
        return verify_one(bundle, method);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        const std::string whose = method.name.empty() ? "" : fmt::format(" for signer '{}'", method.name);
        refused.push_back({.code = "signature.refused",
                           .message = fmt::format("the signature is not good{}: {}", whose, error.message()),
                           .file = file,
                           .remedy = error.remedy()});
      }
    }
  }
  std::move(refused.begin(), refused.end(), std::back_inserter(findings));
  return std::nullopt;
}

DigestKind kind_of(FileHash hash) {
  return hash == FileHash::sha256    ? DigestKind::sha256
         : hash == FileHash::blake2b ? DigestKind::blake2b
                                     : DigestKind::blake3;
}

Digest digest_from(const std::string& bytes, DigestKind kind) {
  if (kind == DigestKind::blake2b) {
    Digest shortened = digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes)));
    shortened.kind = kind;
    return shortened;
  }
  Digest digest{kind, {}};
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

ExpectedFile in_shards(const SignedFile& file, DigestKind kind) {
  std::vector<Digest> shards;
  for (const std::string& bytes : file.digests) shards.push_back(digest_from(bytes, kind));
  if (file.size == 0 && shards.at(0) == digest_of(kind, {})) shards.clear();  // nothing is no shard
  StreamDigest all(DigestKind::sha256, 0);
  for (const Digest& shard : shards) all.update(std::as_bytes(std::span(shard.bytes)));
  return {.name = {},
          .digest = Digest{DigestKind::shards, all.finish().bytes},
          .size = file.size,
          .chunks = std::move(shards)};
}

// "." is the one file of a model that is a file.
std::string name_in_folder(const SignedFile& file, const SignedModel& model) {
  return file.name == "." && model.files.size() == 1 ? model.name : file.name;
}

std::string relative_to(const fs::path& file, const fs::path& root) {
  std::error_code error;
  const fs::path folder = fs::canonical(file.has_parent_path() ? file.parent_path() : ".", error);
  const std::string name = (folder / file.filename()).lexically_relative(root).generic_string();
  return name.empty() || name.starts_with("../") ? std::string() : name;
}

// Paths that the signer, the user and the format leave out. What of them is here is told: nobody vouches for it.
void leave_out(const SignatureRequest& request, const SignedModel& model, const fs::path& bundle,
               Expectation& out) {
  std::set<std::string> names;
  for (const std::string& given : model.ignore_paths)
    names.insert(fs::path(given).lexically_normal().generic_string());
  for (const std::string& given : request.ignore_paths) names.insert(ignored_name(given, out.root));
  for (const std::string_view name : kNeverSigned) names.insert(std::string(name));
  const std::string own = relative_to(bundle, out.root);
  std::string told;
  for (std::string name : names) {
    while (name.ends_with('/')) name.pop_back();
    if (!is_safe_relative_path(name) || name == own) continue;
    out.settled.push_back(name);
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(out.root / name, ignored))) told += (told.empty() ? "" : ", ") + name;
  }
  if (!own.empty()) out.settled.push_back(own);
  if (told.empty()) return;
  out.findings.push_back({.severity = Severity::note,
                          .code = "signature.ignored",
                          .message = fmt::format("not part of what is signed, and not looked at: {}", told)});
}

void tell_more(const Signer& signer, const signature::Method& method, Expectation& out) {
  if (const auto* keyless = std::get_if<signature::Keyless>(&method)) {
    out.findings.push_back({.severity = Severity::note,
                            .code = "signature.trusted_root",
                            .message = fmt::format("traced back to the trusted root {}, sha256 {}",
                                                   keyless->root->origin, keyless->root->digest),
                            .remedy = "--trusted-root FILE for a newer or another one"});
  }
  if (signer.expired) {
    out.findings.push_back({.severity = Severity::warning,
                            .code = "signature.certificate_expired",
                            .message =
                                "the signer's certificate is no longer valid today, and nobody has witnessed "
                                "when it was used",
                            .remedy = "ask for a signature by a certificate that is"});
  }
}

SignatureFacts facts_of(const Verified& verified, const fs::path& bundle) {
  const Signer& signer = verified.signer;
  return {bundle.filename().string(), signer.method,      signer.words, signer.identity.subject,
          signer.identity.issuer,     signer.certificate, signer.times, signer.root,
          verified.model.name,        verified.model.root};
}

// In a hub cache's snapshot names are links to blobs, which lie outside the folder.
void follow_into_blobs(const fs::path& snapshot, Expectation& out) {
  std::error_code error;
  const fs::path blobs = fs::canonical(snapshot / ".." / ".." / "blobs", error);
  if (error) return;
  add_unlisted_files(out);
  for (ExpectedFile& file : out.files) {
    const fs::path real = fs::canonical(out.root / file.name, error);
    if (!error && real.parent_path() == blobs) file.elsewhere = real;
  }
  std::sort(out.files.begin(), out.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

// A hub cache's model is its one snapshot.
fs::path signed_folder(const fs::path& path) {
  if (!is_folder(path) || hub_cache_place(path) != HubCachePlace::model) return path;
  std::vector<fs::path> snapshots;
  std::error_code error;
  for (fs::directory_iterator it(path / "snapshots", error); !error && it != fs::directory_iterator();
       it.increment(error))
    snapshots.push_back(it->path());
  if (snapshots.size() == 1) return snapshots[0];
  throw Error::input(fmt::format("holds {} snapshots, and a signature is of one", snapshots.size()))
      .in(path)
      .remedy("name the snapshot's folder");
}

// Of the model's files those that are meant: one file, or some of the folder.
void narrow(const std::vector<std::string>& names, const fs::path& bundle, Expectation& out) {
  for (const std::string& name : names) {
    const bool is_signed = std::any_of(out.files.begin(), out.files.end(), [&](const ExpectedFile& file) {
      return file.name == name && file.digest;
    });
    if (is_signed) continue;
    out.findings.push_back(
        {.code = "signature.unsigned",
         .message = fmt::format("is not among the files that {} signs", bundle.filename().string()),
         .file = name});
  }
  std::erase_if(out.files, [&](const ExpectedFile& file) {
    return std::find(names.begin(), names.end(), file.name) == names.end();
  });
  out.owns_root = false;
  out.complete = false;
}

Expectation of_nobody(const fs::path& path, Findings findings) {
  Expectation out = expect_nothing(path);
  out.kind = "signed model, by nobody who is trusted";
  std::move(findings.begin(), findings.end(), std::back_inserter(out.findings));
  return out;
}

Expectation expectation_of(const Verified& verified, const SignatureRequest& request, const fs::path& bundle,
                           const fs::path& path) {
  const SignedModel& model = verified.model;
  Expectation out;
  out.kind = "signed model";
  out.origin = fmt::format("{}, signed by {}", bundle.filename().string(), verified.signer.words);
  out.root = is_folder(path) ? path : path.parent_path();
  out.complete = true;
  out.signature = facts_of(verified, bundle);
  const DigestKind kind = kind_of(model.hash);
  out.chunk_bytes = model.shard_bytes;
  out.chunk_kind = kind;
  const SharedTrust trust = Trust{
      TrustSource::signature, fmt::format("{}, by {}", bundle.filename().string(), verified.signer.words)};
  for (const SignedFile& file : model.files) {
    const bool alone = !is_folder(path) && model.files.size() == 1 && file.name == ".";
    std::string name = alone ? path.filename().string() : name_in_folder(file, model);
    if (!accept_name(name, out.findings)) continue;
    ExpectedFile expected = model.shard_bytes > 0
                                ? in_shards(file, kind)
                                : ExpectedFile{.name = {}, .digest = digest_from(file.digests[0], kind)};
    expected.name = std::move(name);
    expected.trust = trust;
    out.files.push_back(std::move(expected));
  }
  leave_out(request, model, bundle, out);
  finish(out);
  return out;
}

// NAME.sig or NAME.oms.sig beside a file or a folder.
std::optional<fs::path> bundle_beside(const fs::path& path) {
  std::error_code error;
  for (const char* ending : {".sig", ".oms.sig"}) {
    fs::path beside = path;
    beside += ending;
    if (fs::is_regular_file(beside, error)) return beside;
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_bundle(const fs::path& path) {
  std::error_code error;
  if (!is_folder(path)) {
    if (const auto beside = bundle_beside(path)) return beside;
  }
  const fs::path folder = is_folder(path) ? path : path.parent_path();
  if (fs::is_regular_file(folder / "model.sig", error)) return folder / "model.sig";
  std::vector<fs::path> named;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().filename().string().ends_with(".oms.sig")) named.push_back(it->path());
  }
  if (named.size() > 1)
    throw Error::input("holds several signatures").in(folder).remedy("name one with --signature");
  if (!named.empty()) return named[0];
  if (fs::is_regular_file(folder / "claims.jsonl", error)) return folder / "claims.jsonl";
  return bundle_beside(folder);
}

std::string ignored_name(const std::string& given, const fs::path& folder) {
  std::string name = fs::path(given).lexically_normal().generic_string();
  while (name.ends_with('/')) name.pop_back();
  if (fs::path(name).is_absolute()) name = relative_to(name, folder);
  if (!is_safe_relative_path(name))
    throw Error::usage(fmt::format("--ignore-path takes a path below the model's folder, not '{}'", given));
  return name;
}

Expectation expect_from_signature(const SignatureRequest& request, const fs::path& given,
                                  const std::vector<std::string>& only) {
  check_request(request);
  const fs::path path = signed_folder(given);
  const auto bundle = request.bundle ? request.bundle : find_bundle(path);
  if (!bundle)
    throw Error::input("holds no signature: no model.sig, *.oms.sig or claims.jsonl")
        .in(path)
        .remedy("name it with --signature");
  Findings refused;
  std::optional<SignatureMethods> methods;
  try {
    methods.emplace(read_methods(request, path));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::refused) throw;
    refused.push_back({.code = "signature.policy", .message = error.message(), .remedy = error.remedy()});
    return of_nobody(path, std::move(refused));
  }
  const auto verified = verify_any(read_bundles(*bundle), *methods, bundle->filename().string(), refused);
  if (!verified) return of_nobody(path, std::move(refused));
  Expectation out = expectation_of(*verified, request, *bundle, path);
  const auto method = std::find_if(methods->all.begin(), methods->all.end(), [&](const NamedMethod& one) {
    return name_of(one.method) == verified->signer.method;
  });
  tell_more(verified->signer, method->method, out);
  if (is_folder(path) && hub_cache_place(path) == HubCachePlace::snapshot) follow_into_blobs(path, out);
  if (!is_folder(path)) narrow({path.filename().string()}, *bundle, out);
  if (!only.empty()) narrow(only, *bundle, out);
  return out;
}

}  // namespace assay
