#include "verify/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "verify/receipt.h"

namespace assay {
namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kFirstPause = std::chrono::milliseconds(20), kLongestPause = std::chrono::milliseconds(500);
constexpr std::uint64_t kLongestBegun = 4096;

struct Begun {
  std::string run, node;
};

std::optional<Begun> read_begun(const fs::path& file) {
  try {
    const ParsedJson json =
        parse_json(read_untrusted(file, kLongestBegun), file, {.max_bytes = kLongestBegun, .max_depth = 4});
    return Begun{json_string(json.at("run"), "run", file), json_string(json.at("node"), "node", file)};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

class Gathering {
 public:
  explicit Gathering(const GatherRequest& request) : request_(request) {
    for (std::uint32_t rank = 0; rank < request.rank.ranks; ++rank) waited_for_.insert(rank);
  }

  MergedReport run() {
    const auto deadline = Steady::now() + std::chrono::seconds(request_.seconds);
    auto pause = std::chrono::duration_cast<Steady::duration>(kFirstPause);
    while (true) {
      look();
      if (waited_for_.empty() || Steady::now() >= deadline || interrupted()) break;
      std::this_thread::sleep_for(
          std::min(pause, std::max(deadline - Steady::now(), Steady::duration::zero())));
      pause = std::min(pause * 2, std::chrono::duration_cast<Steady::duration>(kLongestPause));
    }
    std::vector<NodeFault> faults;
    for (const std::uint32_t rank : waited_for_) faults.push_back(why_absent(rank));
    return merge_receipts(receipts_,
                          {.run = request_.rank.run,
                           .list = request_.list,
                           .mode = request_.mode,
                           .ranks = request_.rank.ranks},
                          std::move(faults));
  }

 private:
  using Written = std::pair<fs::file_time_type, fs::file_time_type>;

  // Listing the folder is what makes a network file system look again.
  void look() {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(request_.folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      std::string name = it->path().filename().string();
      if (name.starts_with("rank-") && name.ends_with(".json")) names.insert(std::move(name));
    }
    std::erase_if(waited_for_,
                  [&](std::uint32_t rank) { return names.contains(gathered_name(rank)) && take(rank); });
  }

  // What is stale or damaged may still be replaced by this run's: it is kept for the end.
  bool take(std::uint32_t rank) {
    const fs::path file = request_.folder / gathered_name(rank);
    std::error_code error;
    const Written written = when_written(file, error);
    const auto seen = refused_.find(rank);
    if (!error && seen != refused_.end() && seen->second.written == written) return false;
    try {
      NodeReceipt receipt = read_node_receipt(file, request_.key, request_.signers);
      if (receipt.run == request_.rank.run && receipt.ranked && receipt.rank == rank) {
        receipts_.push_back(std::move(receipt));
        return true;
      }
      const bool other_rank = !receipt.ranked || receipt.rank != rank;
      refused_[rank] = {
          written, other_rank && receipt.run == request_.rank.run ? "foreign" : "stale", receipt.node,
          receipt.run != request_.rank.run
              ? fmt::format("its receipt is stale: of run '{}', not of '{}'", receipt.run, request_.rank.run)
              : std::string("under its name lies a receipt of another rank")};
    } catch (const Error& problem) {
      refused_[rank] = {written, "damaged", {}, fmt::format("its receipt {}", problem.message())};
    }
    return false;
  }

  // Its own signature is as much of it as its text.
  Written when_written(const fs::path& file, std::error_code& error) const {
    std::error_code ignored;
    return {fs::last_write_time(file, error), request_.signers == nullptr
                                                  ? fs::file_time_type()
                                                  : fs::last_write_time(signature_of_receipt(file), ignored)};
  }

  NodeFault why_absent(std::uint32_t rank) const {
    NodeFault fault{.kind = "missing", .rank = rank, .node = {}, .file = {}, .message = {}, .ranges = {}};
    const auto begun = read_begun(request_.folder / begun_name(rank));
    const bool in_this_run = begun && begun->run == request_.rank.run;
    if (in_this_run) fault.node = begun->node;
    if (const auto refused = refused_.find(rank); refused != refused_.end()) {
      fault.kind = refused->second.kind;
      fault.message = refused->second.why;
      if (fault.node.empty()) fault.node = refused->second.node;
      if (fault.kind == "stale")
        fault.message +=
            in_this_run ? "; in this run it began and did not end" : "; in this run it never began";
      return fault;
    }
    const std::string waited = human_duration(static_cast<double>(request_.seconds));
    fault.kind = in_this_run ? "killed" : "missing";
    fault.message =
        in_this_run ? fmt::format("began, and gave no receipt within {}: killed, or still at work", waited)
                    : fmt::format("never began: no sign of it within {}", waited);
    return fault;
  }

  struct Refused {
    Written written;
    std::string kind, node, why;
  };
  const GatherRequest& request_;
  std::set<std::uint32_t> waited_for_;
  std::map<std::uint32_t, Refused> refused_;
  std::vector<NodeReceipt> receipts_;
};

}  // namespace

void tell_begun(const fs::path& folder, const LaunchedRank& rank) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error::io("cannot be made: " + error.message())
        .in(folder)
        .remedy("name a folder that every rank can write to");
  write_whole(
      folder / begun_name(rank.rank),
      dump_json(
          {{"schema", "assay.rank-begun/1"}, {"run", rank.run}, {"node", rank.node}, {"rank", rank.rank}}) +
          "\n");
}

MergedReport gather(const GatherRequest& request) {
  return Gathering(request).run();
}

}  // namespace assay
