#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/json.h"
#include "core/system/text.h"
#include "verify/merged.h"
#include "verify/render.h"

namespace assay {
namespace {

constexpr std::size_t kRangesShown = 4, kRanksShown = 4;

std::string_view shouted_verdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "OK";
    case Verdict::partial: return "PARTLY CHECKED";
    case Verdict::well_formed: return "WELL FORMED";
    case Verdict::interrupted: return "INTERRUPTED";
    case Verdict::failed: break;
  }
  return "FAILED";
}

std::string where_of(const NodeFault& fault) {
  if (!fault.rank) return fault.node;
  return fmt::format("rank {}{}", *fault.rank, fault.node.empty() ? "" : " on " + fault.node);
}

std::string ranges_text(const std::vector<ByteRange>& ranges) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranges.size(), kRangesShown); ++i)
    text += (i == 0 ? "" : ", ") + http_range(ranges[i]);
  if (ranges.size() > kRangesShown) text += fmt::format(" and {} more ranges", ranges.size() - kRangesShown);
  return text;
}

std::string fault_line(const NodeFault& fault) {
  std::string line;
  for (const std::string& part : {where_of(fault), fault.file}) {
    if (!part.empty()) line += part + ": ";
  }
  line += fault.message;
  if (!fault.ranges.empty()) line += fmt::format("; bytes {}", ranges_text(fault.ranges));
  return escape_for_terminal(line);
}

std::string first_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kRanksShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kRanksShown ? text + ", …" : text;
}

std::string_view mode_word(NodeMode mode) {
  return mode == NodeMode::share ? "share" : "every-node";
}

}  // namespace

std::string merged_line(const MergedReport& report) {
  std::map<std::uint32_t, bool> bad;
  for (const NodeFault& fault : report.faults) {
    if (fault.rank) bad[*fault.rank] = true;
  }
  const std::string of = report.mode == NodeMode::share ? "parts of one copy" : "copies";
  std::string line = fmt::format("{}: {} {}", shouted_verdict(report.verdict()), report.working, of);
  if (report.complete_known) line += fmt::format(" from {} ranks", report.ranks);
  if (report.idle > 0) line += fmt::format(", {} of which had nothing to do", report.idle);
  if (!bad.empty()) {
    line += fmt::format("; {} of them wrong: ", bad.size());
    std::vector<std::string> ranks;
    for (const auto& [rank, unused] : bad) ranks.push_back(fmt::to_string(rank));
    line += "rank " + first_names(ranks);
  }
  if (!report.complete_known) line += "; how many there should be nobody says";
  line += fmt::format("; {} files, {}, {}", report.files, human_bytes(report.bytes),
                      share_sentence(report.weights));
  if (!report.run.empty()) line += fmt::format("; run {}", report.run);
  return escape_for_terminal(line);
}

void render_merged(const MergedReport& report, const Output& output) {
  for (const NodeFault& fault : report.faults) output.paint(fault_line(fault), Style::red);
  if (report.roots.size() > 1) {
    for (std::size_t i = 0; i < report.roots.size(); ++i) {
      const NodeRoot& root = report.roots[i];
      const std::string_view word = i > 0 ? "odd" : report.majority ? "majority" : "no majority";
      output.line(escape_for_terminal(
          fmt::format("root {}  {}: {} ({})", root.digest, root.who.size(), first_names(root.who), word)));
    }
  } else if (report.roots.size() == 1) {
    output.line(
        fmt::format("root {}  all {} copies are alike", report.roots[0].digest, report.roots[0].who.size()));
  }
  output.paint(merged_line(report), report.verdict() == Verdict::failed ? Style::red : Style::green);
}

Json merged_json(const MergedReport& report) {
  Json json = {{"schema", "assay.verify-nodes/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", verdict_name(report.verdict())},
               {"verdict_line", merged_line(report)},
               {"mode", mode_word(report.mode)},
               {"run", report.run},
               {"list", report.list},
               {"ranks", report.ranks},
               {"working", report.working},
               {"idle", report.idle},
               {"majority", report.majority},
               {"roots", Json::array()},
               {"faults", Json::array()}};
  for (const NodeRoot& root : report.roots)
    json["roots"].push_back({{"root", root.digest}, {"who", root.who}});
  for (const NodeFault& fault : report.faults) {
    Json& entry = json["faults"].emplace_back();
    entry = {{"kind", fault.kind},       {"rank", fault.rank ? Json(*fault.rank) : Json()},
             {"node", fault.node},       {"file", fault.file},
             {"message", fault.message}, {"ranges", Json::array()}};
    for (const ByteRange& range : fault.ranges) entry["ranges"].push_back(http_range(range));
  }
  json["summary"] = {
      {"files", report.files}, {"bytes", report.bytes}, {"weights", weights_json(report.weights)}};
  return json;
}

}  // namespace assay
