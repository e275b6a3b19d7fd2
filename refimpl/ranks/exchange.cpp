// Experts dealt out: every token to the ranks that have its experts, what they make of it back to where it came from.
//
// Of a copy's tokens, which all its tp ranks have, rank r sends those with number ≡ r mod tp; so that each goes out
// once. An expert sees its tokens in the order of senders, and its result for a token does not depend on the others.
// The sender adds up what comes back in the order of the experts' numbers, as one process does: the same bits.
#include <algorithm>
#include <cstdint>

#include "core/system/error.h"
#include "refimpl/ops/support.h"
#include "refimpl/ranks/rank_ops.h"

namespace assay {
namespace {

// A row under way: [token | expert | numbers].
constexpr std::size_t kHeading = 2;

struct Parcel {
  std::size_t sender = 0;
  double token = 0;
  std::size_t expert = 0;
  const double* numbers = nullptr;
};

std::vector<Parcel> unpacked(const std::vector<std::vector<double>>& messages, std::size_t width) {
  std::vector<Parcel> parcels;
  for (std::size_t r = 0; r < messages.size(); ++r) {
    for (std::size_t at = 0; at < messages[r].size(); at += kHeading + width) {
      const double* row = messages[r].data() + at;
      parcels.push_back({r, row[0], static_cast<std::size_t>(row[1]), row + kHeading});
    }
  }
  return parcels;
}

void pack(std::vector<double>& message, double token, std::size_t expert, const double* numbers,
          std::size_t width) {
  message.push_back(token);
  message.push_back(static_cast<double>(expert));
  message.insert(message.end(), numbers, numbers + width);
}

}  // namespace

Matrix RankOps::sent_to_experts(const Matrix& all_rows, const Routing& routing, std::size_t experts,
                                const ExpertFunction& expert_of) {
  RankGroup& stage = groups_.stage;
  const RankGrid& grid = groups_.place.grid;
  const std::size_t tokens = all_rows.rows(), width = all_rows.columns(), top_k = routing.top_k;
  const std::size_t each = experts / grid.ep, ranks = grid.ranks_of_an_expert();
  const std::vector<double> x = download(all_rows), weights = download(routing.weights);
  exchanging_ = true;

  std::vector<std::vector<double>> out(stage.size());
  for (std::size_t t = groups_.tensor.rank(); t < tokens; t += groups_.tensor.size()) {
    for (std::size_t i = 0; i < top_k; ++i) {
      const auto expert = static_cast<std::size_t>(routing.experts[t * top_k + i]);
      const std::size_t first = expert / each * ranks;
      for (std::size_t r = first; r < first + ranks; ++r)
        pack(out[r], static_cast<double>(t), expert, &x[t * width], width);
    }
  }
  const auto given = stage.all_to_all(std::move(out));
  const std::vector<Parcel> parcels = unpacked(given, width);

  std::vector<std::vector<double>> back(stage.size());
  const std::size_t mine = groups_.place.expert_group() * each;
  for (std::size_t e = mine; e < mine + each; ++e) {
    std::vector<const Parcel*> of_expert;
    std::vector<double> rows;
    for (const Parcel& parcel : parcels) {
      if (parcel.expert != e) continue;
      of_expert.push_back(&parcel);
      rows.insert(rows.end(), parcel.numbers, parcel.numbers + width);
    }
    if (of_expert.empty()) continue;
    const Matrix y = expert_of(as_it_is(*this, rows, of_expert.size(), width), e);
    if (groups_.expert.rank() != 0) continue;  // all ranks of the group have the sum; one says it
    const std::vector<double> results = download(y);
    for (std::size_t i = 0; i < of_expert.size(); ++i)
      pack(back[of_expert[i]->sender], of_expert[i]->token, e, &results[i * width], width);
  }
  exchanging_ = false;
  const auto returned = stage.all_to_all(std::move(back));
  std::vector<Parcel> results = unpacked(returned, width);
  std::stable_sort(results.begin(), results.end(),
                   [](const Parcel& a, const Parcel& b) { return a.expert < b.expert; });

  std::vector<double> sums(tokens * width);
  for (const Parcel& result : results) {
    const auto t = static_cast<std::size_t>(result.token);
    double weight = 0;
    for (std::size_t i = 0; i < top_k; ++i)
      if (static_cast<std::size_t>(routing.experts[t * top_k + i]) == result.expert)
        weight = weights[t * top_k + i];
    double* sum = &sums[t * width];
    for (std::size_t c = 0; c < width; ++c)
      sum[c] = arithmetic().stage(sum[c] + arithmetic().stage(result.numbers[c] * weight));
  }
  if (groups_.tensor.size() > 1) {
    const auto all = groups_.tensor.all_gather(sums);
    for (std::size_t t = 0; t < tokens; ++t)
      std::copy_n(all[t % all.size()].begin() + static_cast<std::ptrdiff_t>(t * width), width,
                  sums.begin() + static_cast<std::ptrdiff_t>(t * width));
  }
  return upload(sums, tokens, width);
}

}  // namespace assay
