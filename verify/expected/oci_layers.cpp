#include "verify/expected/oci_layers.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "verify/expected/hub_names.h"

namespace assay {
namespace {

constexpr JsonLimits kConfigLimits{.max_bytes = 64ull << 20, .max_depth = 64};
constexpr std::string_view kSha256 = "sha256:";

// modelfs.diffIds (ModelPack), rootfs.diff_ids (container images, Docker Model Runner).
const ParsedJson* list_of_unpacked(const ParsedJson& config) {
  for (const char* holder : {"modelfs", "rootfs"}) {
    const auto at = config.is_object() ? config.find(holder) : config.end();
    if (at == config.end() || !at->is_object()) continue;
    for (const char* key : {"diffIds", "diff_ids"}) {
      if (const auto list = at->find(key); list != at->end() && list->is_array()) return &*list;
    }
  }
  return nullptr;
}

}  // namespace

std::string oci_text(const ParsedJson& object, std::string_view key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<Digest> parse_oci_digest(std::string_view text) {
  return text.starts_with(kSha256) ? digest_named(text.substr(kSha256.size())) : std::nullopt;
}

std::string oci_title(const ParsedJson& descriptor) {
  const auto annotations = descriptor.find("annotations");
  if (annotations == descriptor.end()) return {};
  for (const char* key :
       {"org.cncf.model.filepath", "org.cnai.model.filepath", "org.opencontainers.image.title"}) {
    if (std::string title = oci_text(*annotations, key); !title.empty()) return title;
  }
  return {};
}

LayerForm layer_form(std::string_view media_type) {
  LayerForm form;
  if (media_type.ends_with("+gzip") || media_type.ends_with(".gzip")) form.packing = Packing::gzip;
  if (media_type.ends_with("+zstd") || media_type.ends_with(".zstd")) form.packing = Packing::zstd;
  form.archive = media_type.ends_with(".tar") || media_type.find(".tar+") != media_type.npos ||
                 media_type.find(".tar.") != media_type.npos;
  form.image =
      media_type.find("image.layer") != media_type.npos || media_type.find("image.rootfs") != media_type.npos;
  return form;
}

LayerContents::LayerContents(const ParsedJson& manifest, std::string label,
                             const std::function<fs::path(const Digest&)>& path_of)
    : label_(std::move(label)) {
  const auto config = manifest.find("config");
  const auto digest = config == manifest.end() ? std::nullopt : parse_oci_digest(oci_text(*config, "digest"));
  if (!digest || digest->kind != DigestKind::sha256) return;
  ParsedJson document;
  try {
    document = read_json(path_of(*digest), kConfigLimits);
  } catch (const Error&) {
    return;  // not there, which is told, or no JSON: some tools keep a text there
  }
  const ParsedJson* const list = list_of_unpacked(document);
  if (list == nullptr) return;
  const auto tell = [&](std::string message) {
    unpacked_.clear();
    problem_ = Finding{.code = "oci.diff_ids", .message = std::move(message), .file = label_ + "/config"};
  };
  for (const ParsedJson& one : *list) {
    const std::string written = one.is_string() ? one.get<std::string>() : std::string();
    const auto unpacked = parse_oci_digest(written);
    if (!unpacked || unpacked->kind != DigestKind::sha256) {
      tell(fmt::format("names '{}' as the digest of an unpacked layer, which is no SHA-256", written));
      return;
    }
    unpacked_.push_back(unpacked->hex());
  }
  const std::size_t layers = manifest.contains("layers") ? manifest.at("layers").size() : 0;
  if (unpacked_.size() != layers && !unpacked_.empty())
    tell(fmt::format("lists {} layers, and there are {}", unpacked_.size(), layers));
}

void LayerContents::claim(const ParsedJson& layer, std::size_t index, const std::string& file,
                          Expectation& out) const {
  if (file.empty()) return;
  const LayerForm form = layer_form(oci_text(layer, "mediaType"));
  FileClaim claim{.of = FileClaim::Of::contents,
                  .algorithm = "sha256",
                  .said_by = "the config of " + label_,
                  .packing = form.packing,
                  .archive = form.archive,
                  .image = form.image};
  if (index < unpacked_.size()) claim.digest = unpacked_[index];
  if (form.packing == Packing::none && !claim.digest.empty()) {
    // What is not packed is the same unpacked: the digest of either is said twice.
    if (oci_text(layer, "digest") != std::string(kSha256) + claim.digest)
      out.findings.push_back(
          {.code = "oci.diff_id",
           .message = "is not packed, and " + claim.said_by + " gives it another digest unpacked",
           .file = file});
    claim.digest.clear();
  }
  if (form.archive || !claim.digest.empty()) out.claims[file] = {std::move(claim)};
}

}  // namespace assay
