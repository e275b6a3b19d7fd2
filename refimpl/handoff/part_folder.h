// Parts of a hand-off as files of a folder, one each: PART.handoff by their serials. Whoever writes or takes them has the
// folder locked (flock), which ends with the process however that ends: so a reader knows that no more will come, and a
// writer that nobody reads what it removes.
#pragma once

#include <filesystem>
#include <optional>

#include "refimpl/handoff/part_stream.h"

namespace assay {

// flock() on a folder.
class FolderLock {
 public:
  enum class Kind : std::uint8_t { shared, exclusive };
  // None: another process has it otherwise.
  static std::optional<FolderLock> take(const std::filesystem::path& folder, Kind kind);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

class PartFolderSink : public PartSink {
 public:
  // Makes the folder where there is none, and removes what an earlier hand-off left there, whole or not. Throws Error::io
  // where that cannot be done, or another process writes or takes a hand-off there.
  explicit PartFolderSink(std::filesystem::path folder);
  ~PartFolderSink() override;
  void put(std::uint64_t serial, std::span<const std::byte> part) override;
  void close() override { closed_ = true; }

 private:
  std::filesystem::path folder_, temporary_;
  std::optional<FolderLock> lock_;
  bool closed_ = false;
};

class PartFolderSource : public PartSource {
 public:
  // Waits `patience` for a hand-off to begin, and as long for each part while its writer lives.
  PartFolderSource(std::filesystem::path folder, Patience patience);
  std::vector<std::byte> next(std::uint64_t serial) override;
  void taken() override {}
  void refuse(const std::string&) override {}
  void done() override;  // the files go

 private:
  std::filesystem::path folder_;
  Patience patience_;
  std::vector<std::byte> ticket_;
  std::optional<FolderLock> lock_;  // shared: the writer is gone, and no other one comes
};

}  // namespace assay
