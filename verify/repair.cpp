#include "verify/repair.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/formats/hash/hasher.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::size_t kBlock = 1u << 20;

struct Interrupted {};

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted{};
}

struct RepairTarget {
  Digest digest;
  std::optional<std::uint64_t> size;
  std::vector<Digest> chunks;
  std::uint64_t chunk_bytes = 0;
  Trust trust;
};

RepairTarget target_of(const fs::path& file, const FindOptions& find) {
  const Expectation expectation = find_expectation(file, find);
  if (expectation.files.size() != 1 || !expectation.files[0].digest) {
    throw Error::usage("nobody says what this file should be").in(file).remedy("give --manifest or --sha256");
  }
  const ExpectedFile& expected = expectation.files[0];
  return {*expected.digest, expected.size, *expected.chunks, expectation.chunk_bytes, *expected.trust};
}

// Whole digest of a file, feeding `sink` on the way.
HashResult hash_one(const fs::path& path, DigestKind kind, ByteSink* sink, int jobs, Progress& progress) {
  HashResult result;
  HashOptions options;
  options.jobs = jobs;
  options.progress = &progress;
  const HashJob job{path, kind, sink};
  hash_files(std::span(&job, 1), options, [&](std::size_t, HashResult&& r) { result = std::move(r); });
  if (result.error) throw *result.error;
  if (!result.complete) throw Interrupted{};
  if (result.changed)
    throw Error::refused("changed while it was read").in(path).remedy("stop what writes to it");
  return result;
}

// Calls body(offset, bytes) for the pieces of `range`; a short read is the file's end.
template <typename Body>
void for_each_block(const File& file, const ByteRange& range, Body&& body) {
  std::vector<std::byte> buffer(kBlock);
  for (std::uint64_t at = range.begin; at < range.end;) {
    stop_if_interrupted();
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, range.end - at));
    const std::size_t got = file.read_at(at, std::span(buffer).first(wanted));
    body(at, std::span<const std::byte>(buffer).first(got));
    if (got < wanted) return;
    at += got;
  }
}

Digest digest_of_range(const File& file, const ByteRange& range) {
  ChunkSink sink(range.end - range.begin);
  for_each_block(file, range, [&](std::uint64_t, std::span<const std::byte> bytes) { sink.consume(bytes); });
  sink.finish();
  return sink.digests().empty() ? Digest{} : sink.digests()[0];
}

void refuse_bad_copy(const File& copy, const RepairTarget& target, std::span<const ByteRange> ranges,
                     std::uint64_t size) {
  std::string bad;
  for (const ByteRange& range : ranges) {
    for (std::uint64_t begin = range.begin; begin < range.end;) {
      const std::uint64_t end = begin + std::min(target.chunk_bytes, size - begin);
      const Digest& expected = target.chunks[begin / target.chunk_bytes];
      if (digest_of_range(copy, {begin, end}) != expected) {
        bad += (bad.empty() ? "" : ",") + http_range({begin, end});
      }
      begin = end;
    }
  }
  if (bad.empty()) return;
  throw Error::refused(fmt::format("the copy is damaged there too, in bytes {}", bad))
      .in(copy.path())
      .remedy("take another copy");
}

// Without chunk digests nothing says which of the two is right, block by block: every difference is taken
// over, and the digest of the whole decides.
std::vector<ByteRange> differences(const File& file, const File& copy, Progress& progress) {
  std::vector<ByteRange> ranges;
  std::vector<std::byte> other(kBlock);
  for_each_block(copy, {0, copy.size()}, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    const std::size_t got = file.read_at(at, std::span(other).first(bytes.size()));
    progress.add(bytes.size());
    if (got == bytes.size() && std::equal(bytes.begin(), bytes.end(), other.begin())) return;
    if (!ranges.empty() && ranges.back().end == at)
      ranges.back().end = at + bytes.size();
    else
      ranges.push_back({at, at + bytes.size()});
  });
  return ranges;
}

// The first `bytes` of `from` into the empty file `to`: shared extents where the file system can, else copied
// inside the kernel, else through our hands.
void clone_bytes(const File& from, AtomicFile& to, std::uint64_t bytes) {
  if (::ioctl(to.descriptor(), FICLONE, from.descriptor()) == 0) return;
  off_t in = 0, out = 0;
  while (static_cast<std::uint64_t>(in) < bytes) {
    stop_if_interrupted();
    const auto piece = std::min<std::uint64_t>(bytes - static_cast<std::uint64_t>(in), 64 * kBlock);
    const ssize_t n = ::copy_file_range(from.descriptor(), &in, to.descriptor(), &out, piece, 0);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && errno == ENOSPC)
      throw Error::from_errno("copy", errno).in(to.temporary()).remedy("free some space");
    break;  // not possible here
  }
  for_each_block(from, {static_cast<std::uint64_t>(in), bytes},
                 [&](std::uint64_t at, std::span<const std::byte> block) { to.write_at(at, block); });
}

void keep_mode_and_owner(const File& from, const AtomicFile& to) {
  struct stat s {};
  if (::fstat(from.descriptor(), &s) != 0) return;
  // Best effort: the bytes are what matters, and only root may give files away.
  if (::fchown(to.descriptor(), s.st_uid, s.st_gid) != 0) errno = 0;
  if (::fchmod(to.descriptor(), s.st_mode & 07777) != 0) errno = 0;
}

class Repair {
 public:
  Repair(const fs::path& file, const fs::path& copy, const RepairOptions& options)
      : options_(options),
        target_(target_of(file, options.find)),
        file_(File::open(fs::canonical(file))),  // of a link, what it links to: a hub cache's blob
        copy_(File::open(copy)),
        size_(target_.size.value_or(copy_.size())) {
    if (file_.identity().device == copy_.identity().device &&
        file_.identity().inode == copy_.identity().inode) {
      throw Error::refused("the copy is the file itself").in(copy).remedy("name another copy");
    }
    report_.digest = target_.digest;
    report_.trust = target_.trust;
  }

  RepairReport run() {
    try {
      if (examine()) return report_;
      if (options_.dry_run) {
        report_.outcome = RepairOutcome::damaged;
        return report_;
      }
      mend();
      report_.outcome = RepairOutcome::repaired;
    } catch (const Interrupted&) {
      report_.outcome = RepairOutcome::interrupted;
    }
    return report_;
  }

 private:
  // True when nothing is wrong.
  bool examine() {
    Progress progress(options_.progress, "examining", file_.size() + copy_.size());
    ChunkSink sink(std::max<std::uint64_t>(target_.chunk_bytes, 1), target_.chunks.size());
    const bool chunked = !target_.chunks.empty();
    const HashResult now =
        hash_one(file_.path(), target_.digest.kind, chunked ? &sink : nullptr, options_.jobs, progress);
    if (now.digest == target_.digest) return true;
    if (chunked) {
      report_.ranges = damaged_ranges(sink.digests(), target_.chunks, target_.chunk_bytes, size_);
      refuse_bad_copy(copy_, target_, report_.ranges, size_);
    } else {
      if (copy_.size() != size_) {
        throw Error::refused(fmt::format("the copy is {} bytes long and should be {}", copy_.size(), size_))
            .in(copy_.path());
      }
      report_.ranges = differences(file_, copy_, progress);
    }
    for (const ByteRange& range : report_.ranges) report_.bytes += range.end - range.begin;
    report_.surplus = file_.size() > size_ ? file_.size() - size_ : 0;
    if (report_.ranges.empty() && report_.surplus == 0) {
      throw Error::refused(chunked
                               ? "every chunk is right and the whole is not: the manifest contradicts itself"
                               : "the copy is the same, and just as wrong")
          .in(chunked ? file_.path() : copy_.path());
    }
    return false;
  }

  void mend() {
    AtomicFile mended(file_.path());
    clone_bytes(file_, mended, std::min(file_.size(), size_));
    if (::ftruncate(mended.descriptor(), static_cast<off_t>(size_)) != 0) {
      throw Error::from_errno("set the length of the new file", errno).in(mended.temporary());
    }
    for (const ByteRange& range : report_.ranges) {
      for_each_block(copy_, range,
                     [&](std::uint64_t at, std::span<const std::byte> bytes) { mended.write_at(at, bytes); });
    }
    keep_mode_and_owner(file_, mended);
    Progress progress(options_.progress, "verifying", size_);
    const HashResult result =
        hash_one(mended.temporary(), target_.digest.kind, nullptr, options_.jobs, progress);
    if (result.digest != target_.digest) {
      throw Error::refused(fmt::format("with the copy's bytes it has the {} {}, not {}: left as it was",
                                       target_.digest.kind_name(), result.digest.hex(), target_.digest.hex()))
          .in(file_.path())
          .remedy("take another copy, or use a chunked manifest");
    }
    if (file_.identity_now() != file_.identity()) {
      throw Error::refused("changed while it was being repaired: left as it is").in(file_.path());
    }
    mended.commit();
  }

  const RepairOptions& options_;
  RepairTarget target_;
  File file_, copy_;
  std::uint64_t size_;
  RepairReport report_;
};

}  // namespace

RepairReport repair(const fs::path& file, const fs::path& copy, const RepairOptions& options) {
  std::error_code error;
  if (!fs::exists(file, error)) throw Error::input("no such file").in(file).remedy("copy the whole file");
  return Repair(file, copy, options).run();
}

}  // namespace assay
