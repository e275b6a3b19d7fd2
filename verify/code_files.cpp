#include "verify/code_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kLook = 4096;
constexpr std::uint64_t kConfigLimit = 16u << 20;

enum class Disguise { none, pickle, zip_with_pickle, zip, seven_zip, tar };

// Pickle protocol 2 and later begins with PROTO (0x80) and its number; torch.save writes a ZIP whose first
// member is <name>/data.pkl; older torch files are a tar or bare pickles.
Disguise look_inside(const fs::path& path) {
  std::array<std::byte, kLook> buffer{};
  std::size_t n = 0;
  try {
    const File file = File::open(path);
    n = file.read_at(0, buffer);
  } catch (const Error&) {
    return Disguise::none;  // an unreadable file is reported as such elsewhere
  }
  const std::string_view head(reinterpret_cast<const char*>(buffer.data()), n);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
  if (n >= 2 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5) return Disguise::pickle;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) {
    return head.find(".pkl") != std::string_view::npos ? Disguise::zip_with_pickle : Disguise::zip;
  }
  if (head.starts_with("7z\xBC\xAF\x27\x1C")) return Disguise::seven_zip;
  if (n > 262 && head.substr(257, 5) == "ustar") return Disguise::tar;
  return Disguise::none;
}

Finding code_finding(const std::string& name, std::string code, std::string message) {
  return {
      .severity = Severity::warning, .code = std::move(code), .message = std::move(message), .file = name};
}

bool any_of(std::string_view extension, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), extension) != list.end();
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
        "is Python that runs when the model is loaded with trust_remote_code (config.json: auto_map)")};
  }
  if (any_of(extension, {".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill"})) {
    return {code_finding(name, "code.pickle", "is a pickle by its name: loading it can run any code")};
  }
  // Formats we know by content, and text, need no look inside.
  if (any_of(extension, {".safetensors", ".json", ".txt", ".md", ".jinja"})) return {};
  const Disguise inside = look_inside(path);
  if (inside == Disguise::pickle || inside == Disguise::zip_with_pickle) {
    return {code_finding(name, "code.pickle", "contains a pickle: loading it can run any code")};
  }
  if (inside != Disguise::none && any_of(extension, {".bin", ".gguf", ".model", ""})) {
    return {code_finding(name, "code.archive",
                         "is an archive under another name; what it holds was not looked at")};
  }
  return {};
}

bool has_auto_map(const fs::path& config) {
  std::error_code ignored;
  if (!fs::is_regular_file(config, ignored)) return false;
  try {
    return read_json(config, {.max_bytes = kConfigLimit, .duplicate_keys = true}).contains("auto_map");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace assay
