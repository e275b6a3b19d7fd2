#include "verify/verify_report.h"

#include <algorithm>
#include <iterator>

namespace assay {

std::string_view status_name(FileStatus status) {
  switch (status) {
    case FileStatus::ok: return "ok";
    case FileStatus::failed: return "failed";
    case FileStatus::missing: return "missing";
    case FileStatus::extra: return "extra";
    case FileStatus::unchecked: return "unchecked";
    case FileStatus::unreadable: break;
  }
  return "unreadable";
}

void FileReport::set_actual(const Digest& digest) {
  as_expected_ = digest == expected;
  if (!as_expected_)
    tell_more().actual = digest;
  else if (is_told())
    tell_more().actual.reset();
}

void FileReport::set_listed(KnownSize size, Box<std::vector<Digest>> chunks) {
  if (!size && !chunks) return;
  rare_.make().expected_size = size;
  if (chunks) rare_.make().chunks = std::move(chunks.make());
}

void FileReport::tell(std::string diagnosis, std::string remedy) {
  if (!is_told() && remedy.empty() && diagnosis == this->diagnosis()) return;
  Told& told = tell_more();
  told.diagnosis = std::move(diagnosis);
  told.remedy = std::move(remedy);
}

void FileReport::add(Findings findings) {
  if (findings.empty()) return;
  std::move(findings.begin(), findings.end(), std::back_inserter(tell_more().findings));
}

void FileReport::drop_findings(std::string_view code) {
  if (is_told())
    std::erase_if(tell_more().findings, [&](const Finding& finding) { return finding.code == code; });
}

void FileReport::set_code(Findings findings) {
  code_looked_for = true;
  if (!findings.empty()) tell_more().code = std::move(findings);
}

const FileReport* VerifyReport::find(std::string_view name) const {
  const auto at = std::lower_bound(files.begin(), files.end(), name,
                                   [](const FileReport& file, auto n) { return file.name < n; });
  return at != files.end() && at->name == name ? &*at : nullptr;
}

std::uint64_t VerifyReport::count(FileStatus status) const {
  return static_cast<std::uint64_t>(
      std::count_if(files.begin(), files.end(), [&](const FileReport& f) { return f.status == status; }));
}

bool VerifyReport::good() const {
  const bool bad_file = std::any_of(files.begin(), files.end(), [](const FileReport& f) {
    return f.status == FileStatus::failed || f.status == FileStatus::missing ||
           f.status == FileStatus::unreadable;
  });
  return !bad_file && !interrupted && !stopped_early && !has_errors(findings);
}

}  // namespace assay
