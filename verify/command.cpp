#include "verify/command.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <map>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/memory_pages.h"
#include "core/system/message.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "verify/expected/assemble.h"
#include "verify/fix_source.h"
#include "verify/node_options.h"
#include "verify/receipt.h"
#include "verify/receipt_mac.h"
#include "verify/receipt_seals.h"
#include "verify/render.h"
#include "verify/targets.h"
#include "verify/verdict.h"
#include "verify/verdict_set.h"
#include "verify/verify.h"

namespace assay {
namespace {

struct VerifySettings {
  CommonOptions common;
  VerifyOptions verify;
  RenderOptions render;
  NodeSettings nodes;
  std::vector<std::string> paths = {"."};
  std::string receipt, check_receipt, receipt_key, sign_receipt, receipt_certificate, max_age, expect_commit;
  std::string rev, root, manifest, sha256, state;
  std::string pin, bundle, public_key, identity, issuer, trusted_root, policy;
  std::vector<std::string> authorities, ignore_paths;
  bool quiet = false, strict = false, keep_going = false, fail_fast = false, no_git = false;
};

class Printer : public VerifyObserver {
 public:
  Printer(const Output& output, bool quiet) : output_(output), quiet_(quiet), colours_(output.colours()) {}

  // Of several: which it is, on a line of its own.
  void heading(const std::string& path) {
    if (begun_) output_.line("");
    begun_ = true;
    output_.paint(escape_for_terminal(path), Style::bold);
  }
  void found(const Expectation& expectation) override {
    if (quiet_) return;
    output_.line(escape_for_terminal(fmt::format("{}: {}", expectation.kind, origin_of(expectation))));
  }
  void settled(const FileReport& file, Progress* progress) override {
    const bool good = file.status == FileStatus::ok || file.status == FileStatus::unchecked;
    if (!output_.text_wanted() || (quiet_ && good)) return;
    const Style style = good ? Style::plain : file.status == FileStatus::extra ? Style::yellow : Style::red;
    const std::string line = styled(status_line(file), style, colours_);
    if (progress != nullptr)
      progress->print_above(line);
    else
      output_.line(line);
  }

 private:
  const Output& output_;
  bool quiet_, colours_;
  bool begun_ = false;
};

std::optional<std::string> read_key(const VerifySettings& settings) {
  if (settings.receipt_key.empty()) return std::nullopt;
  if (settings.receipt.empty() && settings.check_receipt.empty() && settings.nodes.gather.empty() &&
      !settings.nodes.merge)
    throw Error::usage("--receipt-key is for --receipt, --check-receipt, --gather and --merge");
  return read_receipt_key(settings.receipt_key);
}

std::string authenticity(const ReceiptCheck& check) {
  if (check.authenticated && !check.signer.empty()) return "signed by " + check.signer;
  return check.authenticated ? "authenticated by the key"
                             : "NOT authenticated: whoever can write the receipt can say so (--receipt-key)";
}

int run_receipt_check(const VerifySettings& settings, const Output& output) {
  ReceiptQuestion question{.receipt = settings.check_receipt,
                           .path = settings.root.empty() ? settings.paths[0] : settings.root,
                           .key = read_key(settings),
                           .signature = settings.verify.find.signature};
  if (!settings.max_age.empty()) question.max_age_seconds = parse_duration(settings.max_age);
  const ReceiptCheck check = check_receipt(question, settings.verify);
  for (const Finding& finding : check.findings) output.line(to_line(finding));
  const bool good = check.findings.empty();
  const std::string age = human_duration(static_cast<double>(check.age_seconds));
  output.paint(good ? fmt::format("OK: {} files are still those verified {} ago against {}; in {}; {}",
                                  check.files, age, escape_for_terminal(check.origin),
                                  escape_for_terminal(check.root.string()), authenticity(check))
                    : fmt::format("FAILED: the receipt does not vouch for what is in {}; verify again",
                                  escape_for_terminal(check.root.string())),
               good ? Style::green : Style::red);
  output.json({{"schema", "assay.receipt-check/1"},
               {"verdict", good ? "ok" : "failed"},
               {"root", check.root.string()},
               {"authenticated", check.authenticated},
               {"files", check.files},
               {"age_seconds", check.age_seconds},
               {"findings", to_json(check.findings)}});
  return good ? kExitOk : kExitCheckFailed;
}

// nullopt where receipts are not to be signed; read before anything is hashed.
std::optional<signature::SigningKey> read_signer(const VerifySettings& settings) {
  if (settings.sign_receipt.empty()) {
    if (!settings.receipt_certificate.empty())
      throw Error::usage("--receipt-certificate is for --sign-receipt");
    return std::nullopt;
  }
  if (settings.receipt.empty() && settings.nodes.gather.empty())
    throw Error::usage("--sign-receipt is for --receipt and --gather");
  return signature::read_signing_key(settings.sign_receipt,
                                     settings.receipt_certificate.empty()
                                         ? std::nullopt
                                         : std::optional<fs::path>(settings.receipt_certificate));
}

void save_receipt(const std::string& target, const VerifyReport& report, const VerifyOptions& options,
                  const ReceiptSeals& seals, const LaunchedRank* rank = nullptr) {
  AtomicFile file(target);
  write_receipt(
      report, options, seals.key, [&](std::string_view text) { file.write(text); }, rank);
  file.commit();
  if (!seals.signer) return;
  write_whole(signature_of_receipt(target), signature_over(target, *seals.signer));
}

void require_writable(const fs::path& target) {
  std::error_code ignored;
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) return;  // /dev/stderr, a pipe
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw Error::from_errno("create", errno).in(target);
}

int exit_code(const VerifyReport& report) {
  switch (verdict_of(report)) {
    case Verdict::interrupted: return kExitInterrupted;
    case Verdict::failed: return kExitCheckFailed;
    default: return kExitOk;
  }
}

void check_demands(const VerifySettings& settings) {
  const VerifyOptions& options = settings.verify;
  if (!options.fix_from.empty()) parse_fix_source(options.fix_from);
  if (options.expect_commit && !is_commit_id(*options.expect_commit)) {
    throw Error::usage(
        fmt::format("--expect-commit takes the whole id of a commit, 40 hexadecimal digits in "
                    "lower case, not '{}'",
                    *options.expect_commit));
  }
  if (options.quick && (options.require_digests || options.expect_commit)) {
    throw Error::usage("--quick compares no digests, which --require-digests and --expect-commit ask for")
        .remedy("leave one of them out");
  }
  if (options.quick && (options.numbers || options.tensor_digests || options.xet)) {
    throw Error::usage("--quick reads no weights, which --numbers, --tensor-digests and --xet ask about")
        .remedy("leave one of them out");
  }
}

// Options that speak of one file, one folder, or one verdict.
void check_for_several(const VerifySettings& settings) {
  if (settings.paths.size() == 1) return;
  const auto refuse = [](bool given, std::string_view option, std::string_view why, std::string_view remedy) {
    if (given) throw Error::usage(fmt::format("{} {}, and several are given", option, why)).remedy(remedy);
  };
  refuse(!settings.sha256.empty(), "--sha256", "is for one file", "write the digests into a --manifest");
  refuse(!settings.bundle.empty(), "--signature", "is of one PATH",
         "leave it out: each folder's own signature is looked for");
  refuse(!settings.pin.empty(), "--digest", "is of one model", "verify one at a time");
  refuse(!settings.root.empty(), "--root", "says where the files of one PATH lie", "verify one at a time");
  refuse(!settings.receipt.empty(), "--receipt", "records the verdict of one PATH",
         "name the folder, with --include for a part of it");
  refuse(!settings.check_receipt.empty(), "--check-receipt", "is about one PATH", "check one at a time");
  refuse(settings.nodes.given(), "--share and --every-node", "are for one PATH", "verify one at a time");
  refuse(settings.manifest == "-", "--manifest -", "is read for one PATH", "name a file");
}

VerifyReport examine(const Target& target, const VerifySettings& settings, Printer& printer,
                     const Output& output) {
  VerifyOptions options = settings.verify;
  options.find.only = target.files;
  VerifyReport report = verify(target.path, options, printer);
  render_text(report, options, settings.render, output);
  return report;
}

int verify_one(const Target& target, const VerifySettings& settings, Printer& printer, const Output& output,
               const ReceiptSeals& seals) {
  const VerifyReport report = examine(target, settings, printer, output);
  if (output.json_wanted()) write_json(report, settings.verify, settings.common.json);
  if (!settings.receipt.empty()) save_receipt(settings.receipt, report, settings.verify, seals);
  return exit_code(report);
}

class Silent : public VerifyObserver {};

// A rank's part or copy. What rank 0 puts together is told once, by it; by itself a rank tells all.
int verify_on_node(const NodeRun& node, const Target& target, VerifySettings& settings, Printer& printer,
                   const Output& output, const ReceiptSeals& seals) {
  if (node.idle()) return node.stand_by(seals, output);
  const auto report_receipt = [&](const VerifyReport& report) {
    if (!settings.receipt.empty())
      save_receipt(settings.receipt, report, settings.verify, seals, &node.rank());
  };
  if (!node.gathers()) {
    output.line(describe(node.rank()));
    const VerifyReport report = examine(target, settings, printer, output);
    if (output.json_wanted()) write_json(report, settings.verify, settings.common.json);
    report_receipt(report);
    return exit_code(report);
  }
  Silent silent;
  const VerifyReport report = verify(target.path, settings.verify, silent);
  report_receipt(report);
  return node.hand_in(report, settings.verify, seals, verdict_line(report, settings.verify), output);
}

// Each by itself: that one cannot be read does not keep the others from being verified.
int verify_each(const std::vector<Target>& targets, const VerifySettings& settings, Printer& printer,
                const Output& output) {
  VerdictSet verdicts;
  Json reports = Json::array();
  int worst = kExitOk;
  for (const Target& target : targets) {
    printer.heading(target.shown);
    try {
      const VerifyReport report = examine(target, settings, printer, output);
      verdicts.add(target.shown, report);
      if (output.json_wanted())
        reports.push_back({{"path", target.shown}, {"report", render_json(report, settings.verify)}});
      worst = std::max(worst, exit_code(report));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      write_message(fmt::format("assay: {}", error.line()));
      verdicts.add_unreadable(target.shown);
      reports.push_back({{"path", target.shown}, {"error", error.line()}});
      worst = std::max(worst, error.exit_code());
    }
    if (interrupted()) break;
  }
  output.line("");
  output.paint(escape_for_terminal(verdicts.line()), worst == kExitOk ? Style::green : Style::red);
  output.json(set_json(verdicts, std::move(reports)));
  return worst;
}

// nullopt where nothing is said of signatures.
std::optional<SignatureRequest> signature_request(const VerifySettings& settings) {
  SignatureRequest request;
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  request.bundle = given(settings.bundle);
  request.public_key = given(settings.public_key);
  request.authorities.assign(settings.authorities.begin(), settings.authorities.end());
  request.identity = given(settings.identity);
  request.issuer = given(settings.issuer);
  request.policy = given(settings.policy);
  request.trusted_root = given(settings.trusted_root);
  request.ignore_paths = settings.ignore_paths;
  if (request.bundle || request.names_signer() || request.trusted_root) return request;
  if (settings.verify.ignore_unsigned || !request.ignore_paths.empty())
    throw Error::usage("--ignore-unsigned and --ignore-path are for signed models")
        .remedy("say whom to believe: --public-key, --ca, --identity with --issuer, or --policy");
  return std::nullopt;
}

int merge(const VerifySettings& settings, const Output& output) {
  const ReceiptTrust trust{.key = read_key(settings),
                           .signers = signature_request(settings),
                           .model = settings.root.empty() ? "." : settings.root};
  if (!settings.policy.empty() && settings.root.empty())
    throw Error::usage("--policy says who may sign which model, and receipts do not say where theirs lies")
        .remedy("say --root DIR");
  return run_merge(settings.paths, settings.nodes, trust, output);
}

int run_verify(VerifySettings& settings) {
  give_back_what_is_freed();
  const Output output(settings.common.json);
  VerifyOptions& options = settings.verify;
  if (settings.nodes.merge) return merge(settings, output);
  check_for_several(settings);
  if (!settings.expect_commit.empty()) options.expect_commit = settings.expect_commit;
  check_demands(settings);
  for (const std::string* own : {&settings.state, &settings.receipt, &settings.check_receipt,
                                 &settings.receipt_key, &settings.common.json, &settings.manifest}) {
    if (!own->empty() && *own != "-") options.own_files.emplace_back(*own);
  }
  options.find.signature = signature_request(settings);
  if (!settings.check_receipt.empty()) return run_receipt_check(settings, output);
  const ReceiptSeals seals{read_key(settings), read_signer(settings)};
  if (seals.signer && !settings.receipt.empty())
    options.own_files.push_back(signature_of_receipt(settings.receipt));
  options.jobs = settings.common.jobs;
  options.progress = settings.common.progress;
  if (settings.strict) options.reading = safetensors::Reading::strict;
  if (settings.keep_going) options.after_failure = AfterFailure::keep_going;
  if (settings.fail_fast) options.after_failure = AfterFailure::stop;
  if (!settings.state.empty()) options.state = settings.state;
  if (!settings.rev.empty()) options.find.rev = settings.rev;
  if (!settings.root.empty()) options.find.root = settings.root;
  if (!settings.manifest.empty()) options.find.manifest = settings.manifest;
  if (!settings.sha256.empty()) options.find.sha256 = settings.sha256;
  if (!settings.pin.empty()) options.find.pin = settings.pin;

  options.find.git = !settings.no_git;
  // Said now, not after hours of hashing.
  for (const std::string* written : {&settings.state, &settings.receipt, &settings.common.json}) {
    if (!written->empty() && *written != "-") require_writable(*written);
  }

  Printer printer(output, settings.quiet);
  settings.render.tensor_digests = options.tensor_digests;
  const std::vector<Target> targets = targets_of(settings.paths);
  if (targets.size() > 1) return verify_each(targets, settings, printer, output);
  if (settings.nodes.given()) {
    const NodeRun node(settings.nodes, targets[0].path, options);
    return verify_on_node(node, targets[0], settings, printer, output, seals);
  }
  if (!settings.nodes.gather.empty()) throw Error::usage("--gather is for --share and --every-node");
  return verify_one(targets[0], settings, printer, output, seals);
}

void add_signature_options(CLI::App& command, VerifySettings& s) {
  const auto file = [&](const char* name, std::string& into, const char* help) {
    command.add_option(name, into, help)->type_name("FILE")->check(not_empty());
  };
  file("--signature", s.bundle,
       "Signed list of the files (OMS); without it model.sig, *.oms.sig or claims.jsonl beside them");
  file("--public-key", s.public_key, "Believe a signature by this key (PEM)");
  command
      .add_option("--ca", s.authorities,
                  "Believe a signature by a certificate that leads to one of these (PEM)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--identity", s.identity, "Believe a keyless (Sigstore) signature by this identity")
      ->type_name("NAME")
      ->check(not_empty());
  command.add_option("--issuer", s.issuer, "Who has to have attested the --identity")
      ->type_name("URL")
      ->check(not_empty());
  file("--trusted-root", s.trusted_root, "Sigstore's trusted root, in place of the built-in one");
  file("--policy", s.policy, "Who may sign which models (JSON); what no rule covers is refused");
  command.add_flag("--ignore-unsigned", s.verify.ignore_unsigned,
                   "Files of a signed model's folder that are not in its list do no harm");
  command.add_option("--ignore-path", s.ignore_paths, "Nor does this path of it, which is not looked at")
      ->type_name("PATH")
      ->check(not_empty());
}

void add_receipt_options(CLI::App& command, VerifySettings& s) {
  command.add_option("--receipt", s.receipt, "Write a receipt that a gate can check")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--receipt-key", s.receipt_key,
                  "Key that authenticates the receipt (HMAC-SHA256): a file of 16 bytes or more")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--sign-receipt", s.sign_receipt,
                  "Sign receipts by this private key (PEM): RECEIPT.sig, for --check-receipt --public-key")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--receipt-certificate", s.receipt_certificate,
                  "That key's certificate, and those above it but the root (PEM): for --check-receipt --ca")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--check-receipt", s.check_receipt, "Check a receipt instead of the bytes")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--max-age", s.max_age, "With --check-receipt: how old it may be (24h, 7d)")
      ->type_name("TIME")
      ->check(not_empty())
      ->needs("--check-receipt");
}

constexpr const char* kVerifyExamples =
    "  assay verify .                                  a clone, a hub cache, a download, a folder, a file\n"
    "  assay verify . --quick                          sizes, headers, index: a second, no hashing\n"
    "  assay verify DIR --manifest SHA256SUMS          against a checksum file or a saved hub listing\n"
    "  assay verify model.gguf --sha256 4d7a2146…      one file\n"
    "  assay verify *.safetensors                      these files of their folder; folders: one verdict "
    "each\n"
    "  assay verify . --numbers                        NaN, Inf and zero tensors in the same pass\n"
    "  assay verify . --state ~/.assay-state           interrupted or repeated: only what changed is read\n"
    "  assay verify . --require-digests                a gate: 1 unless somebody vouches for every weight\n"
    "  assay verify . --public-key lab.pub             the model.sig beside it, by this key; --ca, "
    "--identity "
    "too\n"
    "  srun assay verify DIR --share --gather G         one copy read by many ranks, one verdict by rank 0\n"
    "  srun assay verify DIR --every-node --gather G    each node's own copy; --merge G/*.json: by hand\n"
    "  assay verify . --receipt r.json --receipt-key K proof for a gate: --check-receipt r.json --max-age "
    "24h\n"
    "\nExit codes: 0 all well, 1 something is wrong, 2 wrong usage or unreadable input, 130 interrupted.";

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  auto settings = std::make_shared<VerifySettings>();
  CLI::App& command = *program.add_subcommand("verify", "Are these the right bytes, whole and well formed?");
  VerifySettings& s = *settings;
  command.add_option("PATH", s.paths,
                     "Git clones, Hugging Face caches or downloads, folders, files (default: .)");
  command
      .add_option("--manifest", s.manifest,
                  "Checksum file, saved hub listing, CycloneDX, SPDX, gguf-hash's output, or an OCI layout")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--sha256", s.sha256, "What the one file given must hash to")
      ->type_name("HEX")
      ->check(not_empty());
  command.add_option("--digest", s.pin, "What the manifest of the one model given has to be (a store's)")
      ->type_name("sha256:HEX")
      ->check(not_empty());
  command.add_option("--rev", s.rev, "Commit of the clone that says what is right (default: HEAD)")
      ->type_name("REV")
      ->check(not_empty());
  command.add_option("--root", s.root, "Folder that holds the weights, when they are not in PATH")
      ->type_name("DIR")
      ->check(not_empty());
  add_signature_options(command, s);
  command.add_flag("--quick", s.verify.quick, "Only what takes a second: sizes, headers, index, pointers");
  command.add_flag("--numbers", s.verify.numbers, "Per tensor NaN, Inf, zeros, subnormals, min, max, amax");
  command.add_flag("--allow-nonfinite", s.verify.allow_nonfinite, "NaN and Inf are warnings, not failures");
  command.add_flag("--tensor-digests", s.verify.tensor_digests, "A sha256 per tensor, from the same pass");
  command.add_flag("--xet", s.verify.xet,
                   "Xet hashes too, by the chunkers of before and after September 2025");
  command.add_flag("--strict", s.strict, "Hold safetensors to the specification, not to what loaders accept");
  command.add_flag("--keep-going", s.keep_going, "Hash everything even though cheap checks have failed");
  command.add_flag("--fail-fast", s.fail_fast, "Hash nothing once cheap checks have failed");
  command.add_flag("--fail-on-extra", s.verify.fail_on_extra, "Files nobody expected make the verdict no");
  command.add_flag("--require-digests", s.verify.require_digests,
                   "Weights that nobody vouches for make the verdict no");
  command
      .add_option("--expect-commit", s.expect_commit,
                  "Every digest has to come from this commit (its whole id); implies --require-digests")
      ->type_name("ID")
      ->check(not_empty());
  command.add_flag("--no-git", s.no_git, "Do not ask the git repository that PATH lies in");
  command.add_flag("--follow-links", s.verify.follow_links, "Follow symbolic links out of the folder");
  command.add_flag("--ranges", s.render.ranges,
                   "Print damaged ranges as curl -r takes them (chunked manifest)");
  command.add_flag("--fix-plan", s.verify.fix_plan,
                   "Print the lines that mend each fault (hf, git lfs, curl, ollama)");
  command
      .add_option(
          "--fix-from", s.verify.fix_from,
          "With --fix-plan: where the files come from: ORG/NAME of the hub, hf://buckets/…, an address")
      ->type_name("SOURCE")
      ->check(not_empty())
      ->needs("--fix-plan");
  command
      .add_option("--state", s.state, "Remember what was hashed in FILE; continue and re-hash only changes")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--full", s.verify.full, "Read everything again, whatever the state file knows");
  command.add_flag_callback(
      "--no-state", [settings] { settings->state.clear(); }, "Use no state file");
  command.add_flag("--keep-cache", s.verify.keep_cache,
                   "Leave what was read in the page cache for the loader");
  add_receipt_options(command, s);
  add_node_options(command, s.nodes);
  command.add_option("--include", s.verify.include, "Only files whose name matches")->type_name("REGEX");
  command.add_option("--exclude", s.verify.exclude, "Not files whose name matches")->type_name("REGEX");
  command.add_flag("--quiet", s.quiet, "No line for what is well");
  add_common_options(command, s.common);
  set_examples(command, kVerifyExamples);
  command.callback([settings, &action] { action = [settings] { return run_verify(*settings); }; });
}

}  // namespace assay
