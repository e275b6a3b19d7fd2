#include "verify/diagnose.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "core/formats/impostor.h"
#include "core/formats/lfs_pointer.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kScanPiece = 1u << 20;
constexpr std::uint64_t kZeroStartScan = 64u << 20;

bool is_weight_file(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".safetensors" || extension == ".gguf";
}

// The first bytes, blanks and a byte order mark skipped, in lower case: how web servers begin.
std::string begin_of_text(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  std::string text(trim(head.substr(0, 256)));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Diagnosis recognise(std::string_view head, const fs::path& path) {
  if (looks_like_html(head)) {
    return {"html_page", "is an HTML page, not the file (a login page, a rate limit or a mirror's error)",
            "download it again and look at the URL"};
  }
  const std::string text = begin_of_text(head);
  if (text.starts_with("<?xml") && (text.find("<error") != std::string::npos)) {
    return {"xml_error", "is an XML error message from a storage server, not the file", "download it again"};
  }
  if (!is_weight_file(path)) return {};
  if (text.starts_with("{\"error") || text.starts_with("{\"message") || text.starts_with("{\"detail")) {
    return {"json_error", "is a JSON error message from a server, not the file", "download it again"};
  }
  if (text.starts_with("invalid username or password") || text.starts_with("access to model") ||
      text.starts_with("entry not found") || text.starts_with("repository not found")) {
    return {"text_error", "is an error message from the hub, not the file",
            "log in, accept the licence, download again"};
  }
  return {};
}

Diagnosis recognise_pointer(std::string_view head, std::optional<std::uint64_t> expected_size,
                            const std::optional<Digest>& expected) {
  const auto pointer = parse_lfs_pointer(head);
  if (!pointer || head.empty()) return {};
  std::string sentence = fmt::format("is still a git-lfs pointer; {} expected",
                                     human_bytes(expected_size.value_or(pointer->size)));
  if (expected && expected->kind == DigestKind::sha256 && pointer->checkout_digest() != *expected) {
    sentence += ", and it points to another object than the one expected";
  }
  return {"lfs_pointer", sentence, "run git lfs pull, or download the file itself"};
}

Diagnosis compare_size(std::uint64_t size, std::uint64_t expected) {
  if (size < expected) {
    return {"truncated",
            fmt::format("is truncated by {} bytes ({} of {})", with_thousands(expected - size),
                        with_thousands(size), with_thousands(expected)),
            "resume or repeat the download"};
  }
  return {"too_long",
          fmt::format("is {} bytes too long ({} instead of {})", with_thousands(size - expected),
                      with_thousands(size), with_thousands(expected)),
          "download it again"};
}

// Where the run of zeros that ends at the end of the file begins; the file's size when there is none.
std::uint64_t zero_tail_begin(const File& file) {
  std::vector<std::byte> piece(kScanPiece);
  std::uint64_t end = file.size();
  while (end > 0) {
    const std::uint64_t begin = end > kScanPiece ? end - kScanPiece : 0;
    const auto window = std::span(piece).first(file.read_at(begin, std::span(piece).first(end - begin)));
    const auto last =
        std::find_if(window.rbegin(), window.rend(), [](std::byte b) { return b != std::byte{0}; });
    if (last != window.rend()) return begin + static_cast<std::uint64_t>(window.rend() - last);
    end = begin;
  }
  return 0;
}

// How far the zeros reach is read only up to a limit: this is one of the checks that cost nothing.
Diagnosis zero_start(const File& file) {
  const std::string_view remedy = "download it again";
  std::vector<std::byte> piece(kScanPiece);
  std::uint64_t zeros = 0;
  while (zeros < kZeroStartScan && zeros < file.size()) {
    const auto window = std::span(piece).first(file.read_at(zeros, piece));
    if (window.empty()) break;
    const auto first =
        std::find_if(window.begin(), window.end(), [](std::byte b) { return b != std::byte{0}; });
    zeros += static_cast<std::uint64_t>(first - window.begin());
    if (first != window.end()) break;
  }
  if (zeros == file.size()) {
    return {"zero_filled",
            fmt::format("is zero-filled from byte 0 to its end ({} bytes)", with_thousands(zeros)),
            std::string(remedy)};
  }
  return {"zero_start",
          fmt::format("begins with zeros: its first {} bytes{} were never written", with_thousands(zeros),
                      zeros >= kZeroStartScan ? " (or more)" : ""),
          std::string(remedy)};
}

}  // namespace

Diagnosis diagnose_cheaply(const File& file, std::optional<std::uint64_t> expected_size,
                           const std::optional<Digest>& expected) {
  std::array<std::byte, kFirstLook> buffer;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), buffer.size()));
  const std::size_t size = file.read_at(0, std::span(buffer).first(wanted));
  return diagnose_cheaply(file, std::span(buffer).first(size), expected_size, expected);
}

Diagnosis diagnose_cheaply(const File& file, std::span<const std::byte> head,
                           std::optional<std::uint64_t> expected_size,
                           const std::optional<Digest>& expected) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const bool right_size = expected_size && *expected_size == file.size();

  // A file of the expected size may legitimately be HTML, or even a pointer: its digest will tell.
  if (!right_size) {
    if (file.size() < kLfsPointerMaxBytes) {
      if (Diagnosis pointer = recognise_pointer(text, expected_size, expected)) return pointer;
    }
    const bool html_by_name = file.path().extension() == ".html" || file.path().extension() == ".htm";
    if (Diagnosis known = recognise(text, file.path()); known && !html_by_name) return known;
  }
  if (expected_size && file.size() == 0 && *expected_size != 0) {
    return {"empty", fmt::format("is empty; {} expected", human_bytes(*expected_size)), "download it again"};
  }
  if (expected_size && !right_size) return compare_size(file.size(), *expected_size);
  if (is_weight_file(file.path()) && head.size() >= 8 && all_zero(head.first(8))) return zero_start(file);
  return {};
}

Diagnosis diagnose_content(const File& file, std::optional<std::uint64_t> expected_size, ZeroRun zeros) {
  if (const Holes holes = find_holes(file); holes.bytes >= kZeroRun) {
    return {"never_written",
            fmt::format("has {} bytes that were never written, the first at byte {}",
                        with_thousands(holes.bytes), with_thousands(holes.first)),
            "the download was preallocated and not finished: resume or repeat it"};
  }
  const std::uint64_t tail = zero_tail_begin(file);
  if (file.size() - tail >= kZeroRun) {
    return {"zero_filled",
            fmt::format("is zero-filled from byte {} to its end ({} bytes)", with_thousands(tail),
                        with_thousands(file.size() - tail)),
            "resume the download from there, or repeat it"};
  }
  const std::string_view wrong = expected_size ? "has the right size but wrong bytes" : "has wrong bytes";
  if (zeros.bytes >= kZeroRun) {
    return {"zero_run",
            fmt::format("{}; the longest run of zeros, {} bytes, begins at byte {}", wrong,
                        with_thousands(zeros.bytes), with_thousands(zeros.begin)),
            "if weights belong there, that piece was never written: download it again"};
  }
  return {"wrong_bytes", std::string(wrong), "download it again; the disk or the mirror may be at fault"};
}

std::string sentence_of(const Error& error) {
  return error.offset() ? fmt::format("{} at byte {}", error.message(), *error.offset()) : error.message();
}

Holes find_holes(const File& file) {
  Holes holes;
  const auto size = static_cast<off_t>(file.size());
  off_t at = 0;
  // A hostile file may have millions of holes; after some thousands their exact sum no longer matters.
  for (int steps = 0; at < size && steps < 4096; ++steps) {
    const off_t hole = ::lseek(file.descriptor(), at, SEEK_HOLE);
    if (hole < 0 || hole >= size) break;
    off_t data = ::lseek(file.descriptor(), hole, SEEK_DATA);
    if (data < 0 || data > size) data = size;
    if (holes.bytes == 0) holes.first = static_cast<std::uint64_t>(hole);
    holes.bytes += static_cast<std::uint64_t>(data - hole);
    at = data;
  }
  return holes;
}

}  // namespace assay
