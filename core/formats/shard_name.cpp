// Shard numbering in file names: the hub's own pattern has five digits twice, DeepSeek's total has six,
// BLOOM's number follows an underscore (pytorch_model_00001-of-00072.bin); all are read.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/formats/shard_index.h"
#include "core/formats/shard_numbering.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct Member {
  std::uint64_t number = 0;
  std::string file_name;
};

// Where the number begins: after the last '-' or '_' before "-of-".
std::size_t number_begin(std::string_view file_name, std::size_t of) {
  const std::size_t separator = file_name.find_last_of("-_", of - 1);
  return separator == std::string_view::npos ? 0 : separator + 1;
}

// The name of shard `number`, written as its relative is: model-00001-of-000163 -> model-00162-of-000163.
std::string sibling(const std::string& file_name, std::uint64_t number) {
  const std::size_t of = file_name.rfind("-of-");
  const std::size_t begin = number_begin(file_name, of);
  return fmt::format("{}{:0{}}{}", file_name.substr(0, begin), number, of - begin, file_name.substr(of));
}

// The files of one stem, extension and count.
class Family {
 public:
  // `indexed`: an index names at least one of them, so that its list, not their numbers, says what belongs
  // to the model.
  Family(std::uint64_t count, std::vector<Member> members, bool indexed)
      : count_(count), members_(std::move(members)), indexed_(indexed) {
    std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
      return std::tie(a.number, a.file_name) < std::tie(b.number, b.file_name);
    });
    first_ = counts_from_zero() ? 0 : 1;
  }

  void check(Findings& findings) const {
    if (first_ == 0) {
      tell(findings, Severity::note, "index.number_from_zero",
           fmt::format("shards are numbered from 0 to {}", count_ - 1), members_.front().file_name);
    }
    std::uint64_t expected = first_;
    const std::uint64_t end = first_ + count_;
    for (const Member& member : members_) {
      if (member.number < first_ || member.number >= end) {
        tell(findings, fault(), "index.number_out_of_range",
             fmt::format("shard {} of {} {}", member.number, count_,
                         indexed_ ? "is no number of such a set; loaders go by the index" : "cannot be"),
             member.file_name);
      } else if (member.number < expected) {
        tell(findings, fault(), "index.number_twice",
             fmt::format("shard {} of {} is here under two names", member.number, count_), member.file_name);
      } else {
        report_gap(expected, member.number, findings);
        expected = member.number + 1;
      }
    }
    report_gap(expected, end, findings);
  }

 private:
  // Some tools count from 0. GGUF's loader makes the names itself, and counts from 1.
  bool counts_from_zero() const {
    return count_ > 0 && members_.front().number == 0 && members_.back().number < count_ &&
           !members_.front().file_name.ends_with(".gguf");
  }
  Severity fault() const { return indexed_ ? Severity::note : Severity::error; }

  void report_gap(std::uint64_t first, std::uint64_t end, Findings& findings) const {
    if (first >= end) return;
    std::string message = end - first == 1 ? fmt::format("shard {} of {} is missing", first, count_)
                                           : fmt::format("shards {} to {} of {} are missing ({} files)",
                                                         first, end - 1, count_, end - first);
    if (indexed_) message += "; the index does not name it either";
    tell(findings, fault(), "index.number_missing", std::move(message),
         sibling(members_.front().file_name, first));
    if (!indexed_) findings.back().remedy = "download what is missing";
  }

  static void tell(Findings& findings, Severity severity, std::string code, std::string message,
                   std::string file) {
    findings.push_back({.severity = severity,
                        .code = std::move(code),
                        .message = std::move(message),
                        .file = std::move(file)});
  }

  std::uint64_t count_;
  std::vector<Member> members_;
  bool indexed_;
  std::uint64_t first_ = 1;  // the lowest number of the set
};

using Stem = std::pair<std::string, std::string>;  // and extension

struct Set {
  std::map<std::uint64_t, std::vector<Member>> families;  // by count
  bool indexed = false;
};

// A shard that the index names and that is not here is the index check's to tell: to the numbering it counts
// as here.
std::map<Stem, Set> sets_of(std::span<const std::string> file_names, std::span<const std::string> indexed) {
  std::map<Stem, Set> sets;
  const std::set<std::string_view> named(indexed.begin(), indexed.end());
  std::set<std::string_view> all(file_names.begin(), file_names.end());
  all.insert(named.begin(), named.end());
  for (const std::string_view file_name : all) {
    const auto parsed = parse_shard_name(file_name);
    if (!parsed) continue;
    Set& set = sets[{parsed->stem, parsed->extension}];
    set.families[parsed->count].push_back({parsed->number, std::string(file_name)});
    set.indexed = set.indexed || named.contains(file_name);
  }
  return sets;
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
  const std::size_t of = file_name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t begin = number_begin(file_name, of);
  if (begin < 2) return std::nullopt;  // no separator, or nothing before it
  const std::size_t count_begin = of + 4;
  const std::size_t count_end = std::min(file_name.find_first_not_of(kDigits, count_begin), file_name.size());
  const std::string_view extension = file_name.substr(count_end);
  if (!extension.empty() && extension.front() != '.') return std::nullopt;
  const auto number = parse_u64(file_name.substr(begin, of - begin));
  const auto count = parse_u64(file_name.substr(count_begin, count_end - count_begin));
  // A count without end (and count + 1 that wraps) names no real family of files.
  if (!number || !count || *count >= UINT32_MAX) return std::nullopt;
  return ShardName{std::string(file_name.substr(0, begin - 1)), *number, *count, std::string(extension)};
}

Findings check_shard_numbering(std::span<const std::string> file_names) {
  return check_shard_numbering(file_names, {});
}

Findings check_shard_numbering(std::span<const std::string> file_names,
                               std::span<const std::string> indexed) {
  Findings findings;
  for (auto& [stem, set] : sets_of(file_names, indexed)) {
    if (set.families.size() > 1) {
      std::string counts;
      for (const auto& [count, members] : set.families)
        counts += fmt::format("{}{}", counts.empty() ? "" : ", ", count);
      findings.push_back({.severity = set.indexed ? Severity::note : Severity::error,
                          .code = "index.counts_differ",
                          .message = fmt::format("shards of different sets lie together: of {}", counts),
                          .file = set.families.begin()->second.front().file_name,
                          .remedy = "keep the set that belongs to the index and move the other away"});
    }
    for (auto& [count, members] : set.families)
      Family(count, std::move(members), set.indexed).check(findings);
  }
  return findings;
}

}  // namespace assay
