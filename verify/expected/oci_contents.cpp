#include "verify/expected/oci_contents.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "verify/claims/tar_walk.h"
#include "verify/claims/unpack.h"
#include "verify/expected/assemble.h"
#include "verify/expected/oci_layers.h"

namespace assay {
namespace {

constexpr JsonLimits kListLimits{.max_bytes = 64ull << 20, .max_depth = 32};
constexpr int kDeepestList = 8;
constexpr std::size_t kLayerPiece = 1u << 20;

// Each file of an archive, as what is expected.
class MemberDigests : public TarListener {
 public:
  MemberDigests(const SharedTrust& trust, Expectation& out) : trust_(trust), out_(out) {}
  void begin_file(const TarMember& member) override {
    name_ = member.name;
    size_ = member.size;
    digest_.emplace(DigestKind::sha256, member.size);
  }
  void file_bytes(std::span<const std::byte> bytes) override { digest_->update(bytes); }
  void end_file() override {
    if (accept_name(name_, out_.findings))
      out_.files.push_back({.name = name_, .digest = digest_->finish(), .trust = trust_, .size = size_});
    digest_.reset();
  }

 private:
  const SharedTrust trust_;
  Expectation& out_;
  std::string name_;
  std::uint64_t size_ = 0;
  std::optional<StreamDigest> digest_;
};

class LayoutContents {
 public:
  LayoutContents(const fs::path& layout, const SharedTrust& trust, Expectation& out)
      : layout_(layout), trust_(trust), out_(out) {}

  // The manifests of models that `descriptors` lead to.
  void collect(const ParsedJson& descriptors, int depth) {
    for (const ParsedJson& one : descriptors) {
      const Digest digest = digest_in(one);
      if (depth > kDeepestList || !seen_.insert(digest.hex()).second) continue;
      const fs::path file = path_of(digest);
      const std::string text = read_small_file(file, kListLimits.max_bytes);
      if (digest_of(DigestKind::sha256, std::as_bytes(std::span(text))) != digest)
        throw Error::input("is not the manifest of that digest").in(file).remedy("pull the model again");
      ParsedJson manifest = parse_json(text, file, kListLimits);
      if (manifest.contains("manifests"))
        collect(manifest.at("manifests"), depth + 1);
      else
        manifests_.push_back(std::move(manifest));
    }
  }
  std::size_t models() const { return manifests_.size(); }

  void read_layers() {
    for (const ParsedJson& layer : manifests_.at(0).at("layers")) read_layer(layer);
  }

 private:
  Digest digest_in(const ParsedJson& descriptor) const {
    const std::string written = oci_text(descriptor, "digest");
    const auto digest = parse_oci_digest(written);
    if (!digest || digest->kind != DigestKind::sha256)
      throw Error::input(fmt::format("names '{}', which is no SHA-256", written)).in(layout_);
    return *digest;
  }
  fs::path path_of(const Digest& digest) const {
    const fs::path own = layout_ / "manifests" / "sha256" / digest.hex();
    std::error_code error;
    return fs::exists(own, error) ? own : layout_ / "blobs" / "sha256" / digest.hex();
  }

  void read_layer(const ParsedJson& layer) {
    const Digest digest = digest_in(layer);
    const LayerForm form = layer_form(oci_text(layer, "mediaType"));
    const std::string title = oci_title(layer);
    if (!form.archive && title.empty()) {
      ++nameless_;
      return;
    }
    if (!form.archive && form.packing == Packing::none) {
      if (accept_name(title, out_.findings))
        out_.files.push_back({.name = title, .digest = digest, .trust = trust_});
      return;
    }
    unpack(digest, form, title);
  }

  void unpack(const Digest& expected, const LayerForm& form, const std::string& title) {
    const fs::path path = path_of(expected);
    const File file = File::open(path);
    MemberDigests members(trust_, out_);
    TarWalk walk(form.image, &members);
    StreamDigest packed(DigestKind::sha256, file.size()), unpacked(DigestKind::sha256, 0);
    const auto unpacker = make_unpacker(form.packing);
    std::vector<std::byte> piece(kLayerPiece);
    try {
      std::uint64_t at = 0;
      while (const std::size_t n = file.read_at(at, piece)) {
        const auto part = std::span(piece).first(n);
        packed.update(part);
        unpacker->consume(part, [&](std::span<const std::byte> bytes) {
          if (form.archive)
            walk.consume(bytes);
          else
            unpacked.update(bytes);
        });
        at += n;
      }
      unpacker->finish();
      if (form.archive) walk.finish();
    } catch (Error& error) {
      throw error.in(path);
    }
    if (packed.finish() != expected)
      throw Error::input("is not the layer of that digest").in(path).remedy("pull the model again");
    Findings hostile = walk.take_findings();
    std::move(hostile.begin(), hostile.end(), std::back_inserter(out_.findings));
    if (!form.archive && accept_name(title, out_.findings))
      out_.files.push_back({.name = title, .digest = unpacked.finish(), .trust = trust_});
  }

  const fs::path layout_;
  const SharedTrust trust_;
  Expectation& out_;
  std::set<std::string> seen_;
  std::vector<ParsedJson> manifests_;
  std::size_t nameless_ = 0;
};

}  // namespace

Expectation expect_from_oci_contents(const fs::path& layout, const std::optional<std::string>& pin,
                                     const fs::path& root) {
  Expectation out;
  out.kind = "model unpacked from an OCI layout";
  out.origin = layout.string();
  out.root = root;
  out.ignored = {".git", ".cache"};
  const bool beside = lies_in(layout, root);
  const std::string name = (layout.has_filename() ? layout : layout.parent_path()).filename().string();
  if (beside) out.ignored.push_back(name);
  const Trust trust =
      pin ? Trust{TrustSource::store_manifest, *pin, false} : Trust{TrustSource::manifest, name, beside};
  LayoutContents contents(layout, trust, out);
  try {
    if (pin)
      contents.collect(ParsedJson::array({{{"digest", *pin}}}), 0);
    else
      contents.collect(read_json(layout / "index.json", kListLimits).at("manifests"), 0);
    if (contents.models() != 1)
      throw Error::input(fmt::format("holds {} models", contents.models()))
          .in(layout)
          .remedy("say which is meant: --digest sha256:… of its manifest");
    contents.read_layers();
  } catch (const ParsedJson::exception&) {
    throw Error::input("holds a manifest whose layers cannot be read").in(layout);
  }
  if (out.files.empty()) throw Error::input("holds no layer that has a file's name").in(layout);
  finish(out);
  return out;
}

}  // namespace assay
