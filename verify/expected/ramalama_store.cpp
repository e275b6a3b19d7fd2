#include "verify/expected/ramalama_store.h"

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

namespace assay {
namespace {

constexpr JsonLimits kRefLimits{.max_bytes = 16ull << 20, .max_depth = 32};
constexpr int kDeepestModel = 12;                  // store/SOURCE/ORG/…/MODEL
constexpr std::size_t kMostFoldersSeen = 100'000;  // of what only looks like a store
constexpr std::size_t kHexDigits = 64;

bool has_entry(const fs::path& folder, auto matches) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (matches(it->path().filename().string())) return true;
  }
  return false;
}

// A Hugging Face cache has folders of the same names; its blobs and references are called otherwise.
bool is_ramalama_model(const fs::path& path) {
  return is_folder(path / "blobs") && is_folder(path / "refs") && is_folder(path / "snapshots") &&
         (has_entry(path / "blobs", [](const std::string& name) { return name.starts_with("sha256-"); }) ||
          has_entry(path / "refs", [](const std::string& name) { return name.ends_with(".json"); }));
}

void find_models(const fs::path& path, int depth, std::size_t& seen, std::vector<fs::path>& models) {
  if (is_ramalama_model(path)) {
    models.push_back(path);
    return;
  }
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (depth == 0 || ++seen > kMostFoldersSeen) return;
    if (!it->is_symlink(ignored) && it->is_directory(ignored))
      find_models(it->path(), depth - 1, seen, models);
  }
}

// "sha256:HEX", "sha256-HEX", or the digits alone.
std::optional<Digest> parse_blob_hash(std::string_view text) {
  if (text.starts_with("sha256:") || text.starts_with("sha256-")) text.remove_prefix(7);
  return text.size() == kHexDigits ? Digest::parse(DigestKind::sha256, text) : std::nullopt;
}

// Its name in `blobs`: RamaLama writes '-' for every ':'.
std::string blob_named(std::string text) {
  std::replace(text.begin(), text.end(), ':', '-');
  return text;
}

struct RefFile {
  std::string name, hash;
};
struct Ref {
  std::string snapshot;
  std::vector<RefFile> files;
};

Ref parse_ref(const ParsedJson& json) {
  Ref ref{.snapshot = blob_named(json.at("hash").get<std::string>()), .files = {}};
  for (const ParsedJson& file : json.at("files"))
    ref.files.push_back({file.at("name").get<std::string>(), file.at("hash").get<std::string>()});
  return ref;
}

class Models {
 public:
  Models(const fs::path& root, Expectation& out) : root_(root), out_(out) {}

  void read_model(const fs::path& model) {
    model_ = model;
    named_.clear();
    std::vector<fs::path> refs;
    std::error_code error;
    for (fs::directory_iterator it(model / "refs", error), end; !error && it != end; it.increment(error))
      refs.push_back(it->path());
    std::sort(refs.begin(), refs.end());
    for (const fs::path& ref : refs) read_ref(ref);
    tell_others();
  }

  void tell_named_by_name() {
    if (by_name_.empty()) return;
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "ramalama.named_by_name",
         .message = fmt::format(
             "{} {} stored under a hash of the name, not of the bytes: nothing says what they should be",
             by_name_.size(), by_name_.size() == 1 ? "file is" : "files are"),
         .file = by_name_.size() == 1 ? by_name_[0] : std::string()});
  }
  std::size_t refs() const { return refs_; }

 private:
  std::string shown(const fs::path& path) const { return path.lexically_relative(root_).generic_string(); }

  void read_ref(const fs::path& file) {
    ++refs_;
    const std::string tag = file.extension() == ".json" ? file.stem().string() : file.filename().string();
    const std::string inside = model_ == root_ ? model_.filename().string() : shown(model_);
    const std::string label = inside + ":" + tag;
    try {
      if (file.extension() != ".json") {
        out_.findings.push_back({.severity = Severity::warning,
                                 .code = "ramalama.old_ref",
                                 .message = "is a reference of an old version, which names no hashes",
                                 .file = shown(file),
                                 .remedy = "run the model once: ramalama writes it anew"});
        return;
      }
      const Ref ref = parse_ref(read_json(file, kRefLimits));
      for (const RefFile& one : ref.files) add_file(label, ref.snapshot, one);
    } catch (const ParsedJson::exception&) {
      malformed(file, "is no reference to a model: its files cannot be read");
    } catch (const Error& error) {
      malformed(file, error.message());
    }
  }

  void add_file(const std::string& label, const std::string& snapshot, const RefFile& one) {
    const std::string name = label + "/" + one.name;
    const std::string blob = blob_named(one.hash);
    named_.insert(blob);
    const auto digest = parse_blob_hash(one.hash);
    if (!digest) {
      out_.findings.push_back({.code = "ramalama.digest",
                               .message = fmt::format("names '{}', which is no SHA-256", one.hash),
                               .file = name,
                               .remedy = "pull the model again"});
      return;
    }
    if (!accept_name(name, out_.findings)) return;
    ExpectedFile file{.name = name, .elsewhere = model_ / "blobs" / blob};
    if (is_of_name(*digest, one.name)) {
      by_name_.push_back(name);
    } else {
      file.digest = digest;
      file.trust = Trust{TrustSource::store_manifest, label, true};
    }
    check_link(name, snapshot, one.name, *file.elsewhere, file);
    out_.files.push_back(std::move(file));
  }

  // Whether the hash is one of those that RamaLama makes of names.
  bool is_of_name(const Digest& digest, const std::string& name) const {
    const std::string base = fs::path(name).filename().string();
    const std::string model = model_.filename().string(),
                      organization = model_.parent_path().filename().string();
    for (const std::string& text : {name, base, organization + "/" + model + "/" + name, model}) {
      if (digest_of(DigestKind::sha256, std::as_bytes(std::span(text))) == digest) return true;
    }
    return false;
  }

  // What engines are given is the snapshot's file: a link to the blob, the same file under two names, or a copy, which is
  // then held against the same digest.
  void check_link(const std::string& name, const std::string& snapshot, const std::string& file_name,
                  const fs::path& blob, const ExpectedFile& file) {
    if (!is_safe_relative_path(snapshot) || !is_safe_relative_path(file_name)) return;
    const fs::path link = model_ / "snapshots" / snapshot / file_name;
    std::error_code error;
    const auto status = fs::symlink_status(link, error);
    if (!fs::exists(status)) {
      if (fs::exists(blob, error))
        out_.findings.push_back({.severity = Severity::warning,
                                 .code = "ramalama.no_link",
                                 .message = "is not in its snapshot: ramalama pulls it again",
                                 .file = name});
      return;
    }
    if (fs::equivalent(link, blob, error) || !fs::exists(blob, error)) return;
    if (fs::is_symlink(status)) {
      out_.findings.push_back({.code = "ramalama.link",
                               .message = "is a link in its snapshot to something else than its blob",
                               .file = name,
                               .remedy = "remove the model and pull it again"});
      return;
    }
    ExpectedFile copy = file;
    copy.name = shown(link);
    if (!copy.name.starts_with("..")) {
      copy.elsewhere = link;
      out_.files.push_back(std::move(copy));
    }
  }

  void tell_others() {
    std::uint64_t orphans = 0, bytes = 0;
    for (const TreeEntry& entry : list_names(model_ / "blobs", {})) {
      if (named_.contains(entry.name)) continue;
      if (entry.name.ends_with(".partial")) {
        out_.findings.push_back({.severity = Severity::warning,
                                 .code = "ramalama.partial",
                                 .message = "is what an interrupted download has left",
                                 .file = shown(model_ / "blobs" / entry.name),
                                 .remedy = "pull the model again, which goes on with it"});
        continue;
      }
      ++orphans;
      std::error_code error;
      const auto size = fs::file_size(model_ / "blobs" / entry.name, error);
      if (!error) bytes += size;
    }
    if (orphans == 0) return;
    out_.findings.push_back(
        {.severity = Severity::note,
         .code = "ramalama.orphans",
         .message = fmt::format("{} {} of no reference in {}: {}, not looked at", orphans,
                                orphans == 1 ? "blob is" : "blobs are", shown(model_), human_bytes(bytes))});
  }

  void malformed(const fs::path& file, std::string why) {
    out_.findings.push_back({.code = "ramalama.reference",
                             .message = std::move(why),
                             .file = shown(file),
                             .remedy = "pull the model again"});
  }

  const fs::path root_;
  Expectation& out_;
  fs::path model_;
  std::set<std::string> named_;       // blobs of this model
  std::vector<std::string> by_name_;  // files
  std::size_t refs_ = 0;
};

}  // namespace

std::vector<fs::path> ramalama_models_at(const fs::path& path) {
  std::vector<fs::path> models;
  bool in_store = is_folder(path / "store");
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    if (is_ramalama_model(at)) return {at};
    in_store = in_store || at.filename() == "store";
  }
  if (!in_store || !is_folder(path)) return models;
  std::size_t seen = 0;
  find_models(is_folder(path / "store") ? path / "store" : path, kDeepestModel, seen, models);
  std::sort(models.begin(), models.end());
  return models;
}

Expectation expect_from_ramalama(const fs::path& path, const std::vector<fs::path>& models) {
  Expectation out;
  out.kind = "RamaLama store";
  const bool one = models.size() == 1 && path.native().starts_with(models[0].native());
  out.root = one ? models[0] : is_folder(path / "store") ? path / "store" : path;
  Models reader(out.root, out);
  for (const fs::path& model : models) reader.read_model(model);
  reader.tell_named_by_name();
  if (reader.refs() == 0)
    throw Error::input("holds no reference to a model").in(path).remedy("pull it again");
  out.origin = fmt::format("{} {}", reader.refs(), reader.refs() == 1 ? "model" : "models");
  out.complete = true;
  out.owns_root = false;
  finish(out);
  return out;
}

}  // namespace assay
