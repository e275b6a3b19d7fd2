// Shard numbering in file names: the hub's own pattern has five digits twice, DeepSeek's total has six; both
// are read.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/formats/shard_index.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct Member {
  std::uint64_t number = 0;
  std::string file_name;
};

Finding finding(std::string_view code, std::string message, std::string file) {
  return {.severity = Severity::error,
          .code = std::string(code),
          .message = std::move(message),
          .file = std::move(file),
          .tensor = {},
          .offset = {},
          .remedy = {}};
}

// The name of shard `number`, written as its relative is: model-00001-of-000163 -> model-00162-of-000163.
std::string sibling(const std::string& file_name, std::uint64_t number) {
  const std::size_t of = file_name.rfind("-of-");
  const std::size_t dash = file_name.rfind('-', of - 1);
  const std::size_t width = of - dash - 1;
  return fmt::format("{}{:0{}}{}", file_name.substr(0, dash + 1), number, width, file_name.substr(of));
}

class Family {
 public:
  Family(std::uint64_t count, std::vector<Member> members) : count_(count), members_(std::move(members)) {
    std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
      return std::tie(a.number, a.file_name) < std::tie(b.number, b.file_name);
    });
  }

  void check(Findings& findings) const {
    std::uint64_t expected = 1;
    for (const Member& member : members_) {
      if (member.number == 0 || member.number > count_) {
        findings.push_back(finding("index.number_out_of_range",
                                   fmt::format("shard {} of {} cannot be", member.number, count_),
                                   member.file_name));
      } else if (member.number < expected) {
        findings.push_back(finding(
            "index.number_twice",
            fmt::format("shard {} of {} is here under two names", member.number, count_), member.file_name));
      } else {
        report_gap(expected, member.number, findings);
        expected = member.number + 1;
      }
    }
    if (expected <= count_) report_gap(expected, count_ + 1, findings);
  }

 private:
  void report_gap(std::uint64_t first, std::uint64_t end, Findings& findings) const {
    if (first >= end) return;
    const std::string name = sibling(members_.front().file_name, first);
    const std::string message = end - first == 1 ? fmt::format("shard {} of {} is missing", first, count_)
                                                 : fmt::format("shards {} to {} of {} are missing ({} files)",
                                                               first, end - 1, count_, end - first);
    findings.push_back(finding("index.number_missing", message, name));
    findings.back().remedy = "download what is missing";
  }

  std::uint64_t count_;
  std::vector<Member> members_;
};

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
  const std::size_t of = file_name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t dash = file_name.rfind('-', of - 1);
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const std::size_t count_begin = of + 4;
  const std::size_t count_end = std::min(file_name.find_first_not_of(kDigits, count_begin), file_name.size());
  const std::string_view extension = file_name.substr(count_end);
  if (!extension.empty() && extension.front() != '.') return std::nullopt;
  const auto number = parse_u64(file_name.substr(dash + 1, of - dash - 1));
  const auto count = parse_u64(file_name.substr(count_begin, count_end - count_begin));
  // A count without end (and count + 1 that wraps) names no real family of files.
  if (!number || !count || *count >= UINT32_MAX) return std::nullopt;
  return ShardName{std::string(file_name.substr(0, dash)), *number, *count, std::string(extension)};
}

Findings check_shard_numbering(std::span<const std::string> file_names) {
  using Stem = std::pair<std::string, std::string>;  // and extension
  std::map<Stem, std::map<std::uint64_t, std::vector<Member>>> stems;
  for (const std::string& file_name : file_names) {
    const auto parsed = parse_shard_name(file_name);
    if (parsed)
      stems[{parsed->stem, parsed->extension}][parsed->count].push_back({parsed->number, file_name});
  }
  Findings findings;
  for (auto& [stem, families] : stems) {
    if (families.size() > 1) {
      std::string counts;
      for (const auto& [count, members] : families)
        counts += fmt::format("{}{}", counts.empty() ? "" : ", ", count);
      findings.push_back(finding("index.counts_differ",
                                 fmt::format("shards of different sets lie together: of {}", counts),
                                 families.begin()->second.front().file_name));
      findings.back().remedy = "keep the set that belongs to the index and move the other away";
    }
    for (auto& [count, members] : families) Family(count, std::move(members)).check(findings);
  }
  return findings;
}

}  // namespace assay
