#include "verify/render.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "core/system/json.h"
#include "core/system/json_stream.h"
#include "core/system/shell_words.h"
#include "core/system/text.h"
#include "verify/fix_plan.h"
#include "verify/verdict.h"
#include "verify/xet_check.h"

namespace assay {
namespace {

constexpr std::size_t kWarningsShown = 3;

bool is_bad(const FileReport& file) {
  return file.status == FileStatus::failed || file.status == FileStatus::missing ||
         file.status == FileStatus::unreadable;
}

std::string why(const FileReport& file) {
  std::string line =
      fmt::format("  {} {}", escape_for_terminal(file.name), escape_for_terminal(file.diagnosis()));
  if (!file.remedy().empty()) line += "; " + escape_for_terminal(file.remedy());
  return line;
}

void render_damage(const VerifyReport& report, const Output& output) {
  if (std::none_of(report.files.begin(), report.files.end(), is_bad)) return;
  output.line("");
  output.paint("What is wrong:", Style::bold);
  for (const FileReport& file : report.files) {
    if (!is_bad(file)) continue;
    output.line(why(file));
    for (const Finding& finding : file.findings()) {
      if (finding.severity == Severity::error && file.diagnosis() == "holds values it should not") {
        output.line("    " + to_line(finding));
      }
    }
  }
}

// Errors and notes about the whole are always shown; of warnings the first few of each code, and how many
// more.
void render_findings(const VerifyReport& report, const Output& output) {
  std::vector<const Finding*> shown;
  std::map<std::string, std::size_t> warnings;  // by code
  const auto consider = [&](const Finding& finding, bool whole) {
    const bool first_warnings =
        finding.severity == Severity::warning && ++warnings[finding.code] <= kWarningsShown;
    if (first_warnings || (whole && finding.severity != Severity::warning)) shown.push_back(&finding);
  };
  for (const Finding& finding : report.findings) consider(finding, true);
  for (const FileReport& file : report.files) {
    for (const Finding& finding : file.findings()) consider(finding, false);
  }
  if (shown.empty()) return;
  output.line("");
  for (const Finding* finding : shown) {
    output.paint(to_line(*finding), finding->severity == Severity::error ? Style::red : Style::plain);
  }
  for (const auto& [code, count] : warnings) {
    if (count <= kWarningsShown) continue;
    output.line(fmt::format("… and {} more of {} (--json lists them all)", count - kWarningsShown, code));
  }
}

void render_ranges(const VerifyReport& report, const Output& output) {
  for (const FileReport& file : report.files) {
    for (const ByteRange& range : file.damaged()) {
      output.line(fmt::format("curl -r {} -o part URL/{}", http_range(range), shell_word(file.name)));
    }
  }
}

std::string files_word(std::uint64_t n) {
  return fmt::format("{} {}", n, n == 1 ? "file" : "files");
}

std::string tally(const VerifyReport& report) {
  std::vector<std::string> parts;
  const auto add = [&](FileStatus status, std::string_view word) {
    if (const auto n = report.count(status)) parts.push_back(fmt::format("{} {}", n, word));
  };
  add(FileStatus::failed, "damaged");
  add(FileStatus::missing, "missing");
  add(FileStatus::unreadable, "unreadable");
  add(FileStatus::extra, "extra");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string speed(const VerifyReport& report) {
  const double rate = report.seconds > 0 ? static_cast<double>(report.bytes_hashed) / report.seconds : 0;
  std::string text = human_duration(report.seconds);
  if (report.bytes_hashed > 100'000'000) {
    text += fmt::format(", {}/s", human_bytes(static_cast<std::uint64_t>(rate)));
  }
  if (report.bytes_reused > 0)
    text += fmt::format(", {} known from before", human_bytes(report.bytes_reused));
  return text;
}

std::uint64_t files_there(const VerifyReport& report) {
  return report.files.size() - report.count(FileStatus::missing);
}

std::string iso_time(std::int64_t unix_seconds) {
  std::tm utc{};
  const std::time_t time = unix_seconds;
  ::gmtime_r(&time, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

Json signature_json(const SignatureFacts& facts) {
  Json json = {{"file", facts.file},
               {"method", facts.method},
               {"signer", facts.signer},
               {"model", facts.model},
               {"root_digest", facts.root_digest}};
  json[facts.method == "key" ? "key" : "certificate"] = facts.certificate;
  if (facts.method != "keyless") return json;
  json["identity"] = facts.identity;
  json["issuer"] = facts.issuer;
  json["trusted_root"] = facts.trusted_root;
  json["times"] = Json::array();
  for (const std::int64_t time : facts.times) json["times"].push_back(iso_time(time));
  return json;
}

Json file_json(const FileReport& file) {
  Json json = {{"name", file.name}, {"status", status_name(file.status)}};
  json["expected"] = file.expected ? Json(file.expected->hex()) : Json();
  const bool named = file.expected || !file.xet().made;  // a Xet hash that nobody expected is told as one
  json["actual"] = file.actual() && named ? Json(file.actual()->hex()) : Json();
  if (file.expected) json["digest"] = file.expected->kind_name();
  if (file.xet().made) json["xet"] = xet_json(file.xet());
  json["size"] = file.size();
  if (file.expected_size()) json["expected_size"] = *file.expected_size();
  json["trust"] = trust_name(file.trust->source);
  if (!file.trust->detail.empty()) json["trust_detail"] = file.trust->detail;
  json["trust_stored_beside"] = file.trust->stored_beside;
  json["diagnosis"] = file.diagnosis();
  if (!file.remedy().empty()) json["remedy"] = file.remedy();
  if (file.reused) json["reused"] = true;
  json["mtime_ns"] = file.identity().mtime_ns;
  json["inode"] = file.identity().inode;
  if (!file.damaged().empty()) {
    Json ranges = Json::array();
    for (const ByteRange& r : file.damaged()) ranges.push_back(http_range(r));
    json["damaged_ranges"] = std::move(ranges);
  }
  if (!file.findings().empty()) json["findings"] = to_json(file.findings());
  if (file.tensors()) json["tensors"] = to_json(*file.tensors());
  return json;
}

// Of the files that were looked at: a selection may have left out others.
std::string trust_of(const VerifyReport& report) {
  TrustTally trusts;
  for (const FileReport& file : report.files) {
    const bool expected =
        file.status != FileStatus::extra && (file.expected || file.status != FileStatus::unreadable);
    if (expected) trusts.add(file.expected ? file.trust : SharedTrust());
  }
  return trusts.summary();
}

}  // namespace

Json weights_json(const WeightShare& share) {
  return {{"files", share.files},
          {"bytes", share.bytes},
          {"vouched_files", share.vouched_files},
          {"vouched_bytes", share.vouched_bytes}};
}

std::string origin_of(const Expectation& expectation) {
  return expectation.origin.empty() ? expectation.root.string() : expectation.origin;
}

std::string status_line(const FileReport& file) {
  const std::string name = escape_for_terminal(file.name);
  switch (file.status) {
    case FileStatus::ok: return name + ": OK";
    case FileStatus::failed: return name + ": FAILED";
    case FileStatus::missing: return name + ": MISSING";
    case FileStatus::extra: return name + ": EXTRA";
    case FileStatus::unreadable: return name + ": FAILED open or read";
    case FileStatus::unchecked: break;
  }
  return name + ": not checked";
}

namespace {

std::string failed_line(const VerifyReport& report) {
  std::string counts = tally(report);
  if (counts.empty()) counts = "see the errors above";
  std::string line =
      fmt::format("FAILED: {}, of {} ({})", counts, files_word(report.files.size()), speed(report));
  if (report.stopped_early) {
    line += fmt::format("; {} not hashed: mend this first, or use --keep-going",
                        human_bytes(report.bytes_not_hashed));
  }
  return line;
}

std::string good_line(const VerifyReport& report, std::string_view word) {
  std::string line = fmt::format(
      "{}: {}, {}, checked against {} ({})", word, files_word(report.count(FileStatus::ok)),
      human_bytes(report.bytes_hashed + report.bytes_reused), origin_of(report.expectation), speed(report));
  if (const auto unchecked = report.count(FileStatus::unchecked); unchecked > 0)
    line += fmt::format("; {} not checked", unchecked);
  if (const auto extra = report.count(FileStatus::extra); extra > 0) line += fmt::format("; {} extra", extra);
  return line;
}

std::string well_formed_line(const VerifyReport& report, const VerifyOptions& options) {
  std::string looked = "no bytes were checked";
  std::string_view reason = options.quick ? "--quick" : "nothing says what they should be";
  if (report.bytes_checked) {
    looked = fmt::format("{} checked, but no weight was", files_word(report.count(FileStatus::ok)));
    reason = "nothing says what those should be";
  } else if (std::any_of(report.findings.begin(), report.findings.end(),
                         [](const Finding& finding) { return finding.code == "claim.consistent"; })) {
    looked = "no digest of a file was compared";
    reason = "what was compared proves less";
  }
  return fmt::format("WELL FORMED: {}; {} ({}) ({})", files_word(files_there(report)), looked, reason,
                     speed(report));
}

std::string outcome_line(const VerifyReport& report, const VerifyOptions& options) {
  switch (verdict_of(report)) {
    case Verdict::interrupted:
      return fmt::format("INTERRUPTED: {} of {} hashed; {}",
                         human_bytes(report.bytes_hashed + report.bytes_reused),
                         human_bytes(report.bytes_hashed + report.bytes_reused + report.bytes_not_hashed),
                         options.state ? "run the same command again to continue"
                                       : "use --state FILE to be able to continue");
    case Verdict::failed: return failed_line(report);
    case Verdict::well_formed: return well_formed_line(report, options);
    case Verdict::partial: return good_line(report, "PARTLY CHECKED");
    case Verdict::ok: break;
  }
  return good_line(report, "OK");
}

}  // namespace

std::string verdict_line(const VerifyReport& report, const VerifyOptions& options) {
  return fmt::format("{}; in {}; {}", outcome_line(report, options), report.expectation.root.string(),
                     share_sentence(weight_share(report)));
}

void render_text(const VerifyReport& report, const VerifyOptions& options, const RenderOptions& render,
                 const Output& output) {
  if (render.tensor_digests) {
    for (const FileReport& file : report.files) {
      if (!file.tensors()) continue;
      for (const TensorReport& tensor : *file.tensors()) {
        output.line(fmt::format("{}  {}:{}", tensor.sha256 ? tensor.sha256->hex() : "",
                                escape_for_terminal(file.name), escape_for_terminal(tensor.name)));
      }
    }
  }
  render_damage(report, output);
  render_findings(report, output);
  if (render.ranges) render_ranges(report, output);
  if (options.xet) render_xet(report, output);
  if (options.fix_plan) render_fix_plan(fix_plan(report, options), output);
  output.line("");
  if (report.bytes_checked) output.line(escape_for_terminal(trust_of(report)));
  output.paint(escape_for_terminal(verdict_line(report, options)), report.good() ? Style::green : Style::red);
}

namespace {

// All but its list of files, which is left empty.
Json frame_json(const VerifyReport& report, const VerifyOptions& options) {
  Json json = {{"schema", "assay.verify/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"started", iso_time(report.started_unix)},
               {"verdict", verdict_name(verdict_of(report))},
               {"verdict_line", verdict_line(report, options)}};
  json["source"] = {{"kind", report.expectation.kind},
                    {"origin", report.expectation.origin},
                    {"root", report.expectation.root.string()},
                    {"complete", report.expectation.complete},
                    {"trust", trust_of(report)}};
  if (report.expectation.signature) json["signature"] = signature_json(*report.expectation.signature);
  json["files"] = Json::array();
  json["findings"] = to_json(report.findings);
  json["summary"] = {{"ok", report.count(FileStatus::ok)},
                     {"failed", report.count(FileStatus::failed)},
                     {"missing", report.count(FileStatus::missing)},
                     {"extra", report.count(FileStatus::extra)},
                     {"unchecked", report.count(FileStatus::unchecked)},
                     {"unreadable", report.count(FileStatus::unreadable)},
                     {"weights", weights_json(weight_share(report))},
                     {"bytes", report.bytes_hashed},
                     {"bytes_reused", report.bytes_reused},
                     {"bytes_not_hashed", report.bytes_not_hashed},
                     {"bytes_checked", report.bytes_checked},
                     {"stopped_early", report.stopped_early},
                     {"seconds", report.seconds}};
  if (options.fix_plan) json["fix_plan"] = fix_plan_json(fix_plan(report, options));
  if (const XetCount xet = count_xet(report); xet.any()) json["summary"]["xet"] = xet_json(xet);
  return json;
}

}  // namespace

Json render_json(const VerifyReport& report, const VerifyOptions& options) {
  Json json = frame_json(report, options);
  for (const FileReport& file : report.files) json["files"].push_back(file_json(file));
  return json;
}

void write_json(const VerifyReport& report, const VerifyOptions& options, const std::string& target) {
  stream_json_to(target, frame_json(report, options), "files", report.files.size(),
                 [&](std::size_t i) { return file_json(report.files[i]); });
}

}  // namespace assay
