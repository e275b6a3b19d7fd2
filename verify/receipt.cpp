#include "verify/receipt.h"

#include <fmt/format.h>

#include <chrono>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/hub_cache.h"

namespace assay {
namespace {

constexpr std::string_view kSchema = "assay.receipt/1";

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Finding problem(std::string code, std::string message, std::string file = {}) {
  return {.severity = Severity::error,
          .code = std::move(code),
          .message = std::move(message),
          .file = std::move(file),
          .remedy = "verify again"};
}

void check_file(const ParsedJson& entry, const fs::path& root, const fs::path& receipt, ReceiptCheck& check) {
  const std::string& name = json_string(entry.at("name"), "name", receipt);
  if (!is_safe_relative_path(name))
    throw Error::input(fmt::format("names the unsafe path '{}'", name)).in(receipt);
  try {
    const FileIdentity now = File::open(root / name).identity();
    const bool same = now.size == json_u64(entry.at("size"), "size", receipt) &&
                      now.inode == json_u64(entry.at("inode"), "inode", receipt) &&
                      now.mtime_ns == entry.at("mtime_ns").get<std::int64_t>() &&
                      now.ctime_ns == entry.at("ctime_ns").get<std::int64_t>();
    if (!same)
      check.findings.push_back(problem("receipt.changed", "is not the file that was verified", name));
  } catch (const Error& error) {
    if (error.file() == receipt.string()) throw;
    check.findings.push_back(problem("receipt.missing", error.message(), name));
  }
}

// What verify() took as the root of the names: a file's folder, the snapshot of a hub cache, else the folder.
fs::path root_of(const fs::path& path) {
  if (hub_cache_place(path)) return expect_from_hub_cache(path).root;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

Json make_receipt(const VerifyReport& report) {
  Json files = Json::array();
  for (const FileReport& file : report.files) {
    if (file.status != FileStatus::ok) continue;
    files.push_back({{"name", file.name},
                     {"size", file.identity.size},
                     {"mtime_ns", file.identity.mtime_ns},
                     {"ctime_ns", file.identity.ctime_ns},
                     {"inode", file.identity.inode},
                     {"digest", fmt::format("{}:{}", file.actual->kind_name(), file.actual->hex())},
                     {"trust", trust_name(file.trust.source)},
                     {"trust_detail", file.trust.detail}});
  }
  return {{"schema", kSchema},
          {"tool", "assay " ASSAY_VERSION},
          {"verdict", report.good() && report.bytes_checked ? "ok" : "failed"},
          {"verified_unix", report.started_unix},
          {"source", {{"kind", report.expectation.kind}, {"origin", report.expectation.origin}}},
          {"trust", trust_summary(report.expectation)},
          {"files", std::move(files)}};
}

ReceiptCheck check_receipt(const fs::path& receipt, const fs::path& path,
                           std::optional<std::int64_t> max_age) {
  ReceiptCheck check;
  const fs::path root = root_of(path);
  const ParsedJson document = read_json(receipt, {.max_bytes = 1ull << 30});
  try {
    if (document.at("schema") != kSchema) throw Error::input("is not a receipt of assay verify").in(receipt);
    check.origin = document.at("source").at("origin").get<std::string>();
    check.age_seconds = now_seconds() - document.at("verified_unix").get<std::int64_t>();
    if (document.at("verdict") != "ok") {
      check.findings.push_back(problem("receipt.verdict", "the verification it records did not end well"));
    }
    if (check.age_seconds < 0)
      check.findings.push_back(problem("receipt.future", "it was written in the future"));
    if (max_age && check.age_seconds > *max_age) {
      check.findings.push_back(
          problem("receipt.too_old",
                  fmt::format("it is {} old", human_duration(static_cast<double>(check.age_seconds)))));
    }
    for (const ParsedJson& entry : document.at("files")) check_file(entry, root, receipt, check);
    check.files = document.at("files").size();
  } catch (const ParsedJson::exception&) {
    throw Error::input("is not a receipt of assay verify, or a damaged one")
        .in(receipt)
        .remedy("verify again");
  }
  if (check.files == 0) check.findings.push_back(problem("receipt.empty", "it vouches for no file"));
  return check;
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
