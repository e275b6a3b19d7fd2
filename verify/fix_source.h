// Where files can be had again, and by which commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/verify_report.h"

namespace assay {

struct FixCommand {
  std::vector<std::string> words;
  std::vector<std::string> into = {};  // a second program that reads what the first one writes
  std::string line() const;
};

// --fix-from: a repository of the Hugging Face hub, a storage bucket there, or an address that the files lie
// below.
struct FixSource {
  enum class Kind { hub, bucket, url };
  Kind kind = Kind::url;
  std::string repository;  // hub: ORG/NAME; bucket: hf://buckets/ORG/NAME/…; else the address
  std::string type;        // hub: "", "dataset", "space"
};
FixSource parse_fix_source(const std::string& text);  // Error::usage

// A repository of the hub, in the cache that `file` lies in.
struct HubCacheFile {
  fs::path cache;
  FixSource source;
  std::string commit, file;
};
// By the file's path in a snapshot, or, of a blob, by the first link that leads to it.
std::optional<HubCacheFile> hub_cache_file(const fs::path& path);

// `again`: there is something in its place that has to be overwritten.
FixCommand fetch_into_cache(const HubCacheFile& file, bool again);
FixCommand fetch_into_folder(const FixSource& source, const std::string& commit, const fs::path& folder,
                             const std::string& name, bool again);
std::string address_of(const FixSource& source, const std::string& name);  // of a url

// By curl, from an address: a whole file, the rest of one that was cut short, or one range in place.
FixCommand fetch_whole(const std::string& address, const fs::path& file);
FixCommand fetch_rest(const std::string& address, const fs::path& file);
FixCommand fetch_range(const std::string& address, const fs::path& file, const ByteRange& range);
// By aria2c, whole and in several parts at once.
FixCommand fetch_in_parts(const std::string& address, const fs::path& file,
                          const std::optional<Digest>& expected);

FixCommand remove_file(const fs::path& file);

}  // namespace assay
