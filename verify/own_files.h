// What assay itself writes or is told to read (a report, a state file, its own output redirected into the
// folder): no part of what is examined.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "core/system/file.h"

namespace assay {

class OwnFiles {
 public:
  // `named`: files given by option, those that exist; standard output and error are added where they are
  // files. Known by device and inode, so that links and odd spellings do not hide them.
  explicit OwnFiles(std::span<const fs::path> named = {});
  bool contains(const fs::path& path) const;
  bool contains(const FileIdentity& file) const { return known_.contains({file.device, file.inode}); }

 private:
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;  // device, inode
};

}  // namespace assay
