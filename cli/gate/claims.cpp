// The engine's claims on a trained model of 1.6 M parameters, on the reference and on the CPU kernels; and those of ranks.
#include <fmt/format.h>

#include <functional>
#include <iterator>

#include "cli/gate/suites.h"
#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/threads.h"
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

// Each suite is measured by one thread, and they beside each other: a model of this size has no work for several.
constexpr int kJobsOfASuite = 1;
using Suite = std::function<std::vector<GateFigure>()>;

Suite of_kernels(const Weights& weights, const std::vector<TokenId>& tokens, KernelSet kernels) {
  return [&weights, &tokens, kernels = std::move(kernels)] {
    std::vector<GateFigure> figures;
    try {
      for (const Claim& claim :
           run_claims(weights, {}, kernels, {Precision::f32}, kJobsOfASuite, tokens, ClaimScope::promised))
        if (claim.promised) figures.push_back(figure_of(claim, kernels.name));
    } catch (const std::exception& error) {
      figures.push_back(broken_figure(fmt::format("tinylm, {}: the claims run", kernels.name), error));
    }
    return figures;
  };
}

Suite of_ranks(const std::filesystem::path& model, const std::vector<TokenId>& tokens, const RankGrid& grid) {
  return [&model, &tokens, &grid] {
    std::vector<GateFigure> figures;
    try {
      RankClaimRequest request;
      request.path = model;
      request.settings.grid = grid;
      request.tokens = tokens;
      for (const Claim& claim : rank_claims(request).claims) figures.push_back(figure_of(claim, grid.text()));
    } catch (const std::exception& error) {
      figures.push_back(broken_figure(fmt::format("tinylm, {}: the claims run", grid.text()), error));
    }
    return figures;
  };
}

}  // namespace

std::vector<GateFigure> gate_claims(const std::filesystem::path& data, int jobs) {
  const std::filesystem::path model = data / "tinylm";
  if (!std::filesystem::exists(model)) return {};
  const Weights weights(model, jobs);
  const std::vector<TokenId> tokens = prompt_of(model / "golden.json");
  const auto selected = [](const std::string& selection) {
    return KernelSet{selection, is_invariant(builtin_kernels(), selection),
                     [selection](const Arithmetic& arithmetic, int threads) {
                       return select_kernels(builtin_kernels(), selection, arithmetic, threads);
                     }};
  };
  std::vector<Suite> suites;
  for (const KernelSet& kernels : {reference_kernels(), selected("cpu"), selected("cpu-invariant")})
    suites.push_back(of_kernels(weights, tokens, kernels));
  for (const RankGrid& grid : kGrids) suites.push_back(of_ranks(model, tokens, grid));
  std::vector<std::vector<GateFigure>> of_suites(suites.size());
  parallel_for(jobs, suites.size(), [&](std::size_t i) { of_suites[i] = suites[i](); });
  std::vector<GateFigure> figures;
  for (std::vector<GateFigure>& more : of_suites)
    figures.insert(figures.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return figures;
}

}  // namespace assay
