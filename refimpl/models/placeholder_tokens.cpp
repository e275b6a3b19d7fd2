#include "refimpl/models/placeholder_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/system/error.h"

namespace assay {
namespace {

struct Placeholder {
  std::string_view key, what;
};
// As configs spell them, inside text_config or beside it.
constexpr Placeholder kPlaceholders[] = {
    {"image_token_id", "image"},
    {"image_token_index", "image"},
    {"image_token", "image"},
    {"img_context_token_id", "image"},
    {"vision_token_id", "image"},
    {"vision_start_token_id", "image"},
    {"boi_token_id", "image"},
    {"boi_token_index", "image"},
    {"media_placeholder_token_id", "image"},
    {"im_patch_token_id", "image"},
    {"video_token_id", "video"},
    {"video_token_index", "video"},
    {"video_start_token_id", "video"},
    {"audio_token_id", "audio"},
    {"audio_token_index", "audio"},
    {"audio_start_token_id", "audio"},
    {"boa_token_id", "audio"},
    {"boa_token_index", "audio"},
};

}  // namespace

bool names_placeholder(std::string_view key) {
  return std::any_of(std::begin(kPlaceholders), std::end(kPlaceholders),
                     [&](const Placeholder& placeholder) { return placeholder.key == key; });
}

void require_text(std::span<const TokenId> tokens, const ModelConfig& config) {
  for (const Placeholder& placeholder : kPlaceholders) {
    for (const ParsedJson* object : {&config.document(), &config.text()}) {
      const auto found = object->find(placeholder.key);
      if (found == object->end() || !found->is_number_unsigned()) continue;
      const auto id = found->get<std::uint64_t>();
      if (std::find(tokens.begin(), tokens.end(), id) == tokens.end()) continue;
      throw Error::input(fmt::format("token {} of the prompt stands for {} input ({}), which is not computed "
                                     "here: the model's text part alone is",
                                     id, placeholder.what, placeholder.key))
          .in(config.source())
          .remedy("give a prompt of text alone");
    }
  }
}

}  // namespace assay
