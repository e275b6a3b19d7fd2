#include "verify/code_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/formats/json.h"
#include "core/formats/npy.h"
#include "core/formats/zip.h"
#include "core/system/error.h"
#include "verify/pickle.h"

namespace assay {
namespace {

constexpr std::size_t kLook = 4096;
constexpr std::uint64_t kConfigLimit = 16u << 20;
constexpr std::size_t kMembersLookedInto = 1000;  // of one archive

enum class Disguise { none, pickle, zip, seven_zip, tar };

bool any_of(std::string_view extension, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), extension) != list.end();
}

// An array of Python objects is a pickle behind NumPy's header: 'descr': '|O', or a record with such a field.
bool is_object_array(std::span<const std::byte> head, std::uint64_t bytes, const fs::path& source) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (!text.starts_with("\x93NUMPY")) return false;
  const std::uint64_t end = std::min<std::uint64_t>(npy::header_end(head, bytes, source), head.size());
  std::string_view rest = text.substr(0, static_cast<std::size_t>(end));
  for (auto quote = rest.find('\''); quote != rest.npos; quote = rest.find('\'')) {
    rest.remove_prefix(quote + 1);
    const auto close = rest.find('\'');
    if (close == rest.npos) return false;
    std::string_view word = rest.substr(0, close);
    if (word.find_first_of("|<>=") == 0) word.remove_prefix(1);
    if (word == "object" || (word.starts_with('O') && word.find_first_not_of("0123456789", 1) == word.npos))
      return true;
    rest.remove_prefix(close + 1);
  }
  return false;
}

bool is_code(std::span<const std::byte> head, std::uint64_t bytes, const fs::path& source) {
  return looks_like_pickle(head, head.size() == bytes) || is_object_array(head, bytes, source);
}

// torch.save writes a ZIP with a member <name>/data.pkl; np.savez one of .npy files.
bool holds_code(const zip::Archive& archive) {
  std::size_t looked = 0;
  for (const zip::Member& member : archive.members()) {
    if (member.name.ends_with(".pkl") || member.name.ends_with(".pickle")) return true;
    const bool unclear = !member.name.ends_with('/') && ++looked <= kMembersLookedInto;
    if (unclear && is_code(archive.read(member, std::min<std::uint64_t>(kLook, member.bytes)), member.bytes,
                           archive.source())) {
      return true;
    }
  }
  return false;
}

Disguise look_inside(const fs::path& path) {
  std::array<std::byte, kLook> buffer{};
  try {
    const File file = File::open(path);
    const auto head = std::span(buffer).first(file.read_at(0, buffer));
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) {
      if (text.find(".pkl") != std::string_view::npos) return Disguise::pickle;
      try {
        return holds_code(zip::Archive::open(path)) ? Disguise::pickle : Disguise::zip;
      } catch (const Error&) {
        return Disguise::zip;  // encrypted, split, damaged: what it holds is unknown
      }
    }
    if (text.starts_with("7z\xBC\xAF\x27\x1C")) return Disguise::seven_zip;
    if (text.size() > 262 && text.substr(257, 5) == "ustar") return Disguise::tar;
    return is_code(head, file.size(), path) ? Disguise::pickle : Disguise::none;
  } catch (const Error&) {
    return Disguise::none;  // an unreadable file is reported as such elsewhere
  }
}

Finding code_finding(const std::string& name, std::string code, std::string message) {
  return {
      .severity = Severity::warning, .code = std::move(code), .message = std::move(message), .file = name};
}

// The strings below a value, at most two levels down: "m.Class", ["m.Slow", "m.Fast"], {"impl": "m.Class"}.
void collect(const ParsedJson& value, std::set<std::string>& references, int levels = 2) {
  if (value.is_string()) references.insert(value.get<std::string>());
  if (!value.is_structured() || levels == 0) return;
  for (const ParsedJson& part : value) collect(part, references, levels - 1);
}

}  // namespace

Findings find_code(const std::string& name, const fs::path& path, bool remote_code) {
  std::string extension = fs::path(name).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (extension == ".py") {
    if (!remote_code) return {};
    return {code_finding(
        name, "code.remote_python",
        "is Python that runs when the model is loaded with trust_remote_code (a config's auto_map)")};
  }
  if (any_of(extension, {".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill"})) {
    return {code_finding(name, "code.pickle", "is a pickle by its name: loading it can run any code")};
  }
  // Formats we know by content, and text, need no look inside.
  if (any_of(extension, {".safetensors", ".json", ".txt", ".md", ".jinja"})) return {};
  const Disguise inside = look_inside(path);
  if (inside == Disguise::pickle)
    return {code_finding(name, "code.pickle", "contains a pickle: loading it can run any code")};
  if (inside != Disguise::none && any_of(extension, {".bin", ".gguf", ".model", ""})) {
    return {code_finding(name, "code.archive",
                         "is an archive under another name; what it holds was not looked at")};
  }
  return {};
}

bool may_name_code(std::string_view name) {
  return name.ends_with("config.json");
}

RemoteCode read_remote_code(const std::string& name, const fs::path& path) {
  RemoteCode result;
  std::set<std::string> references;
  try {
    const ParsedJson config = read_json(path, {.max_bytes = kConfigLimit, .duplicate_keys = true});
    for (const char* key : {"auto_map", "custom_pipelines"}) {
      if (config.contains(key)) collect(config.at(key), references);
    }
  } catch (const Error&) {
    return result;  // no loader reads it either
  }
  result.asked = !references.empty();
  std::set<std::string> repositories;
  for (const std::string& reference : references) {
    if (const auto dashes = reference.find("--"); dashes != std::string::npos)
      repositories.insert(reference.substr(0, dashes));
  }
  for (const std::string& repository : repositories) {
    result.findings.push_back(code_finding(
        name, "code.remote_repository",
        fmt::format("makes loaders fetch and run Python of another repository, {}, under trust_remote_code",
                    repository)));
  }
  return result;
}

}  // namespace assay
