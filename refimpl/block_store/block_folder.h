// Files in a folder, of limited size together: those used longest ago go first, in this run of the program and in later
// ones. Nobody else's files are touched, and nothing that lies in the folder does harm: links are not followed, what is no
// regular file is not opened, and whoever reads says how long the file is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "refimpl/block_store/block_file.h"
#include "refimpl/block_store/lru_bytes.h"

namespace assay {

class BlockFolder {
 public:
  // Whoever wants to know is told, once each, that files were refused, and that no more are written (a full disk).
  using Told = std::function<void(const std::string& note)>;

  // Makes the folder where there is none; takes up the blocks that are there, by the time they were used last. Throws
  // Error::io where it cannot be read.
  BlockFolder(std::filesystem::path folder, std::uint64_t most_bytes, Told told);

  bool has(const std::string& name) const { return files_.has(name); }
  std::uint64_t bytes() const { return files_.bytes(); }
  std::size_t size() const { return files_.size(); }
  bool writing() const { return writing_; }

  // A file of so many bytes will be put: room is made for it, of what was used longest ago and is not `spared`. False: it
  // is larger than all the room.
  bool reserve(const std::string& name, std::uint64_t bytes,
               const std::function<bool(const std::string&)>& spared = {});
  // Whole or not at all. What was reserved.
  void put(const std::string& name, std::span<const std::byte> bytes);
  // Of exactly so many bytes; none: it is not there (any more), or was of another size and is removed.
  std::unique_ptr<BlockFileReader> open(const std::string& name, std::size_t bytes);
  void forget(const std::string& name) { files_.erase(name); }  // what was reserved is not put
  // It is not what it should be: removed.
  void refuse(const std::string& name);
  void touch(const std::string& name);

 private:
  void take_up();
  void remove(const std::string& name);

  std::filesystem::path folder_, temporary_;
  LruBytes files_;
  Told told_;
  bool writing_ = true, refused_ = false;
};

}  // namespace assay
