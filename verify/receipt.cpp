#include "verify/receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "verify/receipt_mac.h"
#include "verify/render.h"
#include "verify/verdict.h"

namespace assay {
namespace {

std::string digest_text(const std::optional<Digest>& digest) {
  return digest ? fmt::format("{}:{}", digest->kind_name(), digest->hex()) : std::string();
}

Json ranges_json(const std::vector<ByteRange>& ranges) {
  Json json = Json::array();
  for (const ByteRange& range : ranges) json.push_back(http_range(range));
  return json;
}

// What those who put the receipts of many ranks together need to know besides.
void add_for_others(Json& entry, const FileReport& file, const VerifyReport& report) {
  if (file.expected_size()) entry["expected_size"] = *file.expected_size();
  if (!file.diagnosis().empty()) entry["diagnosis"] = file.diagnosis();
  if (!file.damaged().empty()) entry["damaged_ranges"] = ranges_json(file.damaged());
  if (const auto parts = report.parts.find(file.name); parts != report.parts.end())
    entry["parts"] = ranges_json(parts->second);
  const auto pieces = report.piece_digests.find(file.name);
  if (pieces == report.piece_digests.end()) return;
  Json& digests = entry["pieces"] = Json::array();
  for (const Digest& digest : pieces->second) digests.push_back(digest.hex());
}

Json rank_json(const LaunchedRank& rank, std::string_view mode) {
  return {{"run", rank.run},     {"mode", mode},      {"rank", rank.rank},
          {"ranks", rank.ranks}, {"node", rank.node}, {"launcher", rank.launcher}};
}

Json errors_json(const Findings& findings) {
  FindingCollector bounded;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::error) bounded.add(finding);
  }
  return to_json(bounded.take());
}

Json file_entry(const FileReport& file) {
  return {{"name", file.name},
          {"status", status_name(file.status)},
          {"size", file.identity().size},
          {"mtime_ns", file.identity().mtime_ns},
          {"ctime_ns", file.identity().ctime_ns},
          {"inode", file.identity().inode},
          {"expected", digest_text(file.expected)},
          {"digest", digest_text(file.actual())},
          {"trust", trust_name(file.trust->source)},
          {"trust_detail", file.trust->detail}};
}

// Below the root and never judged: what the source passes over, and files that assay itself writes.
Json not_judged(const Expectation& source, const VerifyOptions& options) {
  std::set<std::string> names(source.ignored.begin(), source.ignored.end());
  names.insert(source.settled.begin(), source.settled.end());
  std::error_code ignored;
  for (const fs::path& own : options.own_files) {
    const std::string name = fs::weakly_canonical(own, ignored).lexically_relative(source.root).string();
    if (!name.empty() && !name.starts_with("..")) names.insert(name);
  }
  return names;
}

// Symbolic links that the source compared by itself: to nobody's bytes, but to a name that may change.
Json links_of(const Expectation& source) {
  Json links = Json::object();
  std::error_code error;
  for (const std::string& name : source.settled) {
    const fs::path target = fs::read_symlink(source.root / name, error);
    if (!error) links[name] = target.string();
  }
  return links;
}

std::set<std::string> commits_of(const VerifyReport& report) {
  std::set<std::string> commits;
  for (const FileReport& file : report.files) {
    if (file.expected) commits.insert(file.trust->commit);
  }
  return commits;
}

// With what vouches for the receipt itself, at its end.
void write_sealed(Json receipt, std::size_t files, const std::optional<std::string>& key,
                  const WriteText& write, const std::function<Json(std::size_t)>& entry) {
  Json& authentication = receipt["authentication"];
  authentication["method"] = key ? "hmac-sha256" : "none";
  if (key) authentication["mac"] = mac_placeholder();
  if (!key) return stream_json(receipt, "files", files, entry, write);
  SealedText sealed(*key, write);
  stream_json(receipt, "files", files, entry,
              [&](std::string_view text) { sealed.write(std::string(text)); });
  sealed.finish();
}

}  // namespace

void write_receipt(const VerifyReport& report, const VerifyOptions& options,
                   const std::optional<std::string>& key, const WriteText& write, const LaunchedRank* rank) {
  const Expectation& source = report.expectation;
  Json receipt = {{"schema", "assay.receipt/1"},
                  {"tool", "assay " ASSAY_VERSION},
                  {"verdict", verdict_name(verdict_of(report))},
                  {"verified_unix", report.started_unix},
                  {"source", {{"kind", source.kind}, {"origin", source.origin}}},
                  {"list", report.list},
                  {"commits", commits_of(report)},
                  {"trust", report.trust},
                  {"weights", weights_json(weight_share(report))},
                  {"scope",
                   {{"root", source.root.string()},
                    {"whole", source.owns_root},
                    {"include", options.include},
                    {"exclude", options.exclude},
                    {"links", links_of(source)},
                    {"not_judged", not_judged(source, options)}}},
                  {"files", Json::array()}};
  if (rank != nullptr) {
    receipt["rank"] = rank_json(*rank, options.share ? "share" : "copy");
    if (options.compared_pieces > 0) receipt["piece_bytes"] = options.compared_pieces;
    receipt["errors"] = errors_json(report.findings);
  }
  write_sealed(receipt, report.files.size(), key, write, [&](std::size_t i) {
    Json entry = file_entry(report.files[i]);
    add_for_others(entry, report.files[i], report);
    return entry;
  });
}

void write_idle_receipt(const LaunchedRank& rank, const std::optional<std::string>& key,
                        const WriteText& write) {
  const Json receipt = {{"schema", "assay.receipt/1"},
                        {"tool", "assay " ASSAY_VERSION},
                        {"verdict", "idle"},
                        {"rank", rank_json(rank, "idle")},
                        {"files", Json::array()}};
  write_sealed(receipt, 0, key, write, [](std::size_t) { return Json(); });
}

std::int64_t parse_duration(std::string_view text) {
  const auto bad = [&] {
    return Error::usage(fmt::format("'{}' is not a duration", text)).remedy("write it as 24h");
  };
  if (text.empty()) throw bad();
  std::int64_t scale = 1;
  switch (text.back()) {
    case 's': scale = 1; break;
    case 'm': scale = 60; break;
    case 'h': scale = 3600; break;
    case 'd': scale = 86400; break;
    default: throw bad();
  }
  const auto number = parse_u64(text.substr(0, text.size() - 1));
  if (!number || *number > 1'000'000'000) throw bad();
  return static_cast<std::int64_t>(*number) * scale;
}

}  // namespace assay
