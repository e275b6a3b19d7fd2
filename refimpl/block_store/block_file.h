// One block in one file of a folder that others write to as well: whole or not there, and nothing else is opened than a
// regular file of the size it may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace assay {

// Under the other name until all of it is there. Not synced: after a crash of the machine it may be damaged, which its
// digest tells. False: errno says why, and nothing is left.
bool write_block_file(const std::filesystem::path& temporary, const std::filesystem::path& target,
                      std::span<const std::byte> bytes);

struct BlockFileRead {
  enum class Found : std::uint8_t { nothing, unfit, whole } found = Found::nothing;
  std::vector<std::byte> bytes;
};
// The same from its beginning on, a part at a time: it is held open, so that what becomes of its name is no matter.
class BlockFileReader {
 public:
  // Of `least` to `most` bytes; links are not followed, and what is no regular file is not waited for.
  BlockFileReader(const std::filesystem::path& path, std::uint64_t least, std::uint64_t most);
  BlockFileReader(const BlockFileReader&) = delete;
  BlockFileReader& operator=(const BlockFileReader&) = delete;
  ~BlockFileReader();
  BlockFileRead::Found found() const { return found_; }
  std::uint64_t size() const { return size_; }
  bool read(std::span<std::byte> bytes);  // the next of them; false: they cannot be read

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
  BlockFileRead::Found found_ = BlockFileRead::Found::nothing;
};

// All of it at once.
BlockFileRead read_block_file(const std::filesystem::path& path, std::uint64_t least, std::uint64_t most);

}  // namespace assay
