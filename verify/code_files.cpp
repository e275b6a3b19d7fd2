#include "verify/code_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/formats/npy.h"
#include "core/formats/zip.h"
#include "core/system/error.h"
#include "verify/pickle.h"

namespace assay {
namespace {

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
    if (unclear && is_code(archive.read(member, std::min<std::uint64_t>(kCodeLook, member.bytes)),
                           member.bytes, archive.source())) {
      return true;
    }
  }
  return false;
}

Disguise look_inside(std::span<const std::byte> head, std::uint64_t size, const fs::path& path) {
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
  return is_code(head, size, path) ? Disguise::pickle : Disguise::none;
}

// As fs::path::extension(): of ".hidden" there is none.
std::string extension_of(std::string_view name) {
  const std::string_view base = name.substr(name.rfind('/') + 1);
  const auto dot = base.rfind('.');
  return std::string(dot == base.npos || dot == 0 ? "" : base.substr(dot));
}

Finding code_finding(const std::string& name, std::string code, std::string message) {
  return {
      .severity = Severity::warning, .code = std::move(code), .message = std::move(message), .file = name};
}

std::string lower_extension_of(std::string_view name) {
  std::string extension = extension_of(name);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace

std::optional<Findings> code_by_name(const std::string& name, bool remote_code) {
  const std::string extension = lower_extension_of(name);
  if (extension == ".py") {
    if (!remote_code) return Findings{};
    return Findings{code_finding(
        name, "code.remote_python",
        "is Python that runs when the model is loaded (a config's auto_map under trust_remote_code, "
        "modules.json, model_index.json)")};
  }
  if (any_of(extension, {".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill"})) {
    return Findings{
        code_finding(name, "code.pickle", "is a pickle by its name: loading it can run any code")};
  }
  // Formats we know by content, and text, need no look inside.
  if (any_of(extension, {".safetensors", ".json", ".txt", ".md", ".jinja"})) return Findings{};
  return std::nullopt;
}

Findings code_by_content(const std::string& name, const fs::path& path, std::span<const std::byte> head,
                         std::uint64_t size) {
  Disguise inside = Disguise::none;
  try {
    inside = look_inside(head.first(std::min(head.size(), kCodeLook)), size, path);
  } catch (const Error&) {
    return {};  // an unreadable file is reported as such elsewhere
  }
  if (inside == Disguise::pickle)
    return {code_finding(name, "code.pickle", "contains a pickle: loading it can run any code")};
  if (inside != Disguise::none && any_of(lower_extension_of(name), {".bin", ".gguf", ".model", ""})) {
    return {code_finding(name, "code.archive",
                         "is an archive under another name; what it holds was not looked at")};
  }
  return {};
}

Findings find_code(const std::string& name, const fs::path& path, bool remote_code) {
  if (auto findings = code_by_name(name, remote_code)) return std::move(*findings);
  std::array<std::byte, kCodeLook> buffer;
  try {
    const File file = File::open(path);
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), buffer.size()));
    const std::size_t size = file.read_at(0, std::span(buffer).first(wanted));
    return code_by_content(name, path, std::span(buffer).first(size), file.size());
  } catch (const Error&) {
    return {};  // an unreadable file is reported as such elsewhere
  }
}

}  // namespace assay
