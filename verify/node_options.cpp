#include "verify/node_options.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "verify/expected/find.h"
#include "verify/expected/signature_methods.h"
#include "verify/gather.h"
#include "verify/receipt.h"

namespace assay {
namespace {

constexpr std::uint64_t kComparedPieces = 16ull << 20;  // of copies that nobody vouches for

void check_settings(const NodeSettings& settings, const VerifyOptions& options) {
  if (settings.share && settings.every_node)
    throw Error::usage("--share is for one copy that all ranks see, --every-node for copies of their own")
        .remedy("leave one of them out");
  if (options.quick)
    throw Error::usage("--quick reads nothing that ranks could share").remedy("run it on one of them");
  if (settings.share && options.state)
    throw Error::usage("--state is one process's, and --share is for many").remedy("leave it out");
  if (settings.share && options.xet)
    throw Error::usage("--xet hashes whole files, and --share may cut them").remedy("leave one of them out");
  if (!settings.gather.empty() && settings.gather_timeout.empty())
    throw Error::usage("--gather-timeout is empty");
}

// Receipts would be taken for files of the model.
void refuse_inside(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  const fs::path relative =
      fs::weakly_canonical(folder, error).lexically_relative(fs::weakly_canonical(path, error));
  if (error || relative.empty() || *relative.begin() == "..") return;
  throw Error::usage("--gather names a folder inside of what is verified")
      .in(folder)
      .remedy("name one elsewhere");
}

// A file that gets its name all at once; what lies there, a link too, is replaced and not followed.
class PlacedFile {
 public:
  template <class Write>
  PlacedFile(const fs::path& target, const Write& write)
      : target_(target), beside_(target.parent_path() / (".new-" + target.filename().string())) {
    std::error_code ignored;
    fs::remove(beside_, ignored);
    AtomicFile file(beside_);
    write([&](std::string_view text) { file.write(text); });
    file.commit();
  }
  const fs::path& beside() const { return beside_; }
  void place() const {
    std::error_code error;
    fs::rename(beside_, target_, error);
    if (error) throw Error::io("cannot be put there: " + error.message()).in(target_);
  }

 private:
  const fs::path target_, beside_;
};

// Its signature first: whoever sees the receipt sees that too.
template <class Write>
void put_receipt(const fs::path& folder, std::uint32_t rank, const ReceiptSeals& seals, const Write& write) {
  const fs::path target = folder / gathered_name(rank);
  const PlacedFile receipt(target, write);
  if (seals.signer) {
    const std::string bundle = signature_over(receipt.beside(), *seals.signer);
    PlacedFile(signature_of_receipt(target), [&](const WriteText& put) { put(bundle); }).place();
  }
  receipt.place();
}

int exit_code_of(const MergedReport& report) {
  if (interrupted()) return kExitInterrupted;
  return report.verdict() == Verdict::failed ? kExitCheckFailed : kExitOk;
}

}  // namespace

void add_node_options(CLI::App& command, NodeSettings& s) {
  command.add_flag("--share", s.share,
                   "One copy, many ranks: each reads a part of it, no byte is read twice");
  command.add_flag("--every-node", s.every_node,
                   "Each node has a copy of its own; one rank of each reads it");
  command
      .add_option("--rank", s.rank.rank,
                  "Which rank of how many this is, where no launcher says it (srun, mpirun, torchrun)")
      ->type_name("R/N")
      ->check(not_empty());
  command.add_option("--launcher", s.rank.launcher, "Whom to believe: slurm, openmpi, pmi, torchrun")
      ->type_name("NAME")
      ->check(not_empty());
  command
      .add_option("--run-id", s.rank.run,
                  "What this run is called, and no other (default: the launcher's job id)")
      ->type_name("TEXT")
      ->check(not_empty());
  command
      .add_option("--gather", s.gather,
                  "Folder that all ranks see: receipts meet there, rank 0 gives one verdict")
      ->type_name("DIR")
      ->check(not_empty());
  command
      .add_option("--gather-timeout", s.gather_timeout, "How long rank 0 waits for the others (default: 10m)")
      ->type_name("TIME")
      ->check(not_empty());
  command.add_flag("--merge", s.merge, "PATHs are receipts of many ranks or nodes: one verdict over all");
}

NodeRun::NodeRun(const NodeSettings& settings, const fs::path& path, VerifyOptions& options)
    : settings_(settings) {
  check_settings(settings, options);
  rank_ = launched_rank(settings.rank);
  if (settings.share) options.share = NodeShare{rank_.rank, rank_.ranks};
  if (settings.every_node) options.compared_pieces = kComparedPieces;
  if (!gathers()) return;
  timeout_ = parse_duration(settings.gather_timeout);
  if (rank_.run.empty())
    throw Error::usage(
        "--gather cannot tell this run's receipts from those of another: nobody says what it is called")
        .remedy("say --run-id TEXT, the same for all ranks and another each time");
  refuse_inside(settings.gather, path);
  tell_begun(settings.gather, rank_);
}

bool NodeRun::idle() const {
  return settings_.every_node && rank_.local.value_or(0) != 0;
}

int NodeRun::stand_by(const ReceiptSeals& seals, const Output& output) const {
  output.line(fmt::format("{}: nothing to do: process 0 of this node verifies its copy", describe(rank_)));
  if (!gathers()) return kExitOk;
  put_receipt(settings_.gather, rank_.rank, seals,
              [&](const WriteText& write) { write_idle_receipt(rank_, seals.key, write); });
  return rank_.rank == 0 ? conclude({}, seals, output) : kExitOk;
}

int NodeRun::hand_in(const VerifyReport& report, const VerifyOptions& options, const ReceiptSeals& seals,
                     const std::string& line, const Output& output) const {
  put_receipt(settings_.gather, rank_.rank, seals,
              [&](const WriteText& write) { write_receipt(report, options, seals.key, write, &rank_); });
  output.line(escape_for_terminal(fmt::format("{}: {}", describe(rank_), line)));
  return rank_.rank == 0 ? conclude(report.list, seals, output) : kExitOk;
}

int NodeRun::conclude(const std::string& list, const ReceiptSeals& seals, const Output& output) const {
  SignatureMethods signers;
  if (seals.signer) signers.all.push_back({{}, signature::method_of(*seals.signer)});
  const MergedReport merged = gather({.folder = settings_.gather,
                                      .rank = rank_,
                                      .mode = settings_.share ? NodeMode::share : NodeMode::copy,
                                      .list = list,
                                      .seconds = timeout_,
                                      .key = seals.key,
                                      .signers = seals.signer ? &signers : nullptr});
  render_merged(merged, output);
  output.json(merged_json(merged));
  return exit_code_of(merged);
}

int run_merge(const std::vector<std::string>& receipts, const NodeSettings& settings,
              const ReceiptTrust& trust, const Output& output) {
  if (settings.given() || !settings.gather.empty() || !settings.rank.rank.empty() ||
      !settings.rank.launcher.empty())
    throw Error::usage("--merge reads receipts, and verifies nothing")
        .remedy("leave out what is for ranks that do");
  if (trust.signers && trust.signers->bundle)
    throw Error::usage("--signature is of one receipt, and several are read")
        .remedy("leave it out: the signature of each is RECEIPT.sig beside it");
  std::optional<SignatureMethods> signers;
  if (trust.signers) signers = read_methods(*trust.signers, plain_path(trust.model));
  std::vector<NodeReceipt> read;
  std::vector<NodeFault> faults;
  for (const std::string& path : receipts) {
    try {
      read.push_back(read_node_receipt(path, trust.key, signers ? &*signers : nullptr));
    } catch (const Error& error) {
      faults.push_back({.kind = "damaged",
                        .rank = {},
                        .node = path,
                        .file = {},
                        .message = "this receipt " + error.message(),
                        .ranges = {}});
    }
  }
  const MergedReport merged =
      merge_receipts(read, {.run = settings.rank.run, .list = {}, .mode = {}, .ranks = 0}, std::move(faults));
  render_merged(merged, output);
  output.json(merged_json(merged));
  return exit_code_of(merged);
}

}  // namespace assay
