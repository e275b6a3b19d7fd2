#include "verify/relations.h"

#include <algorithm>
#include <set>

namespace assay {
namespace {

// Relations that sizes alone suggest, where nothing was hashed: an unexpected file as long as the missing
// one; two files, each as long as the other should be.
void suspect_by_size(VerifyReport& report) {
  std::map<std::uint64_t, std::vector<const FileReport*>> extras;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const FileReport*>> misfits;  // is, should be
  for (const FileReport& file : report.files) {
    if (file.status == FileStatus::extra && !file.actual && file.diagnosis.empty()) {
      extras[file.size].push_back(&file);
    } else if (file.status == FileStatus::failed && file.size > 0 &&
               file.expected_size.value_or(file.size) != file.size) {
      misfits[{file.size, *file.expected_size}].push_back(&file);
    }
  }
  for (FileReport& file : report.files) {
    if (!file.expected_size) continue;
    if (file.status == FileStatus::missing) {
      const auto it = extras.find(*file.expected_size);
      if (it == extras.end() || it->second.size() != 1) continue;
      file.diagnosis = "is not there; " + it->second[0]->name + ", which nobody expected, has its size";
      file.remedy = "see whether it was renamed";
    } else if (file.status == FileStatus::failed && !file.actual) {
      const auto it = misfits.find({*file.expected_size, file.size});
      if (it == misfits.end() || it->second.size() != 1) continue;
      file.diagnosis = "seems swapped with " + it->second[0]->name + ": each has the other's size";
      file.remedy = "swap the two names and verify again";
    }
  }
}

// What the index says of a shard whose bytes are known to be wrong is a consequence, and its remedies
// mislead.
void drop_consequences(VerifyReport& report) {
  std::set<std::string_view> wrong;
  for (const FileReport& file : report.files) {
    if (file.expected && file.actual && file.actual != file.expected) wrong.insert(file.name);
  }
  std::erase_if(report.findings, [&](const Finding& finding) {
    return finding.code.starts_with("index.") && wrong.contains(finding.file);
  });
}

}  // namespace

MissingFiles::MissingFiles(const VerifyReport& report) {
  for (const FileReport& file : report.files) {
    if (file.status != FileStatus::missing || !file.expected) continue;
    if (file.expected_size)
      sizes_.try_emplace(*file.expected_size, file.expected->kind);
    else
      extensions_.try_emplace(fs::path(file.name).extension().string(), file.expected->kind);
  }
}

std::optional<DigestKind> MissingFiles::kind_sought(const FileReport& file) const {
  if (file.status != FileStatus::extra || !file.diagnosis.empty()) return std::nullopt;
  if (const auto it = sizes_.find(file.size); it != sizes_.end()) return it->second;
  const auto it = extensions_.find(file.path.extension().string());
  return it == extensions_.end() ? std::nullopt : std::optional(it->second);
}

void explain_relations(VerifyReport& report) {
  suspect_by_size(report);
  std::map<Digest, const FileReport*> by_actual, by_expected;
  for (const FileReport& file : report.files) {
    if (file.actual) by_actual.try_emplace(*file.actual, &file);
    if (file.expected) by_expected.try_emplace(*file.expected, &file);
  }
  for (FileReport& file : report.files) {
    const bool wrong =
        file.status == FileStatus::missing || (file.status == FileStatus::failed && file.actual);
    if (!wrong || !file.expected || file.actual == file.expected) continue;
    const auto found = by_actual.find(*file.expected);
    const FileReport* holder = found == by_actual.end() ? nullptr : found->second;
    const auto meant = file.actual ? by_expected.find(*file.actual) : by_expected.end();
    if (file.status == FileStatus::missing && holder != nullptr) {
      const bool renamed = holder->status == FileStatus::extra;  // else it is right where it is
      file.diagnosis = "is not there under this name; its bytes are in " + holder->name;
      file.remedy = (renamed ? "rename " : "copy ") + holder->name;
    } else if (holder != nullptr) {
      const bool swapped =
          holder->expected && file.actual == holder->expected && holder->status == FileStatus::failed;
      file.diagnosis = swapped ? "is swapped with " + holder->name + ": each holds the other's bytes"
                               : "has wrong bytes; the right ones are in " + holder->name;
      file.remedy = swapped ? "swap the two names" : "copy it from there";
    } else if (meant != by_expected.end()) {
      file.diagnosis = "holds the bytes of " + meant->second->name;
      file.remedy = "download it again";
    }
  }
  drop_consequences(report);
}

}  // namespace assay
