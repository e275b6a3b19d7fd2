// Tokens that stand for what only a tower sees or hears: a model's text part has an embedding for them, which means
// nothing, so that a prompt with one is not computed.
#pragma once

#include <span>
#include <string_view>

#include "core/model/config.h"
#include "refimpl/ops/calls.h"

namespace assay {

// A key of config.json, "image_token_id".
bool names_placeholder(std::string_view key);
// Throws Error::input, naming the key of config.json, where one of the tokens stands for an image, a video or sound.
void require_text(std::span<const TokenId> tokens, const ModelConfig& config);

}  // namespace assay
