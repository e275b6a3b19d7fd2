#include "verify/expected/modelscope_download.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/assemble.h"
#include "verify/expected/plain_pickle.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostBytes = 64ull << 20;
constexpr const char* kListed = ".msc";

std::string text_under(const ParsedJson& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<ParsedJson> read_pickle(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  return read_plain_pickle(read_small_file(file, kMostBytes));
}

}  // namespace

bool is_modelscope_download(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kListed, error);
}

Expectation expect_from_modelscope(const fs::path& folder) {
  Expectation out;
  out.kind = "ModelScope download";
  out.root = folder;
  out.ignored = {".git", ".cache", kListed, ".mdl", ".mv"};
  const auto listed = read_pickle(folder / kListed);
  if (!listed || !listed->is_array())
    throw Error::input(
        "is no list of downloaded files: only lists of plain texts are read, nothing in it is run")
        .in(folder / kListed)
        .remedy("give a saved listing: --manifest");
  const auto about = read_pickle(folder / ".mdl");
  const std::string id = about ? text_under(*about, "id") : std::string();
  std::error_code error;
  const std::string version = fs::exists(folder / ".mv", error)
                                  ? std::string(trim(read_small_file(folder / ".mv", 4096)))
                                  : std::string();
  out.origin = fmt::format("{}{}{}", id.empty() ? "unknown model" : id, version.empty() ? "" : ", ", version);
  for (const ParsedJson& one : *listed) {
    const std::string name = text_under(one, "Path");
    if (!name.empty() && accept_name(name, out.findings)) out.files.push_back({.name = name});
  }
  finish(out);
  out.findings.push_back(
      {.severity = Severity::note,
       .code = "modelscope.no_digests",
       .message =
           "ModelScope's client keeps no digests: what is missing can be told, and nothing of the bytes",
       .remedy = fmt::format(
           "save the listing, which has them: curl -s "
           "'https://modelscope.cn/api/v1/models/{}/repo/files?Recursive=true' -o listing.json, and "
           "give it as --manifest",
           id.empty() ? "ORG/NAME" : id)});
  return out;
}

}  // namespace assay
