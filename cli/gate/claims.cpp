// The engine's claims on a trained model of 1.6 M parameters, on the reference and on the CPU kernels; and those of ranks.
#include <fmt/format.h>

#include "cli/gate/suites.h"
#include "core/formats/json.h"
#include "core/system/error.h"
#include "kernels/selection/select.h"
#include "refimpl/claims/claims.h"
#include "refimpl/claims/rank_claims.h"

namespace assay {
namespace {

// A text such as the model knows, as it lies beside it: where it is lost, errors grow beyond what claims
// allow.
std::vector<TokenId> prompt_of(const std::filesystem::path& golden) {
  const ParsedJson document = read_json(golden);
  const auto ids = document.find("prompt_ids");
  if (ids == document.end() || !ids->is_array()) throw Error::input("has no prompt_ids").in(golden);
  std::vector<TokenId> tokens;
  for (const ParsedJson& id : *ids) {
    if (!id.is_number_unsigned()) throw Error::input("a token that is no number").in(golden);
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

// Stages and heads; copies beside dealt out experts.
constexpr RankGrid kGrids[] = {{.tp = 2, .pp = 2}, {.ep = 3, .dp = 3}};

GateFigure figure_of(const Claim& claim, const std::string& of) {
  GateFigure figure = {.name = fmt::format("tinylm, {}: {}", of, claim.name), .word = {}};
  figure.holds = claim.holds();
  if (!figure.holds)
    figure.detail = fmt::format("{}: {} off by {:.3g}, {:.3g} allowed", claim.statement, claim.measure,
                                claim.error, claim.budget);
  if (claim.budget == 0) {
    figure.drift = Drift::exact;
    figure.word = claim.error == 0 ? "bit for bit" : fmt::format("{:.3g}", claim.error);
  } else {
    figure.drift = Drift::one_case;
    figure.value = claim.error / claim.budget;
  }
  return figure;
}

}  // namespace

std::vector<GateFigure> gate_claims(const std::filesystem::path& data, int jobs) {
  std::vector<GateFigure> figures;
  if (!std::filesystem::exists(data / "tinylm")) return figures;
  const Weights weights(data / "tinylm", jobs);
  const std::vector<TokenId> tokens = prompt_of(data / "tinylm/golden.json");
  const auto selected = [](const std::string& selection) {
    return KernelSet{selection, is_invariant(builtin_kernels(), selection),
                     [selection](const Arithmetic& arithmetic, int threads) {
                       return select_kernels(builtin_kernels(), selection, arithmetic, threads);
                     }};
  };
  for (const KernelSet& kernels : {reference_kernels(), selected("cpu"), selected("cpu-invariant")}) {
    try {
      for (const Claim& claim : run_claims(weights, {}, kernels, {Precision::f32}, jobs, tokens))
        if (claim.promised) figures.push_back(figure_of(claim, kernels.name));
    } catch (const std::exception& error) {
      figures.push_back(broken_figure(fmt::format("tinylm, {}: the claims run", kernels.name), error));
    }
  }
  for (const RankGrid& grid : kGrids) {
    try {
      RankClaimRequest request;
      request.path = data / "tinylm";
      request.settings.grid = grid;
      request.tokens = tokens;
      for (const Claim& claim : rank_claims(request).claims) figures.push_back(figure_of(claim, grid.text()));
    } catch (const std::exception& error) {
      figures.push_back(broken_figure(fmt::format("tinylm, {}: the claims run", grid.text()), error));
    }
  }
  return figures;
}

}  // namespace assay
