#include "verify/expected/ollama_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/json.h"
#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/tree_names.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_names.h"

namespace assay {
namespace {

constexpr JsonLimits kManifestLimits{.max_bytes = 64ull << 20, .max_depth = 32};
constexpr std::string_view kLayerType = "application/vnd.ollama.image.";
constexpr std::string_view kBlobPrefix = "sha256-";

// Docker Model Runner's store has a folder for each algorithm.
bool is_store(const fs::path& path) {
  return is_folder(path / "manifests") && is_folder(path / "blobs") && !is_folder(path / "blobs" / "sha256");
}

// "sha256:HEX", and "sha256-HEX" as older versions wrote it. Anything else names no blob, least of all a path.
std::optional<Digest> parse_layer_digest(std::string_view text) {
  if (!text.starts_with("sha256:") && !text.starts_with(kBlobPrefix)) return std::nullopt;
  return Digest::parse(DigestKind::sha256, text.substr(kBlobPrefix.size()));
}

// What a layer's file is called in reports: weights by an ending that says what they are.
std::string layer_name(const std::string& media_type, const std::string& given) {
  std::string kind = media_type.starts_with(kLayerType) ? media_type.substr(kLayerType.size()) : "layer";
  if (kind == "tensor" && !given.empty()) return "tensors/" + given;
  if (kind == "json" && !given.empty()) return "files/" + given;
  for (const char* weights : {"model", "projector", "adapter", "draft", "embed"}) {
    if (kind == weights) return kind + ".gguf";
  }
  return kind;
}

class Store {
 public:
  Store(fs::path root, Expectation& out) : root_(std::move(root)), out_(out) {}

  // `name`: of the manifest below the folder of manifests.
  void read_manifest(const std::string& name, const std::optional<Digest>& pin) {
    const fs::path file = root_ / "manifests" / name;
    const std::string shown = "manifests/" + name;
    const std::string text = read_small_file(file, kManifestLimits.max_bytes);
    if (pin) {
      out_.files.push_back(
          {.name = shown, .digest = *pin, .trust = Trust{TrustSource::command_line, "--digest", false}});
      pinned_ = digest_of(DigestKind::sha256, std::as_bytes(std::span(text))) == *pin;
    }
    try {
      const ParsedJson json = parse_json(text, file, kManifestLimits);
      trust_ = Trust{TrustSource::store_manifest, name, !pinned_};
      taken_.clear();
      for (const ParsedJson& layer : json.at("layers")) add_layer(name, layer, false);
      if (json.contains("config") && !json.at("config").is_null()) add_layer(name, json.at("config"), true);
    } catch (const ParsedJson::exception&) {
      out_.findings.push_back({.code = "ollama.manifest",
                               .message = "is no manifest of a model: its layers cannot be read",
                               .file = shown,
                               .remedy = "pull the model again"});
    } catch (const Error& error) {
      out_.findings.push_back({.code = "ollama.manifest",
                               .message = error.message(),
                               .file = shown,
                               .offset = error.offset(),
                               .remedy = "pull the model again"});
    }
  }

  // Blobs that no manifest names, and what is left of downloads.
  void add_others() {
    std::uint64_t orphans = 0, bytes = 0;
    std::error_code error;
    for (const TreeEntry& entry : list_names(root_ / "blobs", {})) {
      const std::string shown = "blobs/" + entry.name;
      if (named_.contains(entry.name)) continue;
      const auto digest = parse_layer_digest(entry.name);
      if (!digest) {
        tell_leftover(entry.name, shown);
        continue;
      }
      ++orphans;
      const auto size = fs::file_size(root_ / shown, error);
      if (!error) bytes += size;
      out_.files.push_back(
          {.name = shown, .digest = digest, .trust = Trust{TrustSource::blob_name, "", true}});
    }
    if (orphans == 0) return;
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "ollama.orphans",
         .message = fmt::format("{} {} of no model: {}", orphans, orphans == 1 ? "blob is" : "blobs are",
                                human_bytes(bytes)),
         .remedy = "ollama removes them when it starts, unless OLLAMA_NOPRUNE is set"});
  }

 private:
  void add_layer(const std::string& manifest, const ParsedJson& layer, bool config) {
    const auto text = [&](const char* key) {
      return layer.contains(key) && layer.at(key).is_string() ? layer.at(key).get<std::string>()
                                                              : std::string();
    };
    const std::string written = text("digest");
    const auto digest = parse_layer_digest(written);
    std::string name =
        manifest + "/" + unique(config ? "config" : layer_name(text("mediaType"), text("name")));
    if (!digest) {
      if (config && written.empty()) return;  // models made without one
      out_.findings.push_back({.code = "ollama.digest",
                               .message = fmt::format("names '{}', which is no SHA-256, as a layer", written),
                               .file = name,
                               .remedy = "pull the model again"});
      return;
    }
    if (!accept_name(name, out_.findings)) return;
    const std::string blob = std::string(kBlobPrefix) + digest->hex();
    named_.insert(blob);
    ExpectedFile file{
        .name = std::move(name), .digest = digest, .trust = trust_, .elsewhere = root_ / "blobs" / blob};
    if (layer.contains("size") && layer.at("size").is_number_unsigned())
      file.size = layer.at("size").get<std::uint64_t>();
    out_.files.push_back(std::move(file));
  }

  // A model may have several licences, or two layers of a name.
  std::string unique(std::string name) {
    const std::size_t count = ++taken_[name];
    return count == 1 ? name : fmt::format("{}-{}", name, count);
  }

  void tell_leftover(const std::string& name, const std::string& shown) {
    if (name.find("-partial") == name.npos) {
      out_.findings.push_back({.severity = Severity::warning,
                               .code = "ollama.stray",
                               .message = "is no blob: its name is no digest",
                               .file = shown});
    } else if (!name.ends_with("-partial")) {
      return;  // -partial-N: bookkeeping of the same download
    } else {
      out_.findings.push_back({.severity = Severity::warning,
                               .code = "ollama.partial",
                               .message = "is what an interrupted download has left",
                               .file = shown,
                               .remedy = "pull the model again, which goes on with it"});
    }
  }

  const fs::path root_;
  Expectation& out_;
  SharedTrust trust_;
  bool pinned_ = false;
  std::set<std::string> named_;               // blobs
  std::map<std::string, std::size_t> taken_;  // names in this manifest
};

// Below the folder of manifests, those that `path` means; all of them for the store itself.
std::vector<std::string> manifests_at(const fs::path& root, const fs::path& path) {
  const fs::path folder = root / "manifests";
  const std::string inside = path.lexically_relative(folder).generic_string();
  const bool whole = path == root || path == root.parent_path() || inside == "." || inside.starts_with("..");
  std::vector<std::string> names;
  for (const TreeEntry& entry : list_names(folder, {})) {
    const bool meant = whole || entry.name == inside || entry.name.starts_with(inside + "/");
    if (meant && entry.kind == TreeEntry::Kind::regular) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<fs::path> ollama_store_of(const fs::path& path) {
  if (is_store(path)) return path;
  if (is_store(path / "models")) return path / "models";
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename().string();
    if ((name == "manifests" || name == "blobs") && is_store(at.parent_path())) return at.parent_path();
  }
  return std::nullopt;
}

Expectation expect_from_ollama(const fs::path& path, const std::optional<std::string>& pin) {
  Expectation out;
  out.kind = "Ollama store";
  out.root = *ollama_store_of(path);
  const fs::path below = path.lexically_relative(out.root);
  const bool in_blobs = !below.empty() && *below.begin() == "blobs";
  Store store(out.root, out);
  std::optional<Digest> pinned;
  if (pin && !(pinned = parse_layer_digest(*pin)))
    throw Error::usage(fmt::format("--digest takes sha256: and 64 hexadecimal digits, not '{}'", *pin));
  const std::vector<std::string> manifests =
      in_blobs ? std::vector<std::string>() : manifests_at(out.root, path);
  if (manifests.empty() && !in_blobs) throw Error::input("holds no manifest of a model").in(path);
  if (pin && manifests.size() != 1)
    throw Error::usage(fmt::format("--digest is of one manifest, and here are {}", manifests.size()))
        .remedy("name the model's manifest: models/manifests/HOST/NAMESPACE/MODEL/TAG");
  for (const std::string& name : manifests) store.read_manifest(name, pinned);
  const bool whole = path == out.root || path == out.root.parent_path() || in_blobs;
  if (whole) store.add_others();
  out.origin = manifests.size() == 1 ? manifests[0] : fmt::format("{} models", manifests.size());
  if (in_blobs) out.origin = "blobs by their own names";
  out.complete = true;
  out.owns_root = false;
  finish(out);
  if (in_blobs && !is_folder(path)) narrow_to_file(out, below.generic_string());
  return out;
}

}  // namespace assay
