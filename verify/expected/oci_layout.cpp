#include "verify/expected/oci_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/tree_names.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_names.h"
#include "verify/expected/oci_layers.h"

namespace assay {
namespace {

constexpr JsonLimits kDocumentLimits{.max_bytes = 64ull << 20, .max_depth = 32};
constexpr int kDeepestIndex = 8;
constexpr std::string_view kAlgorithm = "sha256:";

class Layout {
 public:
  Layout(const fs::path& root, bool pinned, Expectation& out) : root_(root), pinned_(pinned), out_(out) {}

  // What `descriptor` names, which `shown` names: a manifest or an index of manifests.
  void follow(const ParsedJson& descriptor, const std::string& shown, int depth) {
    const auto digest = take_digest(descriptor, shown);
    if (!digest || depth > kDeepestIndex || !followed_.insert(digest->hex()).second) return;
    const fs::path file = manifest_path(*digest);
    const std::string name = file.lexically_relative(root_).generic_string();
    add({.name = name, .digest = digest, .trust = trust_for(shown), .size = size_of(descriptor)});
    std::error_code error;
    if (!fs::exists(file, error)) return;  // told as missing
    try {
      const ParsedJson json = read_json(file, kDocumentLimits);
      const std::string label = label_of(descriptor, shown);
      if (json.contains("manifests")) {
        for (const ParsedJson& one : json.at("manifests")) follow(one, label, depth + 1);
        return;
      }
      taken_.clear();
      const LayerContents contents(json, label, [this](const Digest& of) { return manifest_path(of); });
      if (const auto& problem = contents.problem()) out_.findings.push_back(*problem);
      std::size_t index = 0;
      for (const ParsedJson& layer : json.at("layers")) {
        const std::string file = add_layer(layer, label, "layer");
        contents.claim(layer, index++, file, out_);
      }
      if (json.contains("config")) add_layer(json.at("config"), label, "config");
    } catch (const ParsedJson::exception&) {
      malformed(name, "is no manifest: its layers cannot be read");
    } catch (const Error& problem) {
      malformed(name, problem.message());
    }
  }

  void add_others() {
    std::uint64_t orphans = 0, bytes = 0;
    std::error_code error;
    for (const TreeEntry& entry : list_names(root_ / "blobs" / "sha256", {})) {
      const auto digest = digest_named(entry.name);
      if (!digest || digest->kind != DigestKind::sha256 || named_.contains(entry.name)) continue;
      const std::string name = "blobs/sha256/" + entry.name;
      ++orphans;
      const auto size = fs::file_size(root_ / name, error);
      if (!error) bytes += size;
      add({.name = name, .digest = digest, .trust = Trust{TrustSource::blob_name, "", true}});
    }
    if (orphans == 0) return;
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "oci.orphans",
         .message = fmt::format("{} {} of no manifest: {}", orphans, orphans == 1 ? "blob is" : "blobs are",
                                human_bytes(bytes))});
  }

 private:
  std::optional<Digest> take_digest(const ParsedJson& descriptor, const std::string& where) {
    const std::string written = oci_text(descriptor, "digest");
    auto digest = parse_oci_digest(written);
    if (!digest || digest->kind != DigestKind::sha256) {
      out_.findings.push_back({.code = "oci.digest",
                               .message = fmt::format("names '{}', which is no SHA-256", written),
                               .file = where});
      return std::nullopt;
    }
    named_.insert(digest->hex());
    return digest;
  }

  // Its name in reports; none where it was refused.
  std::string add_layer(const ParsedJson& layer, const std::string& label, const std::string& kind) {
    const auto digest = take_digest(layer, label);
    if (!digest) return {};
    const std::string title = oci_title(layer);
    std::string name = label + "/" + (title.empty() ? kind : title);
    if (const std::size_t count = ++taken_[name]; count > 1) name += fmt::format("-{}", count);
    if (!accept_name(name, out_.findings)) return {};
    add({.name = name,
         .digest = digest,
         .trust = trust_for(label),
         .size = size_of(layer),
         .elsewhere = root_ / "blobs" / "sha256" / digest->hex()});
    return name;
  }

  fs::path manifest_path(const Digest& digest) const {
    const fs::path own = root_ / "manifests" / "sha256" / digest.hex();
    std::error_code error;
    return fs::exists(own, error) ? own : root_ / "blobs" / "sha256" / digest.hex();
  }
  static KnownSize size_of(const ParsedJson& descriptor) {
    const auto it = descriptor.find("size");
    return it != descriptor.end() && it->is_number_unsigned() ? KnownSize(it->get<std::uint64_t>())
                                                              : KnownSize();
  }
  // The tag, where there is one; else the beginning of the digest.
  static std::string label_of(const ParsedJson& descriptor, const std::string& otherwise) {
    const auto annotations = descriptor.find("annotations");
    const std::string tag =
        annotations == descriptor.end() ? "" : oci_text(*annotations, "org.opencontainers.image.ref.name");
    if (!tag.empty() && is_safe_relative_path(tag)) return tag;
    return otherwise != "index.json" ? otherwise
                                     : oci_text(descriptor, "digest").substr(kAlgorithm.size(), 12);
  }
  SharedTrust trust_for(const std::string& label) const {
    return Trust{TrustSource::store_manifest, label, !pinned_};
  }
  void add(ExpectedFile file) { out_.files.push_back(std::move(file)); }
  void malformed(const std::string& name, std::string why) {
    out_.findings.push_back({.code = "oci.manifest", .message = std::move(why), .file = name});
  }

  const fs::path root_;
  const bool pinned_;
  Expectation& out_;
  std::set<std::string> named_, followed_;    // digests
  std::map<std::string, std::size_t> taken_;  // names in this manifest
};

// Docker Model Runner's list, as descriptors.
ParsedJson descriptors_in(const fs::path& root) {
  std::error_code error;
  if (fs::exists(root / "index.json", error))
    return read_json(root / "index.json", kDocumentLimits).at("manifests");
  ParsedJson all = ParsedJson::array();
  const ParsedJson list = read_json(root / "models.json", kDocumentLimits);
  for (const ParsedJson& model : list.at("models")) {
    ParsedJson one = {{"digest", model.at("id")}};
    if (const auto tags = model.find("tags"); tags != model.end() && tags->is_array() && !tags->empty())
      one["annotations"] = {{"org.opencontainers.image.ref.name", tags->at(0)}};
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

bool is_oci_layout(const fs::path& path) {
  std::error_code error;
  const bool listed = (fs::exists(path / "oci-layout", error) && fs::exists(path / "index.json", error)) ||
                      (fs::exists(path / "models.json", error) && is_folder(path / "manifests" / "sha256"));
  return listed && is_folder(path / "blobs" / "sha256");
}

Expectation expect_from_oci(const fs::path& root, const std::optional<std::string>& pin) {
  Expectation out;
  out.kind = "OCI layout";
  out.root = root;
  Layout layout(root, pin.has_value(), out);
  try {
    if (pin) {
      if (!parse_oci_digest(*pin))
        throw Error::usage(fmt::format("--digest takes sha256: and 64 hexadecimal digits, not '{}'", *pin));
      layout.follow({{"digest", *pin}}, "pinned", 0);
      out.origin = *pin;
    } else {
      const ParsedJson descriptors = descriptors_in(root);
      for (const ParsedJson& one : descriptors) layout.follow(one, "index.json", 0);
      layout.add_others();
      out.origin = fmt::format("{} manifests", descriptors.size());
    }
  } catch (const ParsedJson::exception&) {
    throw Error::input("is no list of manifests").in(root / "index.json");
  }
  out.complete = true;
  out.owns_root = false;
  finish(out);
  return out;
}

}  // namespace assay
