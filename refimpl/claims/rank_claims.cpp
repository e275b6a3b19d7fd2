#include "refimpl/claims/rank_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/numeric/largest.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of all texts, relative to the largest of the whole's.
double farthest(const RankRun& cut, const RankRun& whole) {
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < whole.logits.size(); ++i) {
    if (cut.logits[i].size() != whole.logits[i].size()) return kNever;
    for (std::size_t k = 0; k < whole.logits[i].size(); ++k) {
      scale = std::max(scale, std::abs(whole.logits[i][k]));
      difference = larger_or_nan(difference, std::abs(cut.logits[i][k] - whole.logits[i][k]));
    }
  }
  return difference == 0 ? 0 : difference / scale;
}

// What a rank has of these lies in several pieces of the whole.
bool lies_in_pieces(std::string_view tap) {
  return tap.ends_with(".conv") || tap.ends_with(".conv_in");
}

// Is this the rank's part of the whole? Of fewer parts than ranks, neighbours have the same one.
bool is_part_of(const RankTap& mine, const RankTap& whole, const RankPlace& place) {
  if (mine.rows != whole.rows || mine.columns == 0 || whole.columns % mine.columns != 0) return false;
  const std::size_t parts = whole.columns / mine.columns;
  const std::size_t first = place.in_tp() * parts / place.grid.tp * mine.columns;
  for (std::size_t r = 0; r < mine.rows; ++r) {
    for (std::size_t c = 0; c < mine.columns; ++c) {
      const double a = mine.values[r * mine.columns + c], b = whole.values[r * whole.columns + first + c];
      if (!(a == b)) return false;
    }
  }
  return true;
}

struct TapDifference {
  std::size_t compared = 0, differing = 0;
  std::size_t first = SIZE_MAX;  // in the order of computation of the whole
  std::string where;
};

// Taps of one name come once a step, in the same order on both sides.
void compare_taps(const RankReport& rank, const std::vector<RankTap>& whole, TapDifference& to) {
  std::map<std::string, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < whole.size(); ++i) places[whole[i].name].push_back(i);
  std::map<std::string, std::size_t> seen;
  for (const RankTap& tap : rank.taps) {
    if (lies_in_pieces(tap.name)) continue;
    const std::size_t nth = seen[tap.name]++;
    const auto found = places.find(tap.name);
    const bool known = found != places.end() && nth < found->second.size();
    const std::size_t at = known ? found->second[nth] : SIZE_MAX - 1;
    ++to.compared;
    if (known && is_part_of(tap, whole[at], rank.place)) continue;
    ++to.differing;
    if (at >= to.first) continue;
    to.first = at;
    to.where = fmt::format("{} at rank {} ({})", tap.name, rank.place.rank, rank.place.grid.text());
  }
}

class RankClaims {
 public:
  explicit RankClaims(const RankClaimRequest& request) : request_(request), grid_(request.settings.grid) {
    const std::size_t n = request.tokens.size();
    if (n < 4) throw Error::usage("claims need a text of at least 4 tokens");
    for (std::size_t i = 0; i < 2 * grid_.dp; ++i) {
      const auto length = static_cast<std::ptrdiff_t>(n - std::min(n - 4, i));
      texts_.emplace_back(request.tokens.begin(), request.tokens.begin() + length);
    }
  }

  RankVerdict all() {
    if (request_.settings.kernels) return of_kernels();
    const RankRun whole = run({}, RankSum::tree), cut = run(grid_, RankSum::tree);
    add("ranks_tree", "{} ≡ one process, added in the same tree", "logits, relative to the largest",
        farthest(cut, whole));
    taps();
    RankedSettings again = request_.settings;
    again.ranks.run = 1;
    add("ranks_again", "{} twice ≡ once",
        "logits, relative to the largest, in the tree and in the order of ranks",
        larger_or_nan(farthest(run(again, grid_, RankSum::tree, texts_), cut),
                      farthest(run(again, grid_, RankSum::order, texts_), run(grid_, RankSum::order))));
    if (grid_.tp > 1 || grid_.ranks_of_an_expert() > 1) order();
    if (grid_.dp > 1) idle(whole);
    return std::move(verdict_);
  }

  // No tree is theirs: each sum against the reference's tree over the same inputs.
  RankVerdict of_kernels() {
    RankRun once = run(grid_, RankSum::order);
    add("ranks_again", "{} twice ≡ once", "logits, relative to the largest, in the order of ranks",
        farthest(run(grid_, RankSum::order), once));
    order();
    verdict_.ranks = std::move(once.ranks);
    return std::move(verdict_);
  }

  void taps() {
    TapDifference difference;
    for (std::size_t copy = 0; copy < grid_.dp; ++copy) {
      std::vector<std::vector<TokenId>> own;
      for (std::size_t i = copy; i < texts_.size(); i += grid_.dp) own.push_back(texts_[i]);
      const RankRun whole = run(request_.settings, {}, RankSum::tree, own, true);
      RankedSettings at_once = request_.settings;
      at_once.micro_batches = 1;
      RankRun cut = run(at_once, grid_, RankSum::tree, texts_, true);
      for (const RankReport& rank : cut.ranks)
        if (rank.place.copy() == copy) compare_taps(rank, whole.ranks.front().taps, difference);
      for (RankReport& rank : cut.ranks) rank.taps.clear();
      verdict_.ranks = std::move(cut.ranks);
    }
    verdict_.first_divergence = difference.where;
    add("ranks_taps", "{}: what each rank computes ≡ its part of the whole",
        difference.where.empty() ? fmt::format("of {} intermediates those that differ", difference.compared)
                                 : fmt::format("intermediates that differ, {} first", difference.where),
        static_cast<double>(difference.differing));
  }

  void order() {
    RankedSettings settings = request_.settings;
    settings.ranks.measured = true;
    const RankRun ordered = run(settings, grid_, RankSum::order, texts_);
    double worst = 0;
    for (const RankReport& rank : ordered.ranks) worst = larger_or_nan(worst, rank.worst_ratio);
    add("ranks_order", "{} added in the order of ranks ≈ in the tree",
        "a sum over K inputs, in units of 4 √K u Σ|x w|", worst, 1);
  }

  // One text, so that every copy but the first has none.
  void idle(const RankRun& whole) {
    RankRun one = whole;
    one.logits.resize(1);
    std::string measure = "logits, relative to the largest";
    double error = kNever;
    try {
      error = farthest(run(request_.settings, grid_, RankSum::tree, {texts_.front()}), one);
    } catch (const Error& failure) {
      if (failure.kind() != ErrorKind::io) throw;
      measure = failure.message();
    }
    add("ranks_idle", "{} with texts for the first copy alone ≡ one process", measure, error);
  }

  RankVerdict& verdict() { return verdict_; }

 private:
  RankRun run(const RankGrid& grid, RankSum sum) { return run(request_.settings, grid, sum, texts_); }
  RankRun run(const RankedSettings& settings, const RankGrid& grid, RankSum sum,
              const std::vector<std::vector<TokenId>>& texts, bool taps = false) {
    RankRunRequest request = {.path = request_.path,
                              .settings = settings,
                              .texts = texts,
                              .decode = request_.decode,
                              .taps = taps,
                              .limit = request_.limit};
    request.settings.grid = grid;
    request.settings.ranks.sum = sum;
    if (grid.ranks() == 1) request.settings.ranks.fault = RankFault::none;
    return run_ranks(request);
  }

  void add(std::string name, std::string_view statement, std::string measure, double error,
           double budget = 0) {
    verdict_.claims.push_back({std::move(name), fmt::format(fmt::runtime(statement), grid_.text()),
                               std::move(measure), error, budget});
  }

  const RankClaimRequest& request_;
  const RankGrid grid_;
  std::vector<std::vector<TokenId>> texts_;
  RankVerdict verdict_;
};

// Does the fault change anything where the model is cut so?
bool applies(RankFault fault, const ModuleTree& tree, const RankGrid& grid) {
  switch (fault) {
    case RankFault::replicated_heads:
      return std::any_of(tree.attention.begin(), tree.attention.end(), [&](const AttentionGeometry& g) {
        return g.kind == AttentionGeometry::Kind::heads && g.kv_heads > 1 && g.kv_heads < grid.tp;
      });
    case RankFault::layer_offset: return grid.pp > 1 && tree.layers % grid.pp != 0;
    case RankFault::reduction_order: return grid.tp > 2;  // of two, a + b = b + a
    case RankFault::idle_rank_is_absent: return grid.dp > 1 && tree.experts > 0;
    case RankFault::none: return false;
  }
  return false;
}

}  // namespace

RankVerdict rank_claims(const RankClaimRequest& request) {
  return RankClaims(request).all();
}

std::span<const PlantedRankFault> rank_faults() {
  static const std::vector<PlantedRankFault> faults = {
      {RankFault::replicated_heads, 42, "sglang#19086",
       "key heads are counted local × tp, though a head is repeated over ranks", "ranks_taps"},
      {RankFault::layer_offset, 45, "vllm-ascend#15900",
       "a stage counts its layers from stage × ⌊layers / pp⌋", "ranks_taps"},
      {RankFault::reduction_order, 50, "vllm#51290, vllm#45683",
       "partial sums are added in another order from run to run", "ranks_again"},
      {RankFault::idle_rank_is_absent, 51, "vllm#43547, vllm#51984",
       "a copy without texts takes no part in the experts' exchange", "ranks_idle"}};
  return faults;
}

std::vector<RankFaultVerdict> plant_rank_faults(const RankClaimRequest& request) {
  const Weights weights(request.path, request.settings.jobs);
  std::vector<RankFaultVerdict> verdicts;
  for (const PlantedRankFault& planted : rank_faults()) {
    RankFaultVerdict& verdict = verdicts.emplace_back(RankFaultVerdict{&planted, false, false, {}});
    verdict.applies = applies(planted.fault, weights.tree(), request.settings.grid);
    if (!verdict.applies) continue;
    RankClaimRequest faulty = request;
    faulty.settings.ranks.fault = planted.fault;
    // Whoever waits for a rank that does not come need not do so for long.
    faulty.limit = std::min(faulty.limit, std::chrono::milliseconds(2'000));
    const RankVerdict seen = rank_claims(faulty);
    for (const Claim& claim : seen.claims) {
      if (claim.name != planted.shown_by || claim.holds()) continue;
      verdict.caught = true;
      verdict.by = fmt::format("{}: {}", claim.name, claim.measure);
    }
  }
  return verdicts;
}

}  // namespace assay
