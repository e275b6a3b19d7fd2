#include "verify/fix_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/system/error.h"
#include "core/system/shell_words.h"

namespace assay {
namespace {

constexpr std::string_view kBucket = "hf://buckets/";

bool is_repository_id(std::string_view id) {
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '-' && std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
  };
  const auto slash = id.find('/');
  if (slash == id.npos) return is_part(id);
  return is_part(id.substr(0, slash)) && is_part(id.substr(slash + 1));
}

// A folder of the cache: "models--ORG--NAME".
std::optional<FixSource> source_of_cache_folder(const std::string& folder) {
  for (const std::string_view type : {"model", "dataset", "space"}) {
    const std::string begin = fmt::format("{}s--", type);
    if (!folder.starts_with(begin)) continue;
    std::string id = folder.substr(begin.size());
    if (const auto dashes = id.find("--"); dashes != id.npos) id.replace(dashes, 2, "/");
    if (!is_repository_id(id)) return std::nullopt;
    return FixSource{FixSource::Kind::hub, id, type == "model" ? "" : std::string(type)};
  }
  return std::nullopt;
}

std::optional<HubCacheFile> file_of_blob(const fs::path& blob, const HubCacheFile& found) {
  const fs::path snapshots = blob.parent_path().parent_path() / "snapshots";
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator it(snapshots, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (!it->is_symlink(ignored) || fs::read_symlink(it->path(), ignored).filename() != blob.filename())
      continue;
    const fs::path inside = it->path().lexically_relative(snapshots);
    HubCacheFile named = found;
    named.commit = inside.begin()->string();
    named.file = inside.lexically_relative(named.commit).generic_string();
    return named;
  }
  return std::nullopt;
}

std::vector<std::string> download_words(const FixSource& source, const std::string& commit) {
  std::vector<std::string> words = {"hf", "download"};
  if (!source.type.empty()) words.insert(words.end(), {"--repo-type", source.type});
  if (!commit.empty()) words.insert(words.end(), {"--revision", commit});
  return words;
}

}  // namespace

std::string FixCommand::line() const {
  return shell_line(words) + (into.empty() ? "" : " | " + shell_line(into));
}

FixSource parse_fix_source(const std::string& text) {
  const auto scheme = text.find("://");
  if (text.starts_with(kBucket) && text.size() > kBucket.size()) {
    return {FixSource::Kind::bucket, text.back() == '/' ? text : text + "/", ""};
  }
  for (const std::string_view known : {"http", "https", "ftp", "file"}) {
    if (scheme != text.npos && text.substr(0, scheme) == known)
      return {FixSource::Kind::url, text.back() == '/' ? text : text + "/", ""};
  }
  for (const std::string_view type : {"dataset", "space"}) {
    const std::string begin = fmt::format("{}s/", type);
    if (text.starts_with(begin) && is_repository_id(text.substr(begin.size())))
      return {FixSource::Kind::hub, text.substr(begin.size()), std::string(type)};
  }
  if (is_repository_id(text)) return {FixSource::Kind::hub, text, ""};
  throw Error::usage(
      fmt::format("--fix-from takes ORG/NAME of the Hugging Face hub, hf://buckets/ORG/NAME, or the "
                  "address of the folder that the files lie in, not '{}'",
                  text));
}

std::optional<HubCacheFile> hub_cache_file(const fs::path& path) {
  std::string inside;
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    const fs::path repository = at.parent_path().parent_path();
    const auto source = source_of_cache_folder(repository.filename().string());
    const std::string part = at.parent_path().filename().string();
    if (source && part == "snapshots" && !inside.empty())
      return HubCacheFile{repository.parent_path(), *source, at.filename().string(), inside};
    if (source && part == "blobs" && inside.empty())
      return file_of_blob(path, {repository.parent_path(), *source, "", ""});
    inside = inside.empty() ? at.filename().string() : at.filename().string() + "/" + inside;
  }
  return std::nullopt;
}

// One name and no pattern: what is named is what is fetched, whatever characters it has.
FixCommand fetch_into_cache(const HubCacheFile& file, bool again) {
  std::vector<std::string> words = download_words(file.source, file.commit);
  words.insert(words.end(), {"--cache-dir", file.cache.string()});
  if (again) words.push_back("--force-download");
  words.insert(words.end(), {"--", file.source.repository, file.file});
  return {words};
}

FixCommand fetch_into_folder(const FixSource& source, const std::string& commit, const fs::path& folder,
                             const std::string& name, bool again) {
  if (source.kind == FixSource::Kind::bucket)
    return {{"hf", "buckets", "cp", "--", source.repository + name, (folder / name).string()}};
  std::vector<std::string> words = download_words(source, commit);
  words.insert(words.end(), {"--local-dir", folder.string()});
  if (again) words.push_back("--force-download");
  words.insert(words.end(), {"--", source.repository, name});
  return {words};
}

std::string address_of(const FixSource& source, const std::string& name) {
  std::string address = source.repository;
  for (const unsigned char c : name) {
    const bool plain = (c < 128 && std::isalnum(c) != 0) ||
                       std::string_view("-._~/").find(static_cast<char>(c)) != std::string_view::npos;
    address += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return address;
}

FixCommand fetch_whole(const std::string& address, const fs::path& file) {
  return {{"curl", "-fL", "--create-dirs", "-o", file.string(), "--", address}};
}

FixCommand fetch_rest(const std::string& address, const fs::path& file) {
  return {{"curl", "-fL", "-C", "-", "-o", file.string(), "--", address}};
}

// A server that knows no ranges sends all of the file: curl refuses what is longer than the range, and dd writes
// no more than that.
FixCommand fetch_range(const std::string& address, const fs::path& file, const ByteRange& range) {
  const std::string bytes = std::to_string(range.end - range.begin);
  return {{"curl", "-fL", "-r", http_range(range), "--max-filesize", bytes, "--", address},
          {"dd", "of=" + file.string(), "bs=1M", fmt::format("seek={}", range.begin), "count=" + bytes,
           "oflag=seek_bytes", "iflag=fullblock,count_bytes", "conv=notrunc", "status=none"}};
}

FixCommand fetch_in_parts(const std::string& address, const fs::path& file,
                          const std::optional<Digest>& expected) {
  FixCommand command{{"aria2c", "--max-connection-per-server=8", "--allow-overwrite=true",
                      "--auto-file-renaming=false", "--dir=" + file.parent_path().string(),
                      "--out=" + file.filename().string()}};
  if (expected && expected->kind == DigestKind::sha256)
    command.words.push_back("--checksum=sha-256=" + expected->hex());
  command.words.insert(command.words.end(), {"--", address});
  return command;
}

FixCommand remove_file(const fs::path& file) {
  return {{"rm", "-f", "--", file.string()}};
}

}  // namespace assay
