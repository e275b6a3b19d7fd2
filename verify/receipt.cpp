#include "verify/receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"
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

}  // namespace

void write_receipt(const VerifyReport& report, const VerifyOptions& options,
                   const std::optional<std::string>& key, const WriteText& write) {
  const Expectation& source = report.expectation;
  Json receipt = {{"schema", "assay.receipt/1"},
                  {"tool", "assay " ASSAY_VERSION},
                  {"verdict", verdict_name(verdict_of(report))},
                  {"verified_unix", report.started_unix},
                  {"source", {{"kind", source.kind}, {"origin", source.origin}}},
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
  Json& authentication = receipt["authentication"];
  authentication["method"] = key ? "hmac-sha256" : "none";
  if (key) authentication["mac"] = mac_placeholder();
  const auto entry = [&](std::size_t i) { return file_entry(report.files[i]); };
  if (!key) return stream_json(receipt, "files", report.files.size(), entry, write);
  SealedText sealed(*key, write);
  stream_json(receipt, "files", report.files.size(), entry,
              [&](std::string_view text) { sealed.write(std::string(text)); });
  sealed.finish();
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
