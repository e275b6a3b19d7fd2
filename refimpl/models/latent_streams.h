// The decoder around latent attention whose residual is m streams (HY4, GLM-5.3-Flash): each block is given one mix of
// them and writes to all (ops/stream_calls.h),
//
//   X = X mixed + write · attention(norm(read X));   X = X mixed + write · mlp(norm(read X));   logits = head(norm(read X))
//
// In the place of attention a layer may have a recurrent mixer; an indexer's choice serves the layers behind it that have none.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "refimpl/models/latent_attention.h"
#include "refimpl/models/model.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

// How streams are read and written, but for the weights.
struct StreamRule {
  std::size_t count = 1, iterations = 1;
  double epsilon = 0, magnitude = 2, write_epsilon = 0;
};

struct LatentStreamsForm {
  StreamRule streams;
  // What the names of their matrices begin with: behind "layers.3.", and behind the stem of all names. Without those of the
  // head it sees the mean of the streams.
  std::string attention_streams, mlp_streams, head_streams;
  LatentSettings attention;
  RecurrentForm recurrent = {};  // epsilon: that of all norms
  double expert_limit = 0,
         shared_limit = 0;  // of gates and ups, the latter of shared experts and dense MLPs; 0: none
  MoeForm moe = MoeForm::sparse;
};

std::unique_ptr<LanguageModel> make_latent_streams(const Weights& weights, const LatentStreamsForm& form);

}  // namespace assay
