#include "core/model/stored_names.h"

#include <algorithm>
#include <array>

#include "core/model/formats/format.h"

namespace assay {
namespace {

// Scales of the keys and values in the cache: they belong to no weight.
constexpr std::array<std::string_view, 6> kCacheScales = {".k_scale", ".v_scale",      ".kv_scale",
                                                          ".q_scale", ".output_scale", ".prob_scale"};

constexpr std::array<std::string_view, 6> kBufferEndings = {"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq",
                                                            "attn.bias",           "attn.masked_bias",
                                                            ".position_ids",       "rope_freqs.weight"};

}  // namespace

const NameEnding* ending_of(std::string_view name) {
  for (const NameEnding& ending : name_endings()) {
    if (name.ends_with(ending.suffix)) return &ending;
  }
  return nullptr;
}

std::string weight_name(std::string_view name, const NameEnding& ending) {
  std::string weight(name.substr(0, name.size() - ending.suffix.size()));
  weight += ending.weight;
  return weight;
}

std::optional<StoredName> parse_stored_name(std::string_view name) {
  if (const NameEnding* ending = ending_of(name))
    return StoredName{weight_name(name, *ending), ending->part, ending->suffix.substr(1)};
  for (const std::string_view suffix : kCacheScales) {
    if (name.ends_with(suffix)) return StoredName{{}, StoredPart::scale, suffix.substr(1)};
  }
  return std::nullopt;
}

bool is_known_buffer(std::string_view name) {
  return std::any_of(kBufferEndings.begin(), kBufferEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace assay
