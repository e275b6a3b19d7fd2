// How much a model computes: floating-point operations of a token, where attention overtakes the MLP, and
// what memory bandwidth allows.
//
//   linear work          2 × parameters of the matrices a token meets
//   attention            2 × heads × (qk_head_dim + v_head_dim) × keys    a token and layer
//   decode at context H  H + 1 keys: those cached and its own
//   prefill of T         T (T + 1) / 2 pairs of query and key: the causal half
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/module_tree.h"
#include "core/model/weight_bytes.h"

namespace assay {

struct ComputeRow {
  std::string what;          // "attention: projections", "routed experts"
  std::uint64_t decode = 0;  // FLOPs of one token at the context
  long double prefill = 0;   // FLOPs of the whole prompt: whole numbers up to 2^64
};

// The contexts at which attention catches up, for one kind of layer; every query sees every key here (a
// causal prompt sees half of them on average: double the numbers).
struct Crossing {
  std::string layers;              // "58 MoE layers"
  bool absorbed = false;           // MLA in its absorbed form, as decoding runs it
  double block_equals_mlp = 0;     // projections + scores = MLP
  double scores_equal_mlp = 0;     // scores = MLP
  double scores_equal_linear = 0;  // scores = projections + MLP
  std::uint64_t window = 0;        // this kind of layer never sees more keys
};

struct ComputeReport {
  std::uint64_t context = 0;
  std::uint64_t matmul_active = 0;
  std::vector<ComputeRow> rows;
  std::uint64_t decode = 0;           // expanded attention: K and V per head
  std::uint64_t decode_absorbed = 0;  // MLA over the latent cache; equals decode elsewhere
  std::uint64_t prefill = 0;
  std::vector<Crossing> crossings;
  double attention_intensity = 0;  // FLOP a byte of cache in decoding, bf16
  std::string intensity_formula;
};
ComputeReport compute(const ModuleTree& tree, std::uint64_t context);

struct Roofline {
  std::uint64_t weight_bytes = 0;         // read for one step of the batch
  std::uint64_t kv_bytes = 0;             // read for one step of the batch
  std::uint64_t flops = 0;                // of one step
  double tokens_per_second = 0;           // of the batch
  double by_bandwidth = 0, by_flops = 0;  // what each alone allows; 0: not given
};
struct Machine {
  double bandwidth = 0;  // bytes a second
  double flops = 0;      // a second
};
Roofline roofline(const ModuleTree& tree, const WeightFormat& format, const ComputeReport& report,
                  double kv_value_bytes, std::uint64_t batch, const Machine& machine);

}  // namespace assay
