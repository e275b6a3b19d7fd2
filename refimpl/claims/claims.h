// Every optimization is a claim: this way computes the same as that way, bit for bit or within a budget. Here
// those of the engine, run on a model and a text of the user's choice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {

struct Claim {
  std::string name;              // "prefill_by_token"
  std::string statement;         // "a prompt read at once ≡ token by token"
  std::string measure;           // what `error` is
  double error = 0, budget = 0;  // budget 0: bit for bit
  bool promised = true;          // false: not by these kernels; measured all the same
  bool holds() const { return !promised || error <= budget; }  // false for NaN
};

enum class ClaimScope : std::uint8_t { all, promised };

// Those that concern the model: latent attention, experts and multi-token prediction have claims of their
// own. `tokens` is a text of at least 4 tokens. `promised`: what these kernels do not promise is not measured.
std::vector<Claim> run_claims(const Weights& weights, const ModelOptions& options, const KernelSet& kernels,
                              const Arithmetic& arithmetic, int jobs, std::span<const TokenId> tokens,
                              ClaimScope scope = ClaimScope::all);

}  // namespace assay
