#include "verify/expected/hub_names.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::string_view kIncomplete = ".incomplete";

}  // namespace

std::optional<Digest> digest_named(std::string_view name) {
  const bool lower = std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'F'; });
  if (!lower) return std::nullopt;
  if (name.size() == 64) return Digest::parse(DigestKind::sha256, name);
  if (name.size() == 40) return Digest::parse(DigestKind::git_sha1, name);
  return std::nullopt;
}

bool is_incomplete(std::string_view name) {
  return name.ends_with(kIncomplete);
}

std::optional<Digest> digest_of_incomplete(std::string_view name) {
  if (!is_incomplete(name)) return std::nullopt;
  name.remove_suffix(kIncomplete.size());
  while (true) {
    const auto dot = name.find('.');
    if (const auto digest = digest_named(name.substr(0, dot))) return digest;
    if (dot == name.npos) return std::nullopt;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace assay
