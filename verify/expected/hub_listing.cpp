#include "verify/expected/hub_listing.h"

#include <fmt/format.h>

#include <set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "verify/expected/assemble.h"

namespace assay {
namespace {

// The tree API serves 1000 entries a page (100 with expand=true), and links to the next in an HTTP header
// that a saved body has lost.
constexpr std::size_t kPageEntries = 1000;
constexpr std::size_t kMaxPages = 10'000;
constexpr std::uint64_t kTreeCacheVersion = 1;

// nullptr where the key is absent or null: APIs write both for "has none".
const ParsedJson* member(const ParsedJson& object, std::string_view key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

class ListingReader {
 public:
  ListingReader(HubListing& out, const fs::path& source) : out_(out), source_(source) {}

  void tree_page(const ParsedJson& page) {
    last_page_ = page.size();
    for (const ParsedJson& item : page) {
      if (item.is_array())
        tree_page(item);  // pages collected into one array of arrays
      else
        tree_item(object(item, "an entry"));
    }
  }

  void siblings(const ParsedJson& document) {
    if (const ParsedJson* sha = member(document, "sha")) out_.commit = json_string(*sha, "sha", source_);
    for (const ParsedJson& item : array(document, "siblings")) {
      object(item, "a sibling");
      add(text(item, "rfilename"), member(item, "lfs"), "sha256", member(item, "blobId"),
          member(item, "size"), member(item, "xetHash"));
    }
  }

  void tree_cache(const ParsedJson& files) {
    for (const auto& [name, item] : files.items()) {
      object(item, "an entry");
      const bool lfs = member(item, "lfs_sha256") != nullptr;
      const ParsedJson* lfs_size = lfs ? member(item, "lfs_size") : nullptr;
      add(name, lfs ? &item : nullptr, "lfs_sha256", member(item, "blob_id"),
          lfs_size != nullptr ? lfs_size : member(item, "size"), member(item, "xet_hash"));
    }
  }

  void model_scope(const ParsedJson& data) {
    for (const ParsedJson& item : array(data, "Files")) {
      object(item, "an entry");
      const ParsedJson* type = member(item, "Type");
      if (type != nullptr && *type == "tree") continue;
      const ParsedJson* digest = member(item, "Sha256");
      const bool has_digest =
          digest != nullptr && !(digest->is_string() && digest->get_ref<const std::string&>().empty());
      add(text(item, "Path"), has_digest ? &item : nullptr, "Sha256", nullptr, member(item, "Size"), nullptr);
    }
  }

  void finish() {
    if (last_page_ == kPageEntries) partial(fmt::format("ends with a full page of {} entries", kPageEntries));
    for (const auto& [name, ignored] : out_.files) {
      for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
        folders_.erase(name.substr(0, slash));
      }
    }
    // A folder holds at least one file in git: an empty one was not asked for.
    if (!folders_.empty()) partial(fmt::format("does not go into the folder {}", *folders_.begin()));
  }

 private:
  void tree_item(const ParsedJson& item) {
    const std::string& type = text(item, "type");
    const std::string& path = text(item, "path");
    if (type == "directory") folders_.insert(path);
    if (type != "file") return;
    const ParsedJson* xet = member(item, "xetHash");
    if (xet == nullptr) xet = member(item, "xet_hash");  // as huggingface_hub names it where it prints it
    add(path, member(item, "lfs"), "oid", member(item, "oid"), member(item, "size"), xet);
  }

  // `sha256_holder[sha256_key]` for files kept in LFS or Xet, `blob_id` otherwise; of a file that has neither,
  // its Xet hash.
  void add(const std::string& name, const ParsedJson* sha256_holder, std::string_view sha256_key,
           const ParsedJson* blob_id, const ParsedJson* size, const ParsedJson* xet) {
    if (!accept_name(name, out_.findings)) return;
    HubListing::Entry entry;
    if (sha256_holder != nullptr) {
      const std::string hex = text(object(*sha256_holder, "lfs"), sha256_key);
      entry.digest = parse(DigestKind::sha256, hex.starts_with("sha256:") ? hex.substr(7) : hex, name);
    } else if (blob_id != nullptr) {
      entry.digest = parse(DigestKind::git_sha1, json_string(*blob_id, "git object id", source_), name);
    }
    if (size != nullptr) entry.size = json_u64(*size, "size", source_);
    const bool alone = sha256_holder == nullptr && blob_id == nullptr;
    if (xet != nullptr) entry.xet = parse_xet(json_string(*xet, "Xet hash", source_), name, alone);
    if (alone) entry.digest = entry.xet;
    const auto [it, fresh] = out_.files.try_emplace(name, entry);
    if (fresh || (it->second.digest == entry.digest && it->second.size == entry.size)) return;
    out_.findings.push_back({.severity = Severity::error,
                             .code = "expected.contradiction",
                             .message = "is listed twice, with different digests or sizes; the first is used",
                             .file = name});
  }

  std::optional<Digest> parse(DigestKind kind, std::string_view hex, const std::string& name) {
    const auto digest = Digest::parse(kind, hex);
    if (!digest) {
      out_.findings.push_back(
          {.severity = Severity::error,
           .code = "listing.bad_digest",
           .message = fmt::format("has no digest: '{}' in {} is none", hex, source_.string()),
           .file = name});
    }
    return digest;
  }

  // Where another digest is there, that one counts, and a bad Xet hash harms nothing.
  std::optional<Digest> parse_xet(std::string_view hex, const std::string& name, bool alone) {
    if (alone) return parse(DigestKind::xet, hex, name);
    const auto digest = Digest::parse(DigestKind::xet, hex);
    if (!digest) {
      out_.findings.push_back(
          {.severity = Severity::warning,
           .code = "listing.bad_xet",
           .message = fmt::format("has no Xet hash: '{}' in {} is none", hex, source_.string()),
           .file = name});
    }
    return digest;
  }

  void partial(std::string why) {
    if (!out_.complete) return;
    out_.complete = false;
    out_.findings.push_back(
        {.severity = Severity::warning,
         .code = "listing.partial",
         .message = fmt::format("{} {}: files that it lacks are not missed", source_.string(), why),
         .remedy = "save every page, with recursive=true"});
  }

  const ParsedJson& object(const ParsedJson& value, std::string_view what) {
    if (value.is_object()) return value;
    throw Error::input(fmt::format("{} of the listing is {}, not an object", what, value.type_name()))
        .in(source_);
  }
  const ParsedJson& array(const ParsedJson& holder, std::string_view key) {
    const ParsedJson* value = member(holder, key);
    if (value != nullptr && value->is_array()) return *value;
    throw Error::input(fmt::format("\"{}\" of the listing is not an array", key)).in(source_);
  }
  const std::string& text(const ParsedJson& holder, std::string_view key) {
    const ParsedJson* value = member(holder, key);
    if (value == nullptr)
      throw Error::input(fmt::format("an entry of the listing has no \"{}\"", key)).in(source_);
    return json_string(*value, key, source_);
  }

  HubListing& out_;
  const fs::path& source_;
  std::set<std::string> folders_;
  std::size_t last_page_ = 0;  // entries in the last page of a tree listing
};

// Length of the first JSON document in `text`, which starts with '[' or '{': up to the matching bracket.
std::size_t document_length(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

const ParsedJson* model_scope_data(const ParsedJson& document) {
  const ParsedJson* data = member(document, "Data");
  return data != nullptr && data->is_object() && member(*data, "Files") != nullptr ? data : nullptr;
}

}  // namespace

HubListing parse_hub_listing(std::string_view text, const fs::path& source) {
  HubListing out;
  ListingReader reader(out, source);
  text = trim(text);
  if (text.empty()) throw Error::input("is empty, not a hub listing").in(source);
  for (std::size_t page = 0; !text.empty(); ++page) {
    if (page == kMaxPages)
      throw Error::input(fmt::format("holds more than {} documents", kMaxPages)).in(source);
    const std::size_t length = text.front() == '[' ? document_length(text) : text.size();
    const ParsedJson document = parse_json(text.substr(0, length), source);
    text = trim(text.substr(length));
    if (document.is_array()) {
      reader.tree_page(document);
    } else if (document.contains("siblings")) {
      reader.siblings(document);
    } else if (const ParsedJson* files = member(document, "files"); files != nullptr && files->is_object()) {
      reader.tree_cache(*files);
    } else if (const ParsedJson* data = model_scope_data(document)) {
      reader.model_scope(*data);
    } else {
      throw Error::input("is JSON, but no hub listing known here").in(source);
    }
  }
  reader.finish();
  return out;
}

std::optional<HubListing> read_tree_cache(const fs::path& path) {
  const auto broken = [&](std::string what) {
    return Error::input(std::move(what))
        .in(path)
        .remedy("delete it: what else the download says of its files remains; or download again");
  };
  ParsedJson document;
  try {
    document = read_json(path);
  } catch (Error& error) {
    throw error.remedy(broken({}).remedy());
  }
  if (!document.is_object() || !document.contains("format_version"))
    throw broken("is no tree listing of huggingface_hub");
  if (document["format_version"] != kTreeCacheVersion) return std::nullopt;
  const ParsedJson* files = member(document, "files");
  if (files == nullptr || !files->is_object() || files->empty()) throw broken("lists no files");
  HubListing out;
  out.commit = path.stem().string();
  ListingReader(out, path).tree_cache(*files);
  for (const auto& [name, entry] : out.files) {
    if (!entry.digest && out.findings.empty()) throw broken(fmt::format("names {} without a digest", name));
  }
  return out;
}

Expectation expect_from_hub_listing(std::string_view text, const fs::path& path, const fs::path& root) {
  HubListing listing = parse_hub_listing(text, path);
  Expectation out;
  out.kind = "hub listing";
  out.origin = path.string() + (listing.commit.empty() ? "" : ", commit " + listing.commit);
  out.root = root;
  out.complete = listing.complete;
  out.ignored = {".git", ".cache"};
  out.findings = std::move(listing.findings);
  const bool beside = lies_in(path, root);
  if (beside) out.ignored.push_back(path.filename().string());
  const SharedTrust trust = Trust{TrustSource::hub_listing, path.filename().string(), beside, listing.commit};
  for (auto& [name, entry] : listing.files) {
    out.files.push_back(
        {.name = name, .digest = entry.digest, .trust = trust, .size = entry.size, .xet = boxed(entry.xet)});
  }
  finish(out);
  return out;
}

}  // namespace assay
