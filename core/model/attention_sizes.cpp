#include "core/model/attention_sizes.h"

#include "core/formats/json.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostHeads = 1 << 16;  // of one layer, and of numbers in one

// The first of `keys` that holds a small positive number; 0: none.
std::uint64_t small_number(const nlohmann::json& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) continue;
    const auto value = found->get<std::uint64_t>();
    if (value > 0 && value <= kMostHeads * kMostHeads) return value;
  }
  return 0;
}

}  // namespace

std::optional<AttentionSizes> attention_of(const nlohmann::json& text) {
  if (!text.is_object()) return std::nullopt;
  AttentionSizes found;
  found.heads = small_number(text, {"num_attention_heads", "n_heads", "n_head", "num_heads"});
  found.kv_heads = small_number(text, {"num_key_value_heads", "num_kv_heads", "multi_query_group_num"});
  const auto nested = text.find("attn_config");  // DBRX
  if (found.kv_heads == 0 && nested != text.end() && nested->is_object())
    found.kv_heads = small_number(*nested, {"kv_n_heads"});
  if (found.kv_heads == 0) found.kv_heads = found.heads;
  found.head_size = small_number(text, {"head_dim", "kv_channels"});
  const std::uint64_t width = small_number(text, {"hidden_size", "d_model", "n_embd"});
  if (found.head_size == 0 && found.heads != 0 && width % found.heads == 0)
    found.head_size = width / found.heads;
  const bool usable = found.heads > 0 && found.heads <= kMostHeads && found.kv_heads <= kMostHeads &&
                      found.head_size > 0 && found.head_size <= kMostHeads;
  return usable ? std::optional(found) : std::nullopt;
}

}  // namespace assay
