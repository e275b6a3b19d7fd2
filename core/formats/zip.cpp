#include "core/formats/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "core/system/error.h"

namespace assay::zip {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034B50, kDirectorySignature = 0x02014B50,
                        kEndSignature = 0x06054B50, kEnd64Signature = 0x06064B50,
                        kLocator64Signature = 0x07064B50;
constexpr std::uint64_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                        kLocatorBytes = 20;
constexpr std::uint64_t kMostComment = 0xFFFF;
constexpr std::uint64_t kMostDirectoryBytes = 256ull << 20;
constexpr std::uint64_t kMostInflation = 1032;  // the best that deflate does, RFC 1951: 258 bytes in 2 bits
constexpr std::uint16_t kEncrypted = 1 | 1 << 6;

template <class T>
T number(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Directory {
  std::uint64_t offset = 0, bytes = 0, members = 0;
};

// Finds and doubts the directory.
class DirectoryReader {
 public:
  DirectoryReader(const Archive::Reader& reader, std::uint64_t bytes, const fs::path& source)
      : reader_(reader), bytes_(bytes), source_(source) {}

  std::vector<Member> read() {
    const Directory directory = find();
    if (directory.bytes > kMostDirectoryBytes || directory.bytes > bytes_ ||
        directory.offset > bytes_ - directory.bytes)
      fail("its directory lies outside the file", directory.offset);
    if (directory.members > directory.bytes / kDirectoryBytes)
      fail(fmt::format("a directory of {} bytes cannot list {} members", directory.bytes, directory.members),
           directory.offset);
    std::vector<std::byte> raw(directory.bytes);
    reader_(directory.offset, raw);
    std::vector<Member> members;
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < directory.members; ++i) members.push_back(next(raw, at, directory.offset));
    check(members, directory.offset);
    return members;
  }

 private:
  [[noreturn]] void fail(std::string what, std::uint64_t at) const {
    throw Error::input("zip: " + std::move(what)).in(source_).at(at);
  }

  Directory find() {
    const std::uint64_t tail_bytes = std::min(bytes_, kEndBytes + kMostComment);
    std::vector<std::byte> tail(tail_bytes);
    reader_(bytes_ - tail_bytes, tail);
    for (std::uint64_t at = tail_bytes < kEndBytes ? 0 : tail_bytes - kEndBytes + 1; at-- > 0;) {
      const auto end = std::span(tail).subspan(at, kEndBytes);
      if (number<std::uint32_t>(end, 0) != kEndSignature) continue;
      if (number<std::uint16_t>(end, 20) != tail_bytes - at - kEndBytes)
        continue;  // the comment fills the rest
      return of_end(end, bytes_ - tail_bytes + at);
    }
    fail("no end of a directory was found: truncated, or no zip archive", 0);
  }

  Directory of_end(std::span<const std::byte> end, std::uint64_t at) {
    const auto disk = number<std::uint16_t>(end, 4), directory_disk = number<std::uint16_t>(end, 6);
    Directory found = {number<std::uint32_t>(end, 16), number<std::uint32_t>(end, 12),
                       number<std::uint16_t>(end, 10)};
    const bool wide = found.offset == 0xFFFFFFFF || found.bytes == 0xFFFFFFFF || found.members == 0xFFFF;
    if (wide && at >= kLocatorBytes) {
      std::vector<std::byte> locator(kLocatorBytes);
      reader_(at - kLocatorBytes, locator);
      if (number<std::uint32_t>(locator, 0) == kLocator64Signature)
        return of_end64(number<std::uint64_t>(locator, 8), at);
    }
    if (disk != 0 || directory_disk != 0 || number<std::uint16_t>(end, 8) != found.members)
      fail("archives split over several files are not read", at);
    if (found.offset > at || found.bytes > at - found.offset) fail("its directory lies outside the file", at);
    return found;
  }

  Directory of_end64(std::uint64_t at, std::uint64_t before) {
    if (at > before || before - at < kEnd64Bytes) fail("its ZIP64 directory lies outside the file", before);
    std::vector<std::byte> end(kEnd64Bytes);
    reader_(at, end);
    if (number<std::uint32_t>(end, 0) != kEnd64Signature) fail("its ZIP64 end record is damaged", at);
    if (number<std::uint32_t>(end, 16) != 0 || number<std::uint32_t>(end, 20) != 0)
      fail("archives split over several files are not read", at);
    return {number<std::uint64_t>(end, 48), number<std::uint64_t>(end, 40), number<std::uint64_t>(end, 32)};
  }

  Member next(std::span<const std::byte> raw, std::uint64_t& at, std::uint64_t base) {
    if (raw.size() - at < kDirectoryBytes) fail("its directory ends early", base + at);
    const auto record = raw.subspan(at, kDirectoryBytes);
    if (number<std::uint32_t>(record, 0) != kDirectorySignature) fail("its directory is damaged", base + at);
    const std::uint64_t name_bytes = number<std::uint16_t>(record, 28),
                        extra_bytes = number<std::uint16_t>(record, 30),
                        comment_bytes = number<std::uint16_t>(record, 32);
    const std::uint64_t whole = kDirectoryBytes + name_bytes + extra_bytes + comment_bytes;
    if (raw.size() - at < whole) fail("its directory ends early", base + at);
    Member member;
    const auto name = raw.subspan(at + kDirectoryBytes, name_bytes);
    member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    member.crc = number<std::uint32_t>(record, 16);
    member.stored_bytes = number<std::uint32_t>(record, 20);
    member.bytes = number<std::uint32_t>(record, 24);
    member.header_offset = number<std::uint32_t>(record, 42);
    widen(member, raw.subspan(at + kDirectoryBytes + name_bytes, extra_bytes), base + at);
    const auto method = number<std::uint16_t>(record, 10);
    if ((number<std::uint16_t>(record, 8) & kEncrypted) != 0) refuse(member, "is encrypted");
    if (method != 0 && method != 8) refuse(member, fmt::format("is compressed by method {}", method));
    member.deflated = method == 8;
    at += whole;
    return member;
  }

  // The ZIP64 field holds, in this order, those of size, stored size and offset that did not fit 32 bits.
  void widen(Member& member, std::span<const std::byte> extra, std::uint64_t at) {
    while (extra.size() >= 4) {
      const auto id = number<std::uint16_t>(extra, 0);
      const std::size_t length = number<std::uint16_t>(extra, 2);
      if (extra.size() - 4 < length) fail("an extra field is longer than its room", at);
      if (id == 1) {
        auto field = extra.subspan(4, length);
        for (std::uint64_t* value : {&member.bytes, &member.stored_bytes, &member.header_offset}) {
          if (*value != 0xFFFFFFFF) continue;
          if (field.size() < 8) fail("a ZIP64 field is too short", at);
          *value = number<std::uint64_t>(field, 0);
          field = field.subspan(8);
        }
        return;
      }
      extra = extra.subspan(4 + length);
    }
  }

  [[noreturn]] void refuse(const Member& member, std::string what) const {
    throw Error::input("zip: " + std::move(what))
        .in(source_)
        .tensor(member.name)
        .remedy("write it again with numpy.savez");
  }

  void check(const std::vector<Member>& members, std::uint64_t directory) const {
    std::vector<const Member*> by_offset;
    std::set<std::string_view> names;
    for (const Member& member : members) {
      by_offset.push_back(&member);
      if (!names.insert(member.name).second) refuse(member, "two members have this name");
      if (!member.deflated && member.bytes != member.stored_bytes)
        refuse(member, fmt::format("stored as it is, but {} bytes in {}", member.bytes, member.stored_bytes));
      if (member.deflated && member.bytes / kMostInflation > member.stored_bytes)
        refuse(member, fmt::format("{} bytes cannot come of {}", member.bytes, member.stored_bytes));
    }
    std::sort(by_offset.begin(), by_offset.end(),
              [](const Member* a, const Member* b) { return a->header_offset < b->header_offset; });
    for (std::size_t i = 0; i < by_offset.size(); ++i) {
      const Member& member = *by_offset[i];
      const std::uint64_t end = i + 1 < by_offset.size() ? by_offset[i + 1]->header_offset : directory;
      if (member.header_offset > end || end - member.header_offset < kLocalBytes ||
          end - member.header_offset - kLocalBytes < member.stored_bytes)
        refuse(member, "it overlaps what follows it");
    }
  }

  const Archive::Reader& reader_;
  std::uint64_t bytes_;
  const fs::path& source_;
};

struct InflateEnd {
  void operator()(z_stream* stream) const {
    inflateEnd(stream);
    delete stream;
  }
};

}  // namespace

Archive::Archive(Reader reader, std::uint64_t archive_bytes, fs::path source)
    : reader_(std::move(reader)), bytes_(archive_bytes), source_(std::move(source)) {
  members_ = DirectoryReader(reader_, bytes_, source_).read();
}

Archive Archive::open(const fs::path& path) {
  auto file = std::make_shared<const File>(File::open(path));
  const std::uint64_t bytes = file->size();
  return {[file](std::uint64_t offset, std::span<std::byte> out) { file->read_exactly(offset, out); }, bytes,
          path};
}

std::uint64_t Archive::data_offset(const Member& member) const {
  std::vector<std::byte> local(kLocalBytes);
  reader_(member.header_offset, local);
  const std::uint64_t name_bytes = number<std::uint16_t>(local, 26);
  const std::uint64_t offset =
      member.header_offset + kLocalBytes + name_bytes + number<std::uint16_t>(local, 28);
  if (number<std::uint32_t>(local, 0) != kLocalSignature || name_bytes != member.name.size() ||
      offset > bytes_ || bytes_ - offset < member.stored_bytes) {
    throw Error::input("zip: the member's own header is damaged")
        .in(source_)
        .tensor(member.name)
        .at(member.header_offset);
  }
  return offset;
}

std::vector<std::byte> Archive::read(const Member& member, std::uint64_t count) const {
  count = std::min(count, member.bytes);
  const std::uint64_t offset = data_offset(member);
  std::vector<std::byte> out;
  if (member.deflated) {
    out = inflate(member, offset, count);
  } else {
    out.resize(count);
    reader_(offset, out);
  }
  if (count < member.bytes) return out;
  uLong crc = crc32(0, nullptr, 0);
  for (std::size_t at = 0; at < out.size();) {
    const auto piece = static_cast<uInt>(std::min<std::size_t>(out.size() - at, 1u << 30));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(out.data() + at), piece);
    at += piece;
  }
  if (crc != member.crc)
    throw Error::input("zip: the member's CRC-32 differs: damaged")
        .in(source_)
        .tensor(member.name)
        .at(offset);
  return out;
}

std::vector<std::byte> Archive::inflate(const Member& member, std::uint64_t offset,
                                        std::uint64_t count) const {
  const auto damaged = [&] {
    return Error::input("zip: the member does not inflate to what the directory says")
        .in(source_)
        .tensor(member.name)
        .at(offset);
  };
  const std::unique_ptr<z_stream, InflateEnd> stream(new z_stream{});
  if (inflateInit2(stream.get(), -MAX_WBITS) != Z_OK) throw Error::io("zlib cannot start");
  const bool whole = count == member.bytes;
  std::vector<std::byte> out, in(std::min<std::uint64_t>(member.stored_bytes, 1 << 18));
  std::uint64_t taken = 0;
  std::byte beyond{};
  int status = Z_OK;
  // Grows with what really comes out: a lie about the size costs no memory.
  while (status != Z_STREAM_END && (out.size() < count || whole)) {
    if (stream->avail_in == 0 && taken < member.stored_bytes) {
      const std::uint64_t piece = std::min<std::uint64_t>(in.size(), member.stored_bytes - taken);
      reader_(offset + taken, std::span(in).first(piece));
      taken += piece;
      stream->next_in = reinterpret_cast<Bytef*>(in.data());
      stream->avail_in = static_cast<uInt>(piece);
    }
    const std::size_t have = out.size();
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(count - have, 1 << 20));
    out.resize(have + room);
    // Room for one byte more shows a member that is longer than it says.
    stream->next_out =
        room > 0 ? reinterpret_cast<Bytef*>(out.data() + have) : reinterpret_cast<Bytef*>(&beyond);
    stream->avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const uInt offered = stream->avail_out;
    status = ::inflate(stream.get(), Z_NO_FLUSH);
    const uInt made = offered - stream->avail_out;
    if (room == 0 && made != 0) throw damaged();
    if (room > 0) out.resize(have + made);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) throw damaged();
    const bool dry = stream->avail_in == 0 && taken == member.stored_bytes;
    if (status != Z_STREAM_END && made == 0 && dry) throw damaged();
  }
  if (out.size() != count || (whole && status != Z_STREAM_END)) throw damaged();
  return out;
}

}  // namespace assay::zip
