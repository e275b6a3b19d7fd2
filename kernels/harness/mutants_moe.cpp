// Faults of routing and of mixtures of experts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/numeric/codec.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/mutants.h"

namespace assay {
namespace {

Mutant<MoeGateCall> on_weights(
    std::string_view name, std::string_view family,
    const std::function<void(const MoeGateCall&, std::size_t token, std::size_t count,
                             const std::int32_t* experts, float* weights)>& change) {
  return {
      .name = name, .family = family, .run = [change](ReferenceOps& ops, const MoeGateCall& call, double) {
        Routing r = run_reference(ops, call);
        for (std::size_t t = 0; t < call.logits.rows(); ++t)
          change(call, t, r.top_k, &r.experts[t * r.top_k], r.weights.row<float>(t));
        return r;
      }};
}

}  // namespace

template <>
std::vector<Mutant<MoeGateCall>> mutants_of() {
  std::vector<Mutant<MoeGateCall>> all = {
      on_weights(
          "the correction leaks into the weights", "router bias (1)",
          [](const MoeGateCall& c, std::size_t, std::size_t count, const std::int32_t* experts, float* w) {
            if (!c.correction) return;
            const std::vector<double> bias = decode_vector(c.correction);
            for (std::size_t i = 0; i < count; ++i)
              w[i] += static_cast<float>(bias[static_cast<std::size_t>(experts[i])]);
          }),
      on_weights(
          "the correction leaks into weights that are not renormalized", "router bias (1)",
          [](const MoeGateCall& c, std::size_t, std::size_t count, const std::int32_t* experts, float* w) {
            if (!c.correction || c.rule.renormalize) return;
            const std::vector<double> bias = decode_vector(c.correction);
            for (std::size_t i = 0; i < count; ++i)
              w[i] += static_cast<float>(bias[static_cast<std::size_t>(experts[i])] * c.rule.scale);
          }),
      on_wrong_call<MoeGateCall>(
          "groups not chosen count as 0 instead of -inf", "group mask (2)",
          [](ReferenceOps&, MoeGateCall& c) { c.rule.masked_is_zero = !c.rule.masked_is_zero; }),
      on_wrong_call<MoeGateCall>(
          "groups scored by their best alone", "group score (2)",
          [](ReferenceOps&, MoeGateCall& c) { c.rule.group_score = GateRule::GroupScore::largest; }),
      on_wrong_call<MoeGateCall>(
          "groups ignored", "group mask (2)",
          [](ReferenceOps&, MoeGateCall& c) { c.rule.groups = c.rule.chosen_groups = 1; }),
      on_wrong_call<MoeGateCall>("the correction ignored", "router bias (1)",
                                 [](ReferenceOps&, MoeGateCall& c) { c.correction = {}; }),
      on_wrong_call<MoeGateCall>("weights scaled twice", "routed scaling factor (5)",
                                 [](ReferenceOps&, MoeGateCall& c) { c.rule.scale *= c.rule.scale; }),
      on_wrong_call<MoeGateCall>("weights not scaled", "routed scaling factor (5)",
                                 [](ReferenceOps&, MoeGateCall& c) { c.rule.scale = 1; }),
      on_wrong_call<MoeGateCall>("weights not renormalized", "gate weights",
                                 [](ReferenceOps&, MoeGateCall& c) { c.rule.renormalize = false; }),
      on_wrong_call<MoeGateCall>(
          "softmax over the chosen instead of all, and the other way round", "gate weights",
          [](ReferenceOps&, MoeGateCall& c) { c.rule.top_k_first = !c.rule.top_k_first; }),
      on_wrong_call<MoeGateCall>(
          "σ mistaken for softmax", "gate weights",
          [](ReferenceOps&, MoeGateCall& c) { c.rule.score = GateRule::Score::softmax; }),
      on_weights("weights in the order of the experts' numbers", "gate weights",
                 [](const MoeGateCall&, std::size_t, std::size_t count, const std::int32_t*, float* w) {
                   std::sort(w, w + count);
                 }),
  };
  // The correction in BF16 where it was kept in float32.
  all.push_back({.name = "the correction in BF16",
                 .family = "router bias in BF16 (3)",
                 .run = [](ReferenceOps& ops, const MoeGateCall& call, double) {
                   if (!call.correction) return run_reference(ops, call);
                   std::vector<float> bias(call.correction.columns);
                   decode_rows(call.correction, 0, 1, bias.data());
                   for (float& b : bias) b = decode(kBF16, encode(kBF16, b, Overflow::special));
                   const MadeWeight rounded(bias, 1, bias.size());
                   MoeGateCall wrong = call;
                   wrong.correction = rounded.view();
                   return run_reference(ops, wrong);
                 }});
  // A search for the largest that begins at 0 finds nothing among negative numbers but its first guess.
  all.push_back(
      {.name = "a search for the best that begins at 0",
       .family = "all choices negative (4)",
       .run = [](ReferenceOps& ops, const MoeGateCall& call, double) {
         Routing r = run_reference(ops, call);
         const std::vector<double> bias =
             call.correction ? decode_vector(call.correction) : std::vector<double>(call.logits.columns());
         for (std::size_t t = 0; t < call.logits.rows() && call.rule.score == GateRule::Score::sigmoid; ++t) {
           bool negative = true;
           for (std::size_t e = 0; e < bias.size(); ++e)
             negative &= 1 / (1 + std::exp(-call.logits.row<float>(t)[e])) + bias[e] < 0;
           if (negative) std::fill_n(&r.experts[t * r.top_k], r.top_k, 0);
         }
         return r;
       }});
  all.push_back({.name = "the later of equal experts",
                 .family = "ties",
                 .run = [](ReferenceOps& ops, const MoeGateCall& call, double) {
                   MoeGateCall turned = call;
                   const std::size_t n = call.logits.columns();
                   if (call.correction || call.rule.groups != 1) return run_reference(ops, call);
                   turned.logits = ops.allocate(call.logits.rows(), n);
                   for (std::size_t t = 0; t < call.logits.rows(); ++t) {
                     for (std::size_t e = 0; e < n; ++e)
                       turned.logits.row<float>(t)[e] = call.logits.row<float>(t)[n - 1 - e];
                   }
                   Routing r = run_reference(ops, turned);
                   for (std::int32_t& e : r.experts) e = static_cast<std::int32_t>(n) - 1 - e;
                   return r;
                 }});
  all.push_back({.name = "logits rounded on the way in",
                 .family = "router precision (3)",
                 .unit = "mantissa bits",
                 .sizes = {7, 10, 13, 16},
                 .run = [](ReferenceOps& ops, const MoeGateCall& call, double bits) {
                   MoeGateCall rounded = call;
                   rounded.logits = ops.allocate(call.logits.rows(), call.logits.columns());
                   for (std::size_t t = 0; t < call.logits.rows(); ++t) {
                     for (std::size_t e = 0; e < call.logits.columns(); ++e) {
                       int exponent = 0;
                       const double fraction = std::frexp(call.logits.row<float>(t)[e], &exponent);
                       const int shift = static_cast<int>(bits) + 1;
                       rounded.logits.row<float>(t)[e] = static_cast<float>(
                           std::ldexp(std::nearbyint(std::ldexp(fraction, shift)), exponent - shift));
                     }
                   }
                   return run_reference(ops, rounded);
                 }});
  return all;
}

template <>
std::vector<Mutant<FusedMoeCall>> mutants_of() {
  const auto swap_experts = [](ReferenceOps&, FusedMoeCall& c) {
    if (c.experts.down.size() > 1) std::swap(c.experts.down[0], c.experts.down[1]);
  };
  const auto fresh_weights = [](ReferenceOps& ops, FusedMoeCall& c,
                                const std::function<float(std::size_t, std::size_t, float)>& change) {
    const Matrix from = c.routing.weights;
    c.routing.weights = ops.allocate(from.rows(), from.columns());
    for (std::size_t t = 0; t < from.rows(); ++t) {
      for (std::size_t i = 0; i < from.columns(); ++i)
        c.routing.weights.row<float>(t)[i] = change(t, i, from.row<float>(t)[i]);
    }
  };
  return {
      on_wrong_call<FusedMoeCall>("two experts' down matrices swapped", "swapped expert", swap_experts),
      on_wrong_call<FusedMoeCall>("gate and up of the experts swapped", "gates",
                                  [](ReferenceOps&, FusedMoeCall& c) {
                                    // Experts without gates have nothing to swap.
                                    if (!c.experts.gate.empty()) std::swap(c.experts.gate, c.experts.up);
                                    c.experts.interleaved =
                                        c.experts.interleaved != !c.experts.gate_up.empty();
                                  }),
      on_wrong_call<FusedMoeCall>("each token's last expert left out", "dispatch",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    const std::size_t last = c.routing.top_k - 1;
                                    fresh_weights(ops, c, [last](std::size_t, std::size_t i, float w) {
                                      return i == last ? 0.0F : w;
                                    });
                                  }),
      on_wrong_call<FusedMoeCall>("each token's eighth expert left out", "dispatch",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    fresh_weights(ops, c, [](std::size_t, std::size_t i, float w) {
                                      return i == 7 ? 0.0F : w;
                                    });
                                  }),
      on_wrong_call<FusedMoeCall>("an expert's tokens beyond 64 left out", "dispatch",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    std::vector<std::size_t> tokens(c.experts.down.size());
                                    fresh_weights(ops, c, [&](std::size_t t, std::size_t i, float w) {
                                      const std::int32_t e = c.routing.experts[t * c.routing.top_k + i];
                                      return ++tokens[static_cast<std::size_t>(e)] > 64 ? 0.0F : w;
                                    });
                                  }),
      on_wrong_call<FusedMoeCall>("the last token of the batch not computed", "dispatch",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    const std::size_t last = c.x.rows() - 1;
                                    fresh_weights(ops, c, [last](std::size_t t, std::size_t, float w) {
                                      return t == last ? 0.0F : w;
                                    });
                                  }),
      on_wrong_call<FusedMoeCall>("routing weights in BF16", "silent BF16",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    fresh_weights(ops, c, [](std::size_t, std::size_t, float w) {
                                      return decode(kBF16, encode(kBF16, w, Overflow::special));
                                    });
                                  }),
      on_wrong_call<FusedMoeCall>("weights applied twice", "routed scaling factor (5)",
                                  [fresh_weights](ReferenceOps& ops, FusedMoeCall& c) {
                                    fresh_weights(ops, c,
                                                  [](std::size_t, std::size_t, float w) { return w * w; });
                                  }),
      {.name = "routing weights × (1 + size)",
       .family = "routed scaling factor (5)",
       .unit = "× 1 +",
       .sizes = {0.1, 0x1p-6, 0x1p-8, 0x1p-10, 0x1p-12, 0x1p-14, 0x1p-16, 0x1p-18},
       .run =
           [fresh_weights](ReferenceOps& ops, const FusedMoeCall& call, double size) {
             FusedMoeCall wrong = call;
             fresh_weights(ops, wrong, [size](std::size_t, std::size_t, float w) {
               return static_cast<float>(w * (1 + size));
             });
             return run_reference(ops, wrong);
           }},
  };
}

}  // namespace assay
