#include "verify/manifest_command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "verify/make_manifest.h"
#include "verify/render.h"
#include "verify/sign_model.h"
#include "verify/targets.h"
#include "verify/tensor_manifest.h"

namespace assay {
namespace {

constexpr std::uint64_t kSmallestChunk = 4096;  // below it the manifest approaches the size of the file
constexpr std::size_t kOmittedShown = 5;

struct ManifestSettings {
  CommonOptions common;
  ManifestOptions manifest;
  std::vector<std::string> paths = {"."};
  std::string output, chunks, root, rev, given;
  std::string key, certificate, state;
  SigningOptions signing;
  HeldSettings held;
  bool no_git = false, sign = false, tensors = false;
};

std::string render(const MadeManifest& made) {
  if (made.manifest.chunk_bytes > 0) return render_chunked_manifest(made.manifest);
  std::string text;
  for (const ManifestEntry& entry : made.manifest.entries) text += checksum_line(entry.digest, entry.name);
  return text;
}

void write_manifest(const MadeManifest& made, const ManifestSettings& settings) {
  const std::string text = render(made);
  if (!settings.output.empty()) {
    write_whole(settings.output, text);
  } else if (settings.common.json != "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

Json document(const MadeManifest& made) {
  Json files = Json::array();
  for (const ManifestEntry& entry : made.manifest.entries) {
    Json file = {{"name", entry.name}, {"sha256", entry.digest.hex()}};
    if (entry.size) file["size"] = *entry.size;
    files.push_back(std::move(file));
  }
  return {{"schema", "assay.manifest-report/1"},
          {"source", {{"kind", made.source.kind}, {"origin", made.source.origin}}},
          {"files", std::move(files)},
          {"omitted", made.omitted},
          {"findings", to_json(made.findings)}};
}

// On stderr: stdout may be the manifest itself.
void explain(const MadeManifest& made, bool read) {
  const auto say = [](std::string_view line) {
    write_message(fmt::format("assay: {}", escape_for_terminal(line)));
  };
  for (const Finding& finding : made.findings) write_message(fmt::format("assay: {}", to_line(finding)));
  say(fmt::format("{}: {}; {} digests, {}", made.source.kind, origin_of(made.source),
                  made.manifest.entries.size(), read ? "of files read" : "no file was read"));
  if (made.omitted.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(kOmittedShown, made.omitted.size()); ++i)
    names += " " + made.omitted[i];
  if (made.omitted.size() > kOmittedShown) names += " …";
  say(fmt::format("omitted, their sha256 not being known ({}):{}; --hash reads them", made.omitted.size(),
                  names));
}

void check_signing(const ManifestSettings& settings) {
  const bool sign = settings.sign;
  if (!sign && (!settings.key.empty() || !settings.certificate.empty()))
    throw Error::usage("--key and --certificate are for --sign");
  if (!sign && (!settings.signing.ignore_paths.empty() || settings.signing.follow_links))
    throw Error::usage("--ignore-path and --follow-links are for --sign");
  if (!sign) return;
  if (settings.key.empty())
    throw Error::usage("--sign takes the private key that signs").remedy("give --key FILE");
  if (!settings.chunks.empty() || !settings.root.empty() || !settings.rev.empty())
    throw Error::usage("--chunks, --root and --rev make no signed list").remedy("leave them out");
}

Json document(const SignedManifest& done, const std::string& signer) {
  Json json = document(done.made);
  json["signature"] = {{"file", done.output.string()},
                       {"signer", signer},
                       {"root_digest", done.root_digest},
                       {"ignored", done.ignored}};
  json["bytes_read"] = done.made.bytes_read;
  json["bytes_known"] = done.made.bytes_known;
  return json;
}

int run_signing(const fs::path& path, ManifestSettings& settings) {
  const auto key = signature::read_signing_key(
      settings.key,
      settings.certificate.empty() ? std::nullopt : std::optional<fs::path>(settings.certificate));
  ManifestOptions& options = settings.manifest;
  settings.signing.private_key = settings.key;
  settings.signing.output = settings.output;
  const SignedManifest done = sign_model(path, options, settings.signing, key);
  if (done.made.interrupted) return kExitInterrupted;
  write_whole(done.output, done.bundle);
  write_message(escape_for_terminal(fmt::format(
      "assay: signed {} {}, {} ({} read, {} known from before), by {}: {}", done.made.manifest.entries.size(),
      done.made.manifest.entries.size() == 1 ? "file" : "files",
      human_bytes(done.made.bytes_read + done.made.bytes_known), human_bytes(done.made.bytes_read),
      human_bytes(done.made.bytes_known), key.words, done.output.string())));
  const Output output(settings.common.json);
  output.json(document(done, key.words));
  return kExitOk;
}

void check_tensors(const ManifestSettings& settings) {
  if (!settings.tensors && settings.held.asked())
    throw Error::usage("--engine, --tp, --ep and --dtype are for --tensors");
  if (!settings.tensors) return;
  if (settings.sign || settings.manifest.hash || !settings.chunks.empty() || !settings.root.empty() ||
      !settings.rev.empty() || !settings.given.empty() || !settings.state.empty())
    throw Error::usage("--tensors lists tensors, not files: options of files do not go with it");
  if (settings.paths.size() != 1) throw Error::usage("--tensors takes one model");
}

int run_manifest(ManifestSettings& settings) {
  check_tensors(settings);
  if (settings.tensors)
    return run_tensor_manifest(settings.paths[0], settings.held, settings.output, settings.common);
  ManifestOptions& options = settings.manifest;
  options.jobs = settings.common.jobs;
  options.progress = settings.common.progress;
  options.find.git = !settings.no_git;
  if (!settings.root.empty()) options.find.root = settings.root;
  if (!settings.rev.empty()) options.find.rev = settings.rev;
  if (!settings.given.empty()) options.find.manifest = settings.given;
  for (const std::string* written : {&settings.output, &settings.common.json}) {
    if (!written->empty()) options.written.emplace_back(*written);
  }
  if (!settings.chunks.empty()) {
    options.chunk_bytes = parse_bytes(settings.chunks);
    if (options.chunk_bytes < kSmallestChunk) {
      throw Error::usage(fmt::format("--chunks takes at least {} bytes", kSmallestChunk));
    }
  }
  check_signing(settings);
  if (!settings.state.empty()) options.state = settings.state;
  const std::vector<Target> targets = targets_of(settings.paths);
  if (targets.size() > 1) {
    throw Error::usage(fmt::format("a manifest is of one folder, and {} are named", targets.size()))
        .remedy("name the folder that holds them all, or make a manifest of each");
  }
  options.find.only = targets[0].files;
  if (settings.sign) return run_signing(targets[0].path, settings);
  const MadeManifest made = make_manifest(targets[0].path, options);
  if (made.interrupted) return kExitInterrupted;
  const bool read = options.hash || options.chunk_bytes > 0;
  explain(made, read);
  if (made.manifest.entries.empty()) {
    throw Error::input("there is nothing to write a manifest of")
        .in(targets[0].path)
        .remedy(read ? "" : "try --hash");
  }
  write_manifest(made, settings);
  const Output output(settings.common.json);
  output.json(document(made));
  return has_errors(made.findings) ? kExitCheckFailed : kExitOk;
}

constexpr const char* kManifestExamples =
    "  assay manifest . > SHA256SUMS          from the LFS pointers of HEAD: no weight is read\n"
    "  sha256sum -c SHA256SUMS                what it is for\n"
    "  assay manifest . --hash -o SHA256SUMS  by reading every file\n"
    "  assay manifest . --chunks 16MiB -o m.json\n"
    "                                         from a good copy: names and mends damaged ranges later\n"
    "  assay manifest . --sign --key lab.pem  model.sig, which verify --public-key and model-signing verify\n"
    "  assay manifest . --tensors --engine vllm --tp 4 -o held.json\n"
    "                                         of each tensor as a rank holds it, for compare tensors\n"
    "\nExit codes: 0 written, 1 written, but files that are damaged or unreadable were left out, 2 wrong "
    "usage or unreadable input.";

}  // namespace

void add_manifest(CLI::App& program, Action& action) {
  auto settings = std::make_shared<ManifestSettings>();
  CLI::App& command =
      *program.add_subcommand("manifest", "Write a checksum manifest that sha256sum -c reads");
  ManifestSettings& s = *settings;
  command.add_option("PATH", s.paths,
                     "A git clone, a Hugging Face cache or download, a folder, files of one (default: .)");
  command.add_option("-o,--output", s.output, "Write to FILE instead of stdout")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--hash", s.manifest.hash, "Read the files, also those whose sha256 nobody knows");
  command
      .add_option("--chunks", s.chunks, "A digest for every SIZE as well (a JSON manifest); reads the files")
      ->type_name("SIZE");
  command.add_option("--rev", s.rev, "Commit of the clone (default: HEAD)")
      ->type_name("REV")
      ->check(not_empty());
  command.add_option("--root", s.root, "Folder that holds the weights, when they are not in PATH")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--manifest", s.given, "Take names and digests from a manifest or saved hub listing")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--sign", s.sign,
                   "Sign the list of all files (OMS): model.sig in the folder, or FILE of -o");
  command.add_option("--key", s.key, "With --sign: the private key (PEM; P-256, P-384 or P-521)")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--certificate", s.certificate,
                  "With --sign: the key's certificate, and those above it but the root (PEM)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--ignore-path", s.signing.ignore_paths, "With --sign: leave this path out")
      ->type_name("PATH")
      ->check(not_empty());
  command.add_flag("--follow-links", s.signing.follow_links, "With --sign: sign what symbolic links lead to");
  command
      .add_option("--state", s.state, "With --hash or --sign: read only what changed since FILE was written")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--tensors", s.tensors, "The SHA-256 of every tensor, as JSON; reads the weights");
  add_held_options(command, s.held);
  command.add_flag("--no-git", s.no_git, "Do not ask the git repository that PATH lies in");
  add_common_options(command, s.common);
  set_examples(command, kManifestExamples);
  command.callback([settings, &action] { action = [settings] { return run_manifest(*settings); }; });
}

}  // namespace assay
