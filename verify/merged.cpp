#include "verify/merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/stream_digest.h"
#include "core/system/launcher.h"
#include "verify/deal.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::size_t kFilesNamed = 20;  // of one rank

bool is_bad_status(const std::string& status) {
  return status == "failed" || status == "missing" || status == "unreadable";
}

std::string said_of(const NodeEntry& entry) {
  std::string text = entry.status == "failed"    ? "FAILED"
                     : entry.status == "missing" ? "MISSING"
                                                 : "unreadable";
  if (!entry.diagnosis.empty()) text += ": " + entry.diagnosis;
  return text;
}

std::optional<Digest> parse_spelled(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  for (const DigestKind kind : {DigestKind::sha256, DigestKind::git_sha1, DigestKind::blake3,
                                DigestKind::blake2b, DigestKind::shards, DigestKind::xet}) {
    if (text.substr(0, colon) == Digest{kind, {}}.kind_name())
      return Digest::parse(kind, text.substr(colon + 1));
  }
  return std::nullopt;
}

class Merge {
 public:
  Merge(const std::vector<NodeReceipt>& receipts, const MergeDemand& demand, std::vector<NodeFault> faults)
      : demand_(demand) {
    out_.faults = std::move(faults);
    settle_demand(receipts);
    for (const NodeReceipt& receipt : receipts) admit(receipt);
  }

  MergedReport run() {
    name_absent();
    for (const NodeReceipt* receipt : good_) {
      if (receipt->mode == NodeMode::idle) {
        ++out_.idle;
        continue;
      }
      ++out_.working;
      judge_own(*receipt);
    }
    if (out_.mode == NodeMode::share)
      check_cover();
    else
      compare_copies();
    count_weights();
    return std::move(out_);
  }

 private:
  void fault(std::string kind, const NodeReceipt& receipt, std::string message, std::string file = {},
             std::vector<ByteRange> ranges = {}) {
    out_.faults.push_back({.kind = std::move(kind),
                           .rank = receipt.ranked ? std::optional(receipt.rank) : std::nullopt,
                           .node = receipt.ranked ? receipt.node : receipt.file,
                           .file = std::move(file),
                           .message = std::move(message),
                           .ranges = std::move(ranges)});
  }

  // Where nobody says what the receipts should be of: what most of them say.
  void settle_demand(const std::vector<NodeReceipt>& receipts) {
    std::map<std::string, std::size_t> runs, lists;
    std::map<std::uint32_t, std::size_t> ranks;
    std::size_t shares = 0, copies = 0;
    for (const NodeReceipt& receipt : receipts) {
      ++runs[receipt.run];
      ++ranks[receipt.ranks];
      if (receipt.mode == NodeMode::idle) continue;
      ++lists[receipt.list];
      ++(receipt.mode == NodeMode::share ? shares : copies);
    }
    const auto most = [](const auto& counts) {
      return std::max_element(counts.begin(), counts.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; })
          ->first;
    };
    if (demand_.run.empty() && !runs.empty()) demand_.run = most(runs);
    if (demand_.list.empty() && !lists.empty()) demand_.list = most(lists);
    if (demand_.ranks == 0 && !ranks.empty()) demand_.ranks = most(ranks);
    out_.mode = demand_.mode.value_or(shares > copies ? NodeMode::share : NodeMode::copy);
    out_.run = demand_.run;
    out_.list = demand_.list;
    out_.ranks = demand_.ranks;
    out_.complete_known = demand_.ranks > 0;
  }

  void admit(const NodeReceipt& receipt) {
    if (receipt.run != demand_.run) {
      return fault("stale", receipt,
                   receipt.run.empty()
                       ? "its receipt names no run"
                       : fmt::format("its receipt is of run '{}', not of '{}'", receipt.run, demand_.run));
    }
    if (receipt.ranks != demand_.ranks)
      return fault("foreign", receipt,
                   fmt::format("its receipt is of {} ranks, not of {}", receipt.ranks, demand_.ranks));
    if (receipt.mode != NodeMode::idle) {
      if (receipt.mode != out_.mode)
        return fault("foreign", receipt,
                     "its receipt is of a part where others are of whole copies, or the other way round");
      if (receipt.list != demand_.list)
        return fault(
            "foreign", receipt,
            "what it verified was compared with another list of files: another model, revision or manifest");
    }
    if (receipt.ranked && !seen_.insert(receipt.rank).second)
      return fault("foreign", receipt, "a second receipt of this rank");
    good_.push_back(&receipt);
  }

  void name_absent() {
    for (const NodeFault& known : out_.faults) {
      if (known.rank) seen_.insert(*known.rank);
    }
    for (std::uint32_t rank = 0; rank < demand_.ranks; ++rank) {
      if (!seen_.contains(rank))
        out_.faults.push_back({.kind = "missing",
                               .rank = rank,
                               .node = {},
                               .file = {},
                               .message = "gave no receipt",
                               .ranges = {}});
    }
  }

  void judge_own(const NodeReceipt& receipt) {
    std::size_t named = 0, bad = 0;
    for (const auto& [name, entry] : receipt.files) {
      if (!is_bad_status(entry.status)) continue;
      if (++bad > kFilesNamed) continue;
      ++named;
      told_.insert({&receipt, name});
      fault("file", receipt, said_of(entry), name, entry.damaged);
    }
    if (bad > named) fault("file", receipt, fmt::format("{} more files of it are bad", bad - named));
    for (const std::string& error : receipt.errors) fault("copy", receipt, error);
    const bool interrupted = receipt.verdict == "interrupted";
    if (interrupted) fault("copy", receipt, "was interrupted");
    if (receipt.verdict == "failed" && bad == 0 && receipt.errors.empty())
      fault("copy", receipt, "did not end well");
    const bool unread = std::any_of(receipt.files.begin(), receipt.files.end(), [](const auto& file) {
      return file.second.status == "unchecked" && !file.second.expected.empty();
    });
    if (unread && !interrupted && receipt.verdict != "failed")
      fault("copy", receipt, "left out files that have a digest to be compared with");
  }

  // The list worked out from what the parts say of each file has to be the one that they name; and of files that were cut
  // the parts have to be all of them, none twice.
  void check_cover() {
    std::map<std::string, std::vector<std::pair<const NodeReceipt*, const NodeEntry*>>> files;
    for (const NodeReceipt* receipt : good_) {
      for (const auto& [name, entry] : receipt->files) {
        if (!entry.expected.empty()) files[name].push_back({receipt, &entry});
      }
    }
    ListDigest list;
    for (const auto& [name, parts] : files) {
      const NodeEntry& first = *parts[0].second;
      const auto digest = parse_spelled(first.expected);
      if (!digest) return fault("foreign", *parts[0].first, "what was expected is no digest", name);
      list.add(name, *digest, first.expected_size);
      check_parts(name, parts);
    }
    if (list.hex() == demand_.list) return;
    const bool explained = std::any_of(out_.faults.begin(), out_.faults.end(), [](const NodeFault& f) {
      return f.rank.has_value() && f.kind != "file" && f.kind != "copy";
    });
    if (!explained)
      out_.faults.push_back({.kind = "uncovered",
                             .rank = {},
                             .node = {},
                             .file = {},
                             .message = "the receipts together do not cover the list of files that they name",
                             .ranges = {}});
  }

  void check_parts(const std::string& name,
                   const std::vector<std::pair<const NodeReceipt*, const NodeEntry*>>& parts) {
    std::vector<ByteRange> spans;
    for (const auto& [receipt, entry] : parts) {
      const NodeEntry& first = *parts[0].second;
      if (entry->expected != first.expected || entry->expected_size != first.expected_size)
        return fault("foreign", *receipt, "expected something else of it than others did", name);
      if (entry->parts.empty() && parts.size() > 1)
        return fault("foreign", *receipt, "read what another rank read as well", name);
      spans.insert(spans.end(), entry->parts.begin(), entry->parts.end());
    }
    if (spans.empty()) return;
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::uint64_t covered = 0;
    for (const ByteRange& span : spans) {
      if (span.begin != covered) break;
      covered = span.end;
    }
    const std::uint64_t size = parts[0].second->expected_size.value_or(UINT64_MAX);
    if (covered == size) return;
    const bool absent = std::any_of(out_.faults.begin(), out_.faults.end(),
                                    [](const NodeFault& f) { return f.rank && f.kind != "file"; });
    if (!absent)
      out_.faults.push_back({.kind = "uncovered",
                             .rank = {},
                             .node = {},
                             .file = name,
                             .message = "was not read as a whole",
                             .ranges = {{covered, size}}});
  }

  static std::string root_of(const NodeReceipt& receipt) {
    std::string text;
    for (const auto& [name, entry] : receipt.files) {
      const std::string digest =
          is_bad_status(entry.status) && entry.digest.empty() ? entry.status : entry.digest;
      text += fmt::format("{}\n{}\n", name, digest);
    }
    return digest_of(DigestKind::sha256, std::as_bytes(std::span(text))).hex();
  }

  void compare_copies() {
    std::map<std::string, std::vector<const NodeReceipt*>> groups;
    for (const NodeReceipt* receipt : good_) {
      if (receipt->mode == NodeMode::copy) groups[root_of(*receipt)].push_back(receipt);
    }
    std::vector<std::pair<std::string, std::vector<const NodeReceipt*>>> sorted(groups.begin(), groups.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    for (const auto& [root, members] : sorted) {
      NodeRoot& entry = out_.roots.emplace_back();
      entry.digest = "sha256:" + root;
      for (const NodeReceipt* receipt : members) entry.who.push_back(whose(*receipt));
    }
    if (sorted.size() < 2) return;
    out_.majority = sorted[0].second.size() > sorted[1].second.size();
    const std::size_t before = out_.faults.size();
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      for (const NodeReceipt* odd : sorted[i].second) name_differences(*odd, *sorted[0].second[0]);
    }
    const bool told = out_.faults.size() > before || !out_.faults.empty();
    if (!told)
      out_.faults.push_back({.kind = "unlike",
                             .rank = {},
                             .node = {},
                             .file = {},
                             .message = "the copies are not alike",
                             .ranges = {}});
  }

  void name_differences(const NodeReceipt& odd, const NodeReceipt& usual) {
    const std::string_view than = out_.majority ? "most copies" : "others, and none is in the majority";
    std::size_t count = 0;
    const auto differs = [&](const std::string& name, std::string message, std::vector<ByteRange> ranges) {
      if (told_.contains({&odd, name}) || told_.contains({&usual, name}) || ++count > kFilesNamed) return;
      fault("differs", odd, std::move(message), name, std::move(ranges));
    };
    for (const auto& [name, entry] : odd.files) {
      const auto it = usual.files.find(name);
      if (it == usual.files.end())
        differs(name, fmt::format("is here, and not in {}", than), {});
      else if (it->second.digest != entry.digest)
        differs(name, fmt::format("is not what it is in {}", than), differing(odd, entry, usual, it->second));
    }
    for (const auto& [name, entry] : usual.files) {
      if (!odd.files.contains(name)) differs(name, fmt::format("is not here, and is in {}", than), {});
    }
    if (count > kFilesNamed)
      fault("differs", odd, fmt::format("{} more files of it differ", count - kFilesNamed));
  }

  static std::vector<ByteRange> differing(const NodeReceipt& odd, const NodeEntry& a,
                                          const NodeReceipt& usual, const NodeEntry& b) {
    const bool comparable = odd.piece_bytes > 0 && odd.piece_bytes == usual.piece_bytes && !a.pieces.empty();
    const bool true_to_size = !b.pieces.empty() && b.size / odd.piece_bytes <= b.pieces.size();
    if (!comparable || !true_to_size) return {};
    return damaged_ranges(a.pieces, b.pieces, odd.piece_bytes, b.size);
  }

  // Of one copy: of all parts together, or, of copies, of the first.
  void count_weights() {
    std::set<std::string> counted;
    for (const NodeReceipt* receipt : good_) {
      for (const auto& [name, entry] : receipt->files) {
        const bool compared = entry.status == "ok";
        out_.bytes_checked = out_.bytes_checked || compared;
        if (entry.status == "missing" || entry.status == "unreadable" || !counted.insert(name).second)
          continue;
        ++out_.files;
        out_.bytes += entry.size;
        if (!may_hold_weights(name)) continue;
        ++out_.weights.files;
        out_.weights.bytes += entry.size;
        if (!entry.expected.empty()) ++out_.weights.vouched_files, out_.weights.vouched_bytes += entry.size;
        if (compared) ++out_.weights.compared_files;
      }
      if (out_.mode == NodeMode::copy && receipt->mode == NodeMode::copy) break;
    }
  }

  MergeDemand demand_;
  MergedReport out_;
  std::vector<const NodeReceipt*> good_;
  std::set<std::uint32_t> seen_;
  std::set<std::pair<const NodeReceipt*, std::string>> told_;
};

}  // namespace

Verdict MergedReport::verdict() const {
  if (!faults.empty() || working == 0) return Verdict::failed;
  if (!bytes_checked || (weights.files > 0 && weights.compared_files == 0)) return Verdict::well_formed;
  return weights.all_compared() ? Verdict::ok : Verdict::partial;
}

std::string whose(const NodeReceipt& receipt) {
  return receipt.ranked ? fmt::format("rank {} on {}", receipt.rank, receipt.node) : receipt.file;
}

MergedReport merge_receipts(const std::vector<NodeReceipt>& receipts, const MergeDemand& demand,
                            std::vector<NodeFault> faults) {
  MergedReport report = Merge(receipts, demand, std::move(faults)).run();
  std::stable_sort(report.faults.begin(), report.faults.end(), [](const NodeFault& a, const NodeFault& b) {
    return a.rank.value_or(kMostRanks) < b.rank.value_or(kMostRanks);
  });
  return report;
}

}  // namespace assay
