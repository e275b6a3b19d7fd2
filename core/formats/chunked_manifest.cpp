#include "core/formats/chunked_manifest.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "core/formats/json_events.h"
#include "core/formats/manifest_name_index.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/report.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr int kManifestDepth = 16;
constexpr int kProbeDepth = 64;  // as deep as listings may be
constexpr std::string_view kAnySchema = "assay.manifest/";

std::uint64_t chunks_of(std::uint64_t size, std::uint64_t chunk_bytes) {
  return size / chunk_bytes + (size % chunk_bytes != 0 ? 1 : 0);
}

// What the schema knows: three members of the document, four of an entry.
enum class ManifestKey : unsigned { other, schema, chunk_bytes, files, name, size, sha256, chunks };

constexpr std::string_view kKeyNames[] = {"",     "schema", "chunk_bytes", "files",
                                          "name", "size",   "sha256",      "chunks"};
constexpr ManifestKey kDocumentKeys[] = {ManifestKey::schema, ManifestKey::chunk_bytes, ManifestKey::files};
constexpr ManifestKey kEntryKeys[] = {ManifestKey::name, ManifestKey::size, ManifestKey::sha256,
                                      ManifestKey::chunks};

std::string_view name_of(ManifestKey key) {
  return kKeyNames[static_cast<unsigned>(key)];
}

// The keys of one object that were there, each once.
class KeysSeen {
 public:
  bool add(ManifestKey key) { return (std::exchange(seen_, seen_ | bit(key)) & bit(key)) == 0; }
  bool has(ManifestKey key) const { return (seen_ & bit(key)) != 0; }

 private:
  static unsigned bit(ManifestKey key) { return 1u << static_cast<unsigned>(key); }
  unsigned seen_ = 0;
};

class ChunkedManifestEvents {
 public:
  ChunkedManifestEvents(std::string_view text, const std::filesystem::path& source,
                        const ManifestReading& reading)
      : text_(text), reader_(text, kManifestDepth, *this), source_(source), reading_(reading) {}

  ChecksumManifest read() {
    reader_.read();
    require(kDocumentKeys, document_keys_, "chunked manifest");
    for (const ManifestEntry& entry : manifest_.entries) {  // chunk_bytes may come last
      if (entry.chunks->size() == chunks_of(*entry.size, manifest_.chunk_bytes)) continue;
      fail(fmt::format("\"{}\" of {} bytes has {} chunks; {} bytes each make {}", entry.name, *entry.size,
                       entry.chunks->size(), manifest_.chunk_bytes,
                       chunks_of(*entry.size, manifest_.chunk_bytes)));
    }
    return std::move(manifest_);
  }

  void null() { take("null"); }
  void boolean(bool) { take("a boolean"); }
  void other_number(double, std::string_view value) {
    if (wants_number() && value.starts_with('-')) fail(fmt::format("{} is negative", what()));
    take("a number");
  }
  void whole_number(std::uint64_t value) {
    if (!wants_number()) return take("a number");
    if (key_ == ManifestKey::size) {
      entry_.size = value;
    } else {
      if (value == 0) fail("chunk_bytes is 0");
      manifest_.chunk_bytes = value;
    }
  }
  void string(std::string_view value) {
    if (in_chunks_ && depth_ == kInChunks) {
      chunks_.push_back(digest(value));
    } else if (at_member() && key_ == ManifestKey::schema) {
      take_schema(value);
    } else if (at_member() && key_ == ManifestKey::name) {
      if (value.empty()) fail("a file's name is empty");
      entry_.name = value;
    } else if (at_member() && key_ == ManifestKey::sha256) {
      entry_.digest = digest(value);
    } else {
      take("a string");
    }
  }

  void key(std::string_view name) {
    if (!at_member()) return;
    key_ = ManifestKey::other;
    const bool of_document = depth_ == kInDocument;
    for (const ManifestKey known : of_document ? std::span<const ManifestKey>(kDocumentKeys) : kEntryKeys) {
      if (name_of(known) == name) key_ = known;
    }
    KeysSeen& seen = of_document ? document_keys_ : entry_keys_;
    if (key_ != ManifestKey::other && !seen.add(key_))
      fail(fmt::format("JSON has the key \"{}\" twice", name));
  }

  void start_object() {
    if (in_files_ && depth_ == kInFiles) {
      entry_ = {};
      entry_keys_ = {};
      chunks_.clear();
    } else if (depth_ > 0) {
      take("an object");
    }
    ++depth_;
  }
  void end_object() {
    if (--depth_ == kInFiles && in_files_) finish_entry();
  }
  void start_array() {
    if (depth_ == 0) fail("chunked manifest is not a JSON object");
    if (at_member() && key_ == ManifestKey::files)
      in_files_ = true;
    else if (at_member() && key_ == ManifestKey::chunks)
      in_chunks_ = true;
    else
      take("a list");
    ++depth_;
  }
  void end_array() {
    if (--depth_ == kInEntry) in_chunks_ = false;
    if (depth_ == kInDocument) in_files_ = false;
  }
  [[noreturn]] void fail(std::string message) const {
    throw Error::input(std::move(message)).in(source_).at(reader_.position());
  }

 private:
  // Containers open where these stand: {"files": [{"chunks": [
  static constexpr int kInDocument = 1, kInFiles = 2, kInEntry = 3, kInChunks = 4;

  bool at_member() const { return depth_ == kInDocument || (in_files_ && depth_ == kInEntry); }
  bool wants_number() const {
    return at_member() && (key_ == ManifestKey::size || key_ == ManifestKey::chunk_bytes);
  }

  // What is being read, for people.
  std::string what() const {
    if (depth_ == kInDocument) return std::string(name_of(key_));
    const std::string of = entry_.name.empty() ? fmt::format("file {}", manifest_.entries.size() + 1)
                                               : fmt::format("\"{}\"", entry_.name);
    return in_chunks_ ? "a chunk of " + of : fmt::format("{} of {}", name_of(key_), of);
  }

  // A value that nothing above has taken: of a key that the schema does not know, or of the wrong kind.
  void take(std::string_view kind) const {
    if (depth_ == 0) fail("chunked manifest is not a JSON object");
    if (in_files_ && depth_ == kInFiles) fail("an entry of \"files\" is not an object");
    if (in_chunks_ && depth_ == kInChunks) fail(fmt::format("{} is {}, not a string", what(), kind));
    if (!at_member() || key_ == ManifestKey::other) return;
    if (key_ == ManifestKey::files || key_ == ManifestKey::chunks)
      fail(fmt::format("\"{}\" is not a list", name_of(key_)));
    fail(fmt::format("{} is {}, not a {}", what(), kind, wants_number() ? "whole number" : "string"));
  }

  void take_schema(std::string_view schema) const {
    if (schema == kManifestSchema) return;
    throw Error::input(fmt::format("has the schema \"{}\", not \"{}\"", schema, kManifestSchema))
        .in(source_)
        .at(reader_.position())
        .remedy("if a newer assay wrote it, use that one");
  }

  Digest digest(std::string_view hex) const {
    const auto digest = Digest::parse(DigestKind::sha256, hex);
    if (!digest) fail(fmt::format("{} is not 64 hex digits", what()));
    return *digest;
  }

  void require(std::span<const ManifestKey> keys, const KeysSeen& seen, std::string_view whose) const {
    for (const ManifestKey key : keys) {
      if (!seen.has(key)) fail(fmt::format("{} lacks \"{}\"", whose, name_of(key)));
    }
  }

  void finish_entry() {
    require(kEntryKeys, entry_keys_, "an entry of a chunked manifest");
    auto& entries = manifest_.entries;
    if (reading_.passing != nullptr) reading_.passing->passed(reader_.position());
    if (entries.size() >= kEntriesAlwaysKept && reading_.wanted && !reading_.wanted(entry_.name)) return;
    if (by_name_.find_or_add(entry_.name, entries, entries.size()))
      fail(fmt::format("\"{}\" is listed twice", entry_.name));
    if (!chunks_.empty()) entry_.chunks = std::vector<Digest>(chunks_);  // no larger than it has to be
    entries.push_back(std::move(entry_));
  }

  const std::string_view text_;
  JsonEventReader<ChunkedManifestEvents> reader_;
  const std::filesystem::path& source_;
  const ManifestReading& reading_;
  ChecksumManifest manifest_;
  ManifestNameIndex by_name_;
  int depth_ = 0;  // containers open
  bool in_files_ = false, in_chunks_ = false;
  ManifestKey key_ = ManifestKey::other;  // of the innermost open object, where the schema knows that
  KeysSeen document_keys_, entry_keys_;
  ManifestEntry entry_;         // the open one
  std::vector<Digest> chunks_;  // of it
};

// Looks for the member of a document that tells whether it is a manifest.
class ManifestProbe {
 public:
  explicit ManifestProbe(std::string_view text) : reader_(text, kProbeDepth, *this) {}

  bool found() {
    try {
      reader_.read();
    } catch (const NotJson&) {
      return false;
    }
    return found_;
  }

  void null() {}
  void boolean(bool) {}
  void whole_number(std::uint64_t) {}
  void other_number(double, std::string_view) {}
  void string(std::string_view value) {
    if (at_member("schema")) found_ = value.starts_with(kAnySchema);
  }
  void key(std::string_view name) {
    if (depth_ == 1) key_ = name;
  }
  void start_object() { ++depth_; }
  void end_object() { --depth_; }
  void start_array() {
    if (at_member("files")) found_ = true;
    if (depth_++ == 0) is_list_ = true;
  }
  void end_array() { --depth_; }
  bool enough() const { return found_ || is_list_; }
  [[noreturn]] void fail(const std::string&) const { throw NotJson(); }

 private:
  struct NotJson {};
  bool at_member(std::string_view name) const { return depth_ == 1 && key_ == name; }

  JsonEventReader<ManifestProbe> reader_;
  std::string key_;  // of the document's member that is being read
  int depth_ = 0;    // containers open
  bool found_ = false;
  bool is_list_ = false;  // the document is an array: its elements tell nothing
};

}  // namespace

bool is_chunked_manifest(std::string_view text) {
  return ManifestProbe(text).found();
}

ChecksumManifest parse_chunked_manifest(std::string_view text, const std::filesystem::path& source,
                                        const ManifestReading& reading) {
  return ChunkedManifestEvents(text, source, reading).read();
}

std::string render_chunked_manifest(const ChecksumManifest& manifest) {
  if (manifest.chunk_bytes == 0) throw Error::internal("a chunked manifest needs chunk_bytes");
  std::string text = fmt::format("{{\"schema\": \"{}\", \"chunk_bytes\": {},\n \"files\": [", kManifestSchema,
                                 manifest.chunk_bytes);
  std::string_view separator = "\n  ";
  for (const ManifestEntry& entry : manifest.entries) {
    if (!is_valid_utf8(entry.name)) {
      throw Error::input(
          fmt::format("the name \"{}\" is not UTF-8, which a JSON manifest cannot hold", entry.name))
          .remedy("rename the file, or make a plain manifest");
    }
    if (!entry.size || entry.chunks->size() != chunks_of(*entry.size, manifest.chunk_bytes)) {
      throw Error::internal(fmt::format("the chunks of \"{}\" do not cover its size", entry.name));
    }
    text += fmt::format(R"({}{{"name":{},"size":{},"sha256":"{}","chunks":[)", separator,
                        dump_json(Json(entry.name), -1), *entry.size, entry.digest.hex());
    std::string_view comma;
    for (const Digest& chunk : *entry.chunks) {
      text.append(comma).append("\"").append(chunk.hex()).append("\"");
      comma = ",";
    }
    text += "]}";
    separator = ",\n  ";
  }
  return text + "\n ]}\n";
}

}  // namespace assay
