// Layers for multi-token prediction, promised and not stored, or stored and not promised: one finding, with the key that
// the config itself has for them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "core/system/finding.h"

namespace assay {

// What only a layer for prediction holds, from behind the layer's number: ".eh_proj.weight", ".shared_head.norm.weight"
// (DeepSeek-V3's names, which GLM, Kimi, Ling and others took over).
bool is_of_prediction(std::string_view behind_layer);

// A key under which configs count such layers: the one that `config` has, or DeepSeek's.
std::string prediction_key(const ModelConfig& config);

Finding prediction_absent(const ModelConfig& config);  // model.mtp_absent
// model.mtp_undeclared: `tensors` of the layers `stored`, behind those that somebody claims.
struct PredictionClaim {
  std::string who = "the config", key = "num_nextn_predict_layers";
  std::uint64_t layers = 0;
};
Finding prediction_undeclared(const PredictionClaim& claim, const std::set<std::uint64_t>& stored,
                              std::uint64_t tensors);

}  // namespace assay
