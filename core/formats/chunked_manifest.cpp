#include "core/formats/chunked_manifest.h"

#include <fmt/format.h>

#include <unordered_set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/report.h"
#include "core/system/text.h"

namespace assay {
namespace {

// 16 TB in chunks of 1 MiB.
constexpr JsonLimits kLimits{.max_bytes = 1ull << 30, .max_depth = 16, .duplicate_keys = false};

const ParsedJson& member(const ParsedJson& object, const char* key, const std::filesystem::path& source) {
  const auto it = object.find(key);
  if (it == object.end()) throw Error::input(fmt::format("chunked manifest lacks \"{}\"", key)).in(source);
  return *it;
}

const ParsedJson& array(const ParsedJson& object, const char* key, const std::filesystem::path& source) {
  const ParsedJson& value = member(object, key, source);
  if (!value.is_array()) throw Error::input(fmt::format("\"{}\" is not a list", key)).in(source);
  return value;
}

Digest sha256(const ParsedJson& value, std::string_view what, const std::filesystem::path& source) {
  const auto digest = Digest::parse(DigestKind::sha256, json_string(value, what, source));
  if (!digest) throw Error::input(fmt::format("{} is not 64 hex digits", what)).in(source);
  return *digest;
}

std::uint64_t chunks_of(std::uint64_t size, std::uint64_t chunk_bytes) {
  return size / chunk_bytes + (size % chunk_bytes != 0 ? 1 : 0);
}

ManifestEntry parse_entry(const ParsedJson& file, std::uint64_t chunk_bytes,
                          const std::filesystem::path& source) {
  if (!file.is_object()) throw Error::input("an entry of \"files\" is not an object").in(source);
  ManifestEntry entry;
  entry.name = json_string(member(file, "name", source), "name", source);
  entry.size = json_u64(member(file, "size", source), fmt::format("size of \"{}\"", entry.name), source);
  entry.digest = sha256(member(file, "sha256", source), fmt::format("sha256 of \"{}\"", entry.name), source);
  const ParsedJson& chunks = array(file, "chunks", source);
  if (chunks.size() != chunks_of(*entry.size, chunk_bytes)) {
    throw Error::input(fmt::format("\"{}\" of {} bytes has {} chunks; {} bytes each make {}", entry.name,
                                   *entry.size, chunks.size(), chunk_bytes,
                                   chunks_of(*entry.size, chunk_bytes)))
        .in(source);
  }
  for (const ParsedJson& chunk : chunks) {
    entry.chunks.make().push_back(sha256(chunk, fmt::format("a chunk of \"{}\"", entry.name), source));
  }
  return entry;
}

}  // namespace

ChecksumManifest parse_chunked_manifest(std::string_view text, const std::filesystem::path& source) {
  const ParsedJson document = parse_json(text, source, kLimits);
  if (!document.is_object()) throw Error::input("chunked manifest is not a JSON object").in(source);
  const std::string& schema = json_string(member(document, "schema", source), "schema", source);
  if (schema != kManifestSchema) {
    throw Error::input(fmt::format("has the schema \"{}\", not \"{}\"", schema, kManifestSchema))
        .in(source)
        .remedy("if a newer assay wrote it, use that one");
  }
  ChecksumManifest manifest;
  manifest.chunk_bytes = json_u64(member(document, "chunk_bytes", source), "chunk_bytes", source);
  if (manifest.chunk_bytes == 0) throw Error::input("chunk_bytes is 0").in(source);
  std::unordered_set<std::string> names;
  for (const ParsedJson& file : array(document, "files", source)) {
    manifest.entries.push_back(parse_entry(file, manifest.chunk_bytes, source));
    const std::string& name = manifest.entries.back().name;
    if (name.empty()) throw Error::input("a file's name is empty").in(source);
    if (!names.insert(name).second)
      throw Error::input(fmt::format("\"{}\" is listed twice", name)).in(source);
  }
  return manifest;
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
    Json file = {{"name", entry.name}, {"size", *entry.size}, {"sha256", entry.digest.hex()}};
    Json& chunks = file["chunks"] = Json::array();
    for (const Digest& chunk : *entry.chunks) chunks.push_back(chunk.hex());
    text += separator;
    text += dump_json(file, -1);
    separator = ",\n  ";
  }
  return text + "\n ]}\n";
}

}  // namespace assay
