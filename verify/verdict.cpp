#include "verify/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/finding_collector.h"
#include "core/system/text.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

// Larger than any tokenizer or text: tensors, whatever the file is called.
constexpr std::uint64_t kSurelyWeights = 64ull << 20;
constexpr std::size_t kExtrasShown = 3;

// In a folder of blobs nothing is called by a format. What is named by its SHA-256 was kept in LFS.
bool is_lfs_blob(const FileReport& file) {
  return file.trust->source == TrustSource::blob_name && file.expected &&
         file.expected->kind == DigestKind::sha256 && file.name == file.expected->hex();
}

// Of a model that Ollama keeps by tensors each is a layer, called by the tensor's name behind the model's own.
bool is_tensor_layer(const FileReport& file) {
  return file.trust->source == TrustSource::store_manifest &&
         file.name.starts_with(file.trust->detail + "/tensors/");
}

bool is_weight(const FileReport& file) {
  return may_hold_weights(file.name) || file.size() >= kSurelyWeights || is_lfs_blob(file) ||
         is_tensor_layer(file);
}

bool is_here(const FileReport& file) {
  return file.status != FileStatus::missing && file.status != FileStatus::unreadable;
}

bool is_compared(const FileReport& file) {
  return file.status == FileStatus::ok && file.expected && file.actual();
}

void refuse_extra(VerifyReport& report) {
  std::string names;
  std::size_t count = 0;
  for (const FileReport& file : report.files) {
    if (file.status != FileStatus::extra || ++count > kExtrasShown) continue;
    names += (names.empty() ? "" : ", ") + file.name;
  }
  if (count == 0) return;
  if (count > kExtrasShown) names += ", …";
  report.findings.push_back({.severity = Severity::error,
                             .code = "verify.extra",
                             .message = fmt::format("{} {} here that nobody expected: {}", count,
                                                    count == 1 ? "file is" : "files are", names),
                             .remedy = "remove what does not belong, or drop --fail-on-extra"});
}

// A signed model is its files and no other: nobody vouches for what was added.
void refuse_unsigned(VerifyReport& report) {
  FindingCollector bounded;
  const auto refuse = [&](const std::string& name, std::string message) {
    bounded.add({.severity = Severity::error,
                 .code = "signature.unsigned",
                 .message = std::move(message),
                 .file = name,
                 .remedy = "remove it, or accept it with --ignore-unsigned"});
  };
  const bool shards = report.expectation.chunk_bytes > 0;
  for (const FileReport& file : report.files) {
    const bool nothing = shards && file.size() == 0;  // a file of no bytes has no shard, and so no digest
    if (!file.expected && is_here(file) && !nothing) refuse(file.name, "is here and was not signed");
  }
  for (const Finding& finding : report.findings) {
    if (finding.code == "file.folder_link")
      refuse(finding.file, "is a link to a folder, which was not signed");
  }
  Findings found = bounded.take();
  std::move(found.begin(), found.end(), std::back_inserter(report.findings));
}

// Where nobody vouches for any weight the verdict says so itself; a warning for each says nothing new.
void name_unvouched(VerifyReport& report, bool required) {
  const WeightShare share = weight_share(report);
  if (!required && share.vouched_files == 0) return;
  FindingCollector bounded;
  for (const FileReport& file : report.files) {
    if (!is_weight(file) || !is_here(file) || file.expected) continue;
    bounded.add({.severity = required ? Severity::error : Severity::warning,
                 .code = "verify.unvouched",
                 .message = "nobody says what its bytes should be",
                 .file = file.name,
                 .remedy = "give a manifest or listing that has it"});
  }
  if (required && share.files == 0 && !report.bytes_checked) {
    bounded.add({.severity = Severity::error,
                 .code = "verify.unvouched",
                 .message = "nobody says what any of these files should be",
                 .remedy = "give a manifest or listing"});
  }
  Findings found = bounded.take();
  std::move(found.begin(), found.end(), std::back_inserter(report.findings));
}

void expect_commit(const std::string& commit, VerifyReport& report) {
  std::map<std::string, std::pair<std::size_t, const FileReport*>> others;
  for (const FileReport& file : report.files) {
    if (!file.expected || file.trust->commit == commit) continue;
    auto& [count, first] = others[file.trust->commit];
    if (count++ == 0) first = &file;
  }
  for (const auto& [other, seen] : others) {
    const auto& [count, first] = seen;
    const std::string whose =
        other.empty() ? fmt::format("{}, which names no commit", describe(*first->trust)) : "commit " + other;
    report.findings.push_back(
        {.severity = Severity::error,
         .code = "verify.other_commit",
         .message = fmt::format(
             "{} {}, not by commit {}", whose,
             count == 1 ? "vouches for it" : fmt::format("vouches for it and {} more", count - 1), commit),
         .file = first->name,
         .remedy = "check out or download the commit that is meant"});
  }
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::partial: return "partial";
    case Verdict::well_formed: return "well_formed";
    case Verdict::interrupted: return "interrupted";
    case Verdict::failed: break;
  }
  return "failed";
}

WeightShare weight_share(const VerifyReport& report) {
  WeightShare share;
  for (const FileReport& file : report.files) {
    if (!is_weight(file) || !is_here(file)) continue;
    ++share.files;
    share.bytes += file.size();
    if (file.expected) ++share.vouched_files, share.vouched_bytes += file.size();
    const bool in_parts = file.status == FileStatus::ok && report.parts.contains(file.name);
    if (is_compared(file) || in_parts) ++share.compared_files;
  }
  return share;
}

std::string share_sentence(const WeightShare& share) {
  if (share.files == 0) return "no weights here";
  const std::string bytes = human_bytes(share.bytes);
  if (share.vouched_files == share.files) return fmt::format("vouched for: all {} of weights", bytes);
  if (share.vouched_bytes == 0) return fmt::format("vouched for: none of the {} of weights", bytes);
  // Never rounded up to all of it.
  const double percent = 100 * static_cast<double>(share.vouched_bytes) / static_cast<double>(share.bytes);
  return fmt::format("vouched for: {:.1f} % of the {} of weights", std::min(percent, 99.9), bytes);
}

Verdict verdict_of(const VerifyReport& report) {
  if (report.interrupted) return Verdict::interrupted;
  if (!report.good()) return Verdict::failed;
  const WeightShare share = weight_share(report);
  if (!report.bytes_checked || (share.files > 0 && share.compared_files == 0)) return Verdict::well_formed;
  return share.all_compared() ? Verdict::ok : Verdict::partial;
}

void hold_to(const VerifyOptions& options, VerifyReport& report) {
  if (options.fail_on_extra) refuse_extra(report);
  if (report.expectation.signature && report.expectation.owns_root && !options.ignore_unsigned)
    refuse_unsigned(report);
  name_unvouched(report, options.require_digests || options.expect_commit.has_value());
  if (options.expect_commit) expect_commit(*options.expect_commit, report);
}

}  // namespace assay
