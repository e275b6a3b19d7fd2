// Walks through a tar archive as it comes (ustar, pax, GNU's long names): which files it would write, and which of its
// names and links lead out of the folder it is unpacked in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/system/finding_collector.h"

namespace assay {

struct TarMember {
  std::string name;  // without "./" before it
  std::string link;  // where it leads to
  std::uint64_t size = 0;
  char type = '0';  // of the header; '0' a file, '5' a folder, '1' and '2' links
  bool is_file() const { return type == '0' || type == '\0' || type == '7'; }
};

// Hears of the files in the archive.
class TarListener {
 public:
  virtual ~TarListener() = default;
  virtual void begin_file(const TarMember&) {}
  virtual void file_bytes(std::span<const std::byte>) {}
  virtual void end_file() {}
};

class TarWalk {
 public:
  // `image`: a container's file system, where links may lead anywhere.
  explicit TarWalk(bool image = false, TarListener* listener = nullptr)
      : image_(image), listener_(listener) {}

  // Throws Error::input, with the offset in the archive, where it is malformed.
  void consume(std::span<const std::byte> bytes);
  void finish();
  Findings take_findings() { return findings_.take(); }  // what is hostile in it, or not understood
  std::uint64_t files() const { return files_; }

 private:
  static constexpr std::size_t kBlock = 512;
  void take_header();
  void take_extension(std::string_view text);
  void take_member(TarMember member);
  void end_member();
  void check(const TarMember& member);
  void tell(std::string code, std::string name, std::string message, Severity severity = Severity::error);

  const bool image_;
  TarListener* const listener_;
  std::array<std::byte, kBlock> block_{};
  std::size_t filled_ = 0;
  std::uint64_t position_ = 0;            // in the archive
  std::uint64_t left_ = 0, padding_ = 0;  // of the member
  char kind_ = '\0';                      // what is being read: a file, or an extension
  bool in_file_ = false;                  // a listener waits for its end
  std::string extension_;                 // pax records or a long name, as far as read
  std::string long_name_, long_link_;     // for the next member
  std::uint64_t long_size_ = 0;
  bool has_long_size_ = false, sparse_ = false;
  bool ended_ = false;
  std::uint64_t files_ = 0;
  FindingCollector findings_;
};

}  // namespace assay
