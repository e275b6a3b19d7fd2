#include "verify/verdict_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/json.h"

namespace assay {
namespace {

constexpr std::size_t kPathsShown = 3;
constexpr std::string_view kUnreadable = "unreadable";

std::string_view shouted(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "OK";
    case Verdict::partial: return "PARTLY CHECKED";
    case Verdict::well_formed: return "WELL FORMED";
    case Verdict::interrupted: return "INTERRUPTED";
    case Verdict::failed: break;
  }
  return "FAILED";
}

// In words: "well_formed" is for scripts.
std::string spoken(std::string_view word) {
  std::string text(word);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

void VerdictSet::add(const std::string& path, const VerifyReport& report) {
  const Verdict verdict = verdict_of(report);
  members_.push_back({path, std::string(verdict_name(verdict)), verdict});
  const WeightShare share = weight_share(report);
  share_.files += share.files;
  share_.bytes += share.bytes;
  share_.vouched_files += share.vouched_files;
  share_.vouched_bytes += share.vouched_bytes;
  share_.compared_files += share.compared_files;
}

void VerdictSet::add_unreadable(const std::string& path) {
  members_.push_back({path, std::string(kUnreadable), Verdict::failed});
}

Verdict VerdictSet::verdict() const {
  const auto count = [&](Verdict verdict) {
    return std::count_if(members_.begin(), members_.end(),
                         [&](const Member& member) { return member.verdict == verdict; });
  };
  if (count(Verdict::interrupted) > 0) return Verdict::interrupted;
  if (count(Verdict::failed) > 0) return Verdict::failed;
  const auto all = static_cast<std::ptrdiff_t>(members_.size());
  if (count(Verdict::ok) == all) return Verdict::ok;
  return count(Verdict::well_formed) == all ? Verdict::well_formed : Verdict::partial;
}

std::string VerdictSet::line() const {
  std::map<std::string, std::vector<std::string>> by_word;
  for (const Member& member : members_) by_word[member.word].push_back(member.path);
  std::vector<std::string> parts;
  for (const char* word : {"failed", "unreadable", "interrupted", "well_formed", "partial", "ok"}) {
    const auto it = by_word.find(word);
    if (it == by_word.end()) continue;
    std::vector<std::string>& paths = it->second;
    std::string part = fmt::format("{} {}", paths.size(), spoken(word));
    const std::size_t shown = std::min(paths.size(), kPathsShown);
    if (it->first != "ok") {
      part += fmt::format(" ({}{})",
                          fmt::join(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                          shown < paths.size() ? ", …" : "");
    }
    parts.push_back(std::move(part));
  }
  return fmt::format("{}: {} paths: {}; {}", shouted(verdict()), members_.size(), fmt::join(parts, ", "),
                     share_sentence(share_));
}

Json set_json(const VerdictSet& set, Json reports) {
  return {{"schema", "assay.verify-set/1"},
          {"tool", "assay " ASSAY_VERSION},
          {"verdict", verdict_name(set.verdict())},
          {"verdict_line", set.line()},
          {"reports", std::move(reports)}};
}

}  // namespace assay
