// What the layers of a manifest in an OCI layout hold once they are unpacked: by their media types (ModelPack, KitOps,
// container images) and by the digests of what is unpacked, which the manifest's config lists.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json.h"
#include "verify/expected/expected.h"

namespace assay {

// A member that is a string; empty where there is none.
std::string oci_text(const ParsedJson& object, std::string_view key);
// "sha256:HEX"
std::optional<Digest> parse_oci_digest(std::string_view text);
// What the publisher calls a layer's file.
std::string oci_title(const ParsedJson& descriptor);

struct LayerForm {
  Packing packing = Packing::none;
  bool archive = false;  // a tar archive
  bool image = false;    // of a container's file system
};
// "application/vnd.cncf.model.weight.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip", …
LayerForm layer_form(std::string_view media_type);

class LayerContents {
 public:
  // `path_of`: where the blob of a digest lies.
  LayerContents(const ParsedJson& manifest, std::string label,
                const std::function<fs::path(const Digest&)>& path_of);

  // That the list of digests does not fit the layers.
  const std::optional<Finding>& problem() const { return problem_; }
  // Adds to `out` what the layer called `file` holds unpacked; no name: nothing.
  void claim(const ParsedJson& layer, std::size_t index, const std::string& file, Expectation& out) const;

 private:
  std::string label_;
  std::vector<std::string> unpacked_;  // digests; none: nobody lists them
  std::optional<Finding> problem_;
};

}  // namespace assay
