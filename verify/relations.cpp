#include "verify/relations.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace assay {
namespace {

// Relations that sizes alone suggest, where nothing was hashed: an unexpected file as long as the missing
// one; two files, each as long as the other should be.
void suspect_by_size(VerifyReport& report) {
  std::map<std::uint64_t, std::vector<const FileReport*>> extras;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const FileReport*>> misfits;  // is, should be
  for (const FileReport& file : report.files) {
    if (file.status == FileStatus::extra && !file.actual() && file.diagnosis().empty()) {
      extras[file.size()].push_back(&file);
    } else if (file.status == FileStatus::failed && file.size() > 0 &&
               file.expected_size().value_or(file.size()) != file.size()) {
      misfits[{file.size(), *file.expected_size()}].push_back(&file);
    }
  }
  for (FileReport& file : report.files) {
    if (!file.expected_size()) continue;
    if (file.status == FileStatus::missing) {
      const auto it = extras.find(*file.expected_size());
      if (it == extras.end() || it->second.size() != 1) continue;
      file.tell("is not there; " + it->second[0]->name + ", which nobody expected, has its size",
                "see whether it was renamed");
    } else if (file.status == FileStatus::failed && !file.actual()) {
      const auto it = misfits.find({*file.expected_size(), file.size()});
      if (it == misfits.end() || it->second.size() != 1) continue;
      file.tell("seems swapped with " + it->second[0]->name + ": each has the other's size",
                "swap the two names and verify again");
    }
  }
}

// What the index says of a shard whose bytes are known to be wrong is a consequence, and its remedies
// mislead.
void drop_consequences(VerifyReport& report) {
  std::set<std::string_view> wrong;
  for (const FileReport& file : report.files) {
    if (file.expected && file.actual() && file.actual() != file.expected) wrong.insert(file.name);
  }
  std::erase_if(report.findings, [&](const Finding& finding) {
    return finding.code.starts_with("index.") && wrong.contains(finding.file);
  });
}

// Files by a digest that they have: places in the report, in the order of the digests.
class ByDigest {
 public:
  // `digest_of`: an optional<Digest> of a file.
  template <typename DigestOf>
  ByDigest(const std::vector<FileReport>& files, DigestOf digest_of) : files_(files), digest_of_(digest_of) {
    places_.reserve(static_cast<std::size_t>(std::count_if(
        files.begin(), files.end(), [&](const auto& file) { return digest_of(file).has_value(); })));
    for (std::uint32_t i = 0; i < files.size(); ++i) {
      if (digest_of(files[i])) places_.push_back(i);
    }
    std::sort(places_.begin(), places_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto order = *digest_of(files[a]) <=> *digest_of(files[b]);
      return order != 0 ? order < 0 : a < b;
    });
  }
  // The first of the files with this digest; none: nullptr.
  const FileReport* first(const Digest& digest) const {
    const auto at =
        std::lower_bound(places_.begin(), places_.end(), digest,
                         [&](std::uint32_t i, const auto& d) { return *digest_of_(files_[i]) < d; });
    return at != places_.end() && *digest_of_(files_[*at]) == digest ? &files_[*at] : nullptr;
  }

 private:
  const std::vector<FileReport>& files_;
  std::function<const std::optional<Digest>&(const FileReport&)> digest_of_;
  std::vector<std::uint32_t> places_;
};

}  // namespace

MissingFiles::MissingFiles(const VerifyReport& report) {
  for (const FileReport& file : report.files) {
    if (file.status != FileStatus::missing || !file.expected) continue;
    if (file.expected_size())
      sizes_.try_emplace(*file.expected_size(), file.expected->kind);
    else
      extensions_.try_emplace(fs::path(file.name).extension().string(), file.expected->kind);
  }
}

std::optional<DigestKind> MissingFiles::kind_sought(const FileReport& file) const {
  if (file.status != FileStatus::extra || !file.diagnosis().empty()) return std::nullopt;
  if (const auto it = sizes_.find(file.size()); it != sizes_.end()) return it->second;
  const auto it = extensions_.find(fs::path(file.name).extension().string());
  return it == extensions_.end() ? std::nullopt : std::optional(it->second);
}

void explain_relations(VerifyReport& report) {
  const auto wrong_somehow = [](const FileReport& file) {
    return file.status == FileStatus::missing || file.status == FileStatus::failed;
  };
  if (std::none_of(report.files.begin(), report.files.end(), wrong_somehow)) return;
  suspect_by_size(report);
  using DigestOfFile = const std::optional<Digest>&;
  const ByDigest by_actual(report.files,
                           [](const FileReport& file) -> DigestOfFile { return file.actual(); });
  const ByDigest by_expected(report.files,
                             [](const FileReport& file) -> DigestOfFile { return file.expected; });
  for (FileReport& file : report.files) {
    const bool wrong =
        file.status == FileStatus::missing || (file.status == FileStatus::failed && file.actual());
    if (!wrong || !file.expected || file.actual() == file.expected) continue;
    const FileReport* holder = by_actual.first(*file.expected);
    const FileReport* meant = file.actual() ? by_expected.first(*file.actual()) : nullptr;
    if (file.status == FileStatus::missing && holder != nullptr) {
      const bool renamed = holder->status == FileStatus::extra;  // else it is right where it is
      file.tell("is not there under this name; its bytes are in " + holder->name,
                (renamed ? "rename " : "copy ") + holder->name);
    } else if (holder != nullptr) {
      const bool swapped =
          holder->expected && file.actual() == holder->expected && holder->status == FileStatus::failed;
      file.tell(swapped ? "is swapped with " + holder->name + ": each holds the other's bytes"
                        : "has wrong bytes; the right ones are in " + holder->name,
                swapped ? "swap the two names" : "copy it from there");
    } else if (meant != nullptr) {
      file.tell("holds the bytes of " + meant->name, "download it again");
    }
  }
  drop_consequences(report);
}

}  // namespace assay
