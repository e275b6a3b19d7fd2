// Heads, as a config.json of any family spells them: what tells the parts of a fused matrix apart where no
// module tree is at hand.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace assay {

struct AttentionSizes {
  std::uint64_t heads = 0, kv_heads = 0, head_size = 0;
};

// nullopt where `text`, the object that describes the language model, does not say it in usual words.
std::optional<AttentionSizes> attention_of(const nlohmann::json& text);

}  // namespace assay
