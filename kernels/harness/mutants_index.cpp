// Faults of the choice of keys.
#include <numeric>

#include "kernels/harness/mutants.h"

namespace assay {
namespace {

// x with columns of its own: change(row, its numbers).
Matrix with_rows(ReferenceOps& ops, const Matrix& x,
                 const std::function<void(std::size_t, std::span<double>)>& change) {
  std::vector<double> values = ops.download(x);
  for (std::size_t r = 0; r < x.rows(); ++r)
    change(r, std::span(values).subspan(r * x.columns(), x.columns()));
  return ops.upload(values, x.rows(), x.columns());
}

// relu(x) + sign · relu(-x): every head once more, turned round. -1: x itself; 1: |x|.
void without_relu(ReferenceOps& ops, IndexCall& c, double sign) {
  const Matrix turned = with_rows(ops, c.q, [](std::size_t, std::span<double> q) {
    for (double& x : q) x = -x;
  });
  const Matrix weights = with_rows(ops, c.weights, [sign](std::size_t, std::span<double> w) {
    for (double& x : w) x *= sign;
  });
  c.q = ops.concatenate(c.q, turned);
  c.weights = ops.concatenate(c.weights, weights);
  c.heads *= 2;
}

// Chosen by another order of the scores than best_keys() has.
using Before = std::function<bool(std::span<const double> scores, std::int32_t a, std::int32_t b)>;
Mutant<IndexCall> in_another_order(std::string_view name, std::string_view family, Before before) {
  return {.name = name,
          .family = family,
          .run = [before = std::move(before)](ReferenceOps& ops, const IndexCall& call, double) {
            std::vector<std::vector<std::int32_t>> keys(call.q.rows());
            visit_key_scores(ops, call, [&](std::size_t row, std::span<const double> scores) {
              std::vector<std::int32_t> all(scores.size());
              std::iota(all.begin(), all.end(), 0);
              std::stable_sort(all.begin(), all.end(),
                               [&](std::int32_t a, std::int32_t b) { return before(scores, a, b); });
              all.resize(std::min(all.size(), call.top_k));
              std::sort(all.begin(), all.end());
              keys[row] = std::move(all);
            });
            return with_positions(ops, std::move(keys), call.top_k);
          }};
}

double score_of(std::span<const double> scores, std::int32_t key) {
  return scores[static_cast<std::size_t>(key)];
}

void add_of_scores(std::vector<Mutant<IndexCall>>& all) {
  all.push_back(on_wrong_call<IndexCall>("relu forgotten", "index scores",
                                         [](ReferenceOps& ops, IndexCall& c) { without_relu(ops, c, -1); }));
  all.push_back(on_wrong_call<IndexCall>("|q k| in place of relu", "index scores",
                                         [](ReferenceOps& ops, IndexCall& c) { without_relu(ops, c, 1); }));
  all.push_back(on_wrong_call<IndexCall>(
      "each head with the weight of the next", "index scores", [](ReferenceOps& ops, IndexCall& c) {
        c.weights = with_rows(ops, c.weights, [](std::size_t, std::span<double> w) {
          std::rotate(w.begin(), w.begin() + 1, w.end());
        });
      }));
  all.push_back(on_wrong_call<IndexCall>(
      "heads added up without their weights", "index scores", [](ReferenceOps& ops, IndexCall& c) {
        c.weights = with_rows(ops, c.weights,
                              [](std::size_t, std::span<double> w) { std::fill(w.begin(), w.end(), 1.0); });
      }));
  all.push_back(
      on_wrong_call<IndexCall>("weights within relu", "index scores", [](ReferenceOps& ops, IndexCall& c) {
        const std::vector<double> weights = ops.download(c.weights);
        c.q = with_rows(ops, c.q, [&](std::size_t row, std::span<double> q) {
          for (std::size_t i = 0; i < q.size(); ++i) q[i] *= weights[row * c.heads + i / c.head_dim];
        });
        c.weights = with_rows(ops, c.weights,
                              [](std::size_t, std::span<double> w) { std::fill(w.begin(), w.end(), 1.0); });
      }));
  all.push_back(
      on_wrong_call<IndexCall>("the last head left out", "index scores", [](ReferenceOps& ops, IndexCall& c) {
        c.weights = with_rows(ops, c.weights, [](std::size_t, std::span<double> w) { w.back() = 0; });
      }));
  all.push_back(on_wrong_call<IndexCall>("the last element of each head left out", "index scores",
                                         [](ReferenceOps& ops, IndexCall& c) {
                                           c.q = with_rows(ops, c.q, [&](std::size_t, std::span<double> q) {
                                             for (std::size_t i = c.head_dim; i <= q.size(); i += c.head_dim)
                                               q[i - 1] = 0;
                                           });
                                         }));
  all.push_back({.name = "queries rounded on the way in",
                 .family = "index scores",
                 .unit = "mantissa bits",
                 .sizes = {2, 3, 7, 10},
                 .run = [](ReferenceOps& ops, const IndexCall& call, double bits) {
                   IndexCall rounded = call;
                   rounded.q = with_rows(ops, call.q, [bits](std::size_t, std::span<double> q) {
                     for (double& x : q) {
                       int exponent = 0;
                       const double fraction = std::frexp(x, &exponent);
                       const int shift = static_cast<int>(bits) + 1;
                       x = std::ldexp(std::nearbyint(std::ldexp(fraction, shift)), exponent - shift);
                     }
                   });
                   return run_reference(ops, rounded);
                 }});
}

void add_of_places(std::vector<Mutant<IndexCall>>& all) {
  all.push_back(
      on_wrong_call<IndexCall>("a query's newest key not seen", "causality", [](ReferenceOps&, IndexCall& c) {
        for (IndexSequence& s : c.sequences)
          if (s.position >= c.tokens_a_key) s.position -= c.tokens_a_key;
      }));
  all.push_back(on_wrong_call<IndexCall>("whole windows counted without the query's own token", "causality",
                                         [](ReferenceOps&, IndexCall& c) {
                                           for (IndexSequence& s : c.sequences)
                                             if (s.position > 0) --s.position;
                                         }));
  all.push_back(on_wrong_call<IndexCall>(
      "queries see the keys behind them in the step", "causality", [](ReferenceOps&, IndexCall& c) {
        std::vector<IndexSequence> apart;
        for (const IndexSequence& s : c.sequences)
          for (std::size_t i = 0; i < s.queries; ++i)
            apart.push_back({s.first + i, 1, s.position + s.queries - 1, s.key_rows});
        c.sequences = std::move(apart);
      }));
  all.push_back(
      on_wrong_call<IndexCall>("the page table ignored", "paged keys", [](ReferenceOps&, IndexCall& c) {
        for (IndexSequence& s : c.sequences) s.key_rows.pages = nullptr;
      }));
  all.push_back(on_wrong_call<IndexCall>(
      "the sequence before another's keys", "batches", [](ReferenceOps&, IndexCall& c) {
        for (std::size_t s = c.sequences.size(); s-- > 1;)  // which has as many and more
          c.sequences[s].key_rows = c.sequences[s - 1].key_rows;
      }));
}

void add_of_choices(std::vector<Mutant<IndexCall>>& all) {
  const auto so_many = [](std::string_view name, bool more) {
    return Mutant<IndexCall>{
        .name = name, .family = "top_k", .run = [more](ReferenceOps& ops, const IndexCall& call, double) {
          IndexCall wrong = call;
          wrong.top_k = more ? call.top_k + 1 : std::max<std::size_t>(2, call.top_k) - 1;
          return with_positions(ops, run_reference(ops, wrong).keys, call.top_k);
        }};
  };
  all.push_back(so_many("one key too few", false));
  all.push_back(so_many("one key too many", true));
  all.push_back(in_another_order("the later of equal keys", "ties",
                                 [](std::span<const double> scores, std::int32_t a, std::int32_t b) {
                                   const double of_a = score_of(scores, a), of_b = score_of(scores, b);
                                   if (std::isnan(of_a) || std::isnan(of_b))
                                     return !std::isnan(of_a) && std::isnan(of_b);
                                   return of_a != of_b ? of_a > of_b : a > b;
                                 }));
  all.push_back(in_another_order("NaN chosen before numbers", "NaN",
                                 [](std::span<const double> scores, std::int32_t a, std::int32_t b) {
                                   const double of_a = score_of(scores, a), of_b = score_of(scores, b);
                                   if (std::isnan(of_a) || std::isnan(of_b))
                                     return std::isnan(of_a) && !std::isnan(of_b);
                                   return of_a > of_b;
                                 }));
  all.push_back(
      in_another_order("the newest keys in place of the best", "index scores",
                       [](std::span<const double>, std::int32_t a, std::int32_t b) { return a > b; }));
  all.push_back({.name = "keys from the last to the first",
                 .family = "order",
                 .run = [](ReferenceOps& ops, const IndexCall& call, double) {
                   std::vector<std::vector<std::int32_t>> keys = run_reference(ops, call).keys;
                   for (std::vector<std::int32_t>& row : keys) std::reverse(row.begin(), row.end());
                   return with_positions(ops, std::move(keys), call.top_k);
                 }});
  all.push_back({.name = "a key chosen twice",
                 .family = "duplicates",
                 .run = [](ReferenceOps& ops, const IndexCall& call, double) {
                   std::vector<std::vector<std::int32_t>> keys = run_reference(ops, call).keys;
                   for (std::vector<std::int32_t>& row : keys)
                     if (row.size() > 1) row[1] = row[0];
                   return with_positions(ops, std::move(keys), call.top_k);
                 }});
}

}  // namespace

template <>
std::vector<Mutant<IndexCall>> mutants_of() {
  std::vector<Mutant<IndexCall>> all;
  add_of_scores(all);
  add_of_places(all);
  add_of_choices(all);
  return all;
}

}  // namespace assay
