// ZIP archives, as NumPy's .npz are: stored and deflated members, ZIP64, read member by member.
//
// What an archive says of itself is doubted: members may not overlap, sizes must fit the file, deflate cannot
// yield more than 1032 bytes for one, and what comes out must have the size and the CRC-32 announced.
// Encrypted, split and otherwise compressed archives are refused. Source: PKWARE APPNOTE 6.3.10, §4.3
// (records), §4.5.3 (ZIP64); RFC 1951 (deflate).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/system/file.h"

namespace assay::zip {

struct Member {
  std::string name;
  bool deflated = false;
  std::uint64_t stored_bytes = 0;  // as it lies in the archive
  std::uint64_t bytes = 0;         // as it comes out
  std::uint32_t crc = 0;
  std::uint64_t header_offset = 0;
};

class Archive {
 public:
  // Fills the span with the archive's bytes from an offset; never asked for what lies beyond its size.
  using Reader = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
  Archive(Reader reader, std::uint64_t archive_bytes, fs::path source);
  static Archive open(const fs::path& path);

  const std::vector<Member>& members() const { return members_; }  // in the order of the directory
  // The first `count` bytes of a member, or all there are: CRC and end are checked only if all were asked
  // for.
  std::vector<std::byte> read(const Member& member, std::uint64_t count) const;
  std::vector<std::byte> read(const Member& member) const { return read(member, member.bytes); }
  const fs::path& source() const { return source_; }

 private:
  std::uint64_t data_offset(const Member& member) const;
  std::vector<std::byte> inflate(const Member& member, std::uint64_t offset, std::uint64_t count) const;
  Reader reader_;
  std::uint64_t bytes_;
  fs::path source_;
  std::vector<Member> members_;
};

}  // namespace assay::zip
