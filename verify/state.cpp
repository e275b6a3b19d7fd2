#include "verify/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kSchema = "assay.verify-state/1";
constexpr std::int64_t kSaveEvery = 5'000'000'000;  // ns
// A file written within one tick of the clock that stamps it may change again and keep its stamps (git calls
// such an entry "racily clean"). Linux ticks are 10 ms or less.
constexpr std::int64_t kQuiet = 20'000'000;  // ns

std::string key_of(const fs::path& path, DigestKind kind) {
  return fs::absolute(path).lexically_normal().string() + "#" + std::string(Digest{kind, {}}.kind_name());
}

Json entry_to_json(const VerifyState::Entry& e) {
  Json json = {{"device", e.identity.device},     {"inode", e.identity.inode},
               {"size", e.identity.size},         {"mtime_ns", e.identity.mtime_ns},
               {"ctime_ns", e.identity.ctime_ns}, {"digest", e.digest.hex()}};
  if (!e.tensors.is_null()) {
    json["numbers"] = e.numbers;
    json["tensor_digests"] = e.tensor_digests;
    json["tensors"] = e.tensors;
  }
  return json;
}

VerifyState::Entry entry_from_json(const ParsedJson& json, DigestKind kind, const fs::path& source) {
  VerifyState::Entry e;
  e.identity.device = json_u64(json.at("device"), "device", source);
  e.identity.inode = json_u64(json.at("inode"), "inode", source);
  e.identity.size = json_u64(json.at("size"), "size", source);
  e.identity.mtime_ns = json.at("mtime_ns").get<std::int64_t>();
  e.identity.ctime_ns = json.at("ctime_ns").get<std::int64_t>();
  const auto digest = Digest::parse(kind, json_string(json.at("digest"), "digest", source));
  if (!digest) throw Error::input("holds a malformed digest").in(source);
  e.digest = *digest;
  if (json.contains("tensors")) {
    e.tensors = json.at("tensors");
    e.numbers = json.at("numbers").get<bool>();
    e.tensor_digests = json.at("tensor_digests").get<bool>();
  }
  return e;
}

}  // namespace

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

VerifyState::VerifyState(fs::path file) : file_(std::move(file)) {
  if (!fs::exists(file_)) return;
  try {
    const ParsedJson document = read_json(file_, {.max_bytes = 1ull << 30});
    if (document.at("schema") != kSchema) throw Error::input("is not a state file of assay verify").in(file_);
    for (const auto& [key, value] : document.at("files").items()) {
      const bool sha1 = key.ends_with("#git-sha1");
      entries_.emplace(key, entry_from_json(value, sha1 ? DigestKind::git_sha1 : DigestKind::sha256, file_));
    }
  } catch (Error& error) {
    throw error.in(file_).remedy("delete it to start over");
  } catch (const ParsedJson::exception&) {
    throw Error::input("is not a state file of assay verify").in(file_).remedy("delete it to start over");
  }
}

std::optional<VerifyState::Entry> VerifyState::find(const fs::path& path, const FileIdentity& now,
                                                    DigestKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key_of(path, kind));
  if (it == entries_.end() || it->second.identity != now) return std::nullopt;
  return it->second;
}

void VerifyState::record(const fs::path& path, Entry entry, std::int64_t hash_started_ns) {
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(path, entry.digest.kind);
  const std::int64_t touched = std::max(entry.identity.mtime_ns, entry.identity.ctime_ns);
  if (touched + kQuiet > hash_started_ns) {
    entries_.erase(key);
  } else {
    entries_.insert_or_assign(key, std::move(entry));
  }
}

void VerifyState::save() const {
  Json files = Json::object();
  {
    const std::lock_guard lock(mutex_);
    // The keys are distinct already; operator[] would search for each.
    auto& list = files.get_ref<Json::object_t&>();
    for (const auto& [key, entry] : entries_) list.push_back({key, entry_to_json(entry)});
  }
  Json document = {{"schema", kSchema}, {"tool", ASSAY_VERSION}};
  document["files"] = std::move(files);
  AtomicFile file(file_);
  file.write(dump_json(document, 1) + "\n");
  file.commit();
}

void VerifyState::save_occasionally() {
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = wall_clock_ns();
    if (now - last_save_ns_ < kSaveEvery) return;
    last_save_ns_ = now;
  }
  save();
}

}  // namespace assay
