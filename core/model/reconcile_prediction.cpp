#include "core/model/reconcile_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/formats/json.h"
#include "core/model/reconcile_layers.h"

namespace assay {
namespace {

constexpr std::string_view kDeepSeeks = "num_nextn_predict_layers";
constexpr std::array kKeys = {kDeepSeeks,
                              std::string_view("mtp_num_hidden_layers"),
                              std::string_view("num_mtp_layers"),
                              std::string_view("n_mtp_layers"),
                              std::string_view("num_mtp_modules"),
                              std::string_view("mtp_num_layers")};

// The key that counts them in this config; one that counts none comes behind one that does.
std::optional<std::string_view> key_in(const ModelConfig& config) {
  std::optional<std::string_view> found;
  for (const std::string_view key : kKeys) {
    const auto value = config.text().find(key);
    if (value == config.text().end()) continue;
    if (value->is_number_unsigned() && *value != 0) return key;
    if (!found) found = key;
  }
  return found;
}

}  // namespace

bool is_of_prediction(std::string_view behind_layer) {
  constexpr std::array<std::string_view, 5> kParts = {".eh_proj.", ".enorm.", ".hnorm.", ".shared_head.",
                                                      ".embed_tokens."};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return behind_layer.starts_with(part); });
}

std::string prediction_key(const ModelConfig& config) {
  return std::string(key_in(config).value_or(kDeepSeeks));
}

Finding prediction_absent(const ModelConfig& config) {
  const auto key = key_in(config);
  const std::string promise =
      key ? fmt::format("config.json promises a layer for multi-token prediction ({})", *key)
          : std::string("models of this class have a layer for multi-token prediction");
  return {Severity::warning,
          "model.mtp_absent",
          promise + ", and no tensor of it is here: speculative decoding with it will fail",
          "config.json",
          {},
          {},
          key ? fmt::format("take the full checkpoint, or set {} to 0", *key)
              : std::string("take the full checkpoint, or decode without it")};
}

Finding prediction_undeclared(const PredictionClaim& claim, const std::set<std::uint64_t>& stored,
                              std::uint64_t tensors) {
  return {Severity::error,
          "model.mtp_undeclared",
          fmt::format(
              "{} tensors of layers {} are here, which predict further tokens, and {} has {} such layers: "
              "loaders refuse them, or decode without",
              tensors, ranges(stored), claim.who, claim.layers),
          {},
          {},
          {},
          fmt::format("set {} to {}", claim.key, claim.layers + stored.size())};
}

}  // namespace assay
