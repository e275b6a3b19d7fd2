// Layers that keep a state of fixed size instead of a cache that grows: linear attention with the delta rule,
// state spaces, short convolutions. Paths and names are relative, as in blocks.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/blocks.h"

namespace assay::blocks {

// Gated DeltaNet (arXiv 2412.06464), as Qwen3-Next has it: q, k and v pass a causal convolution of each channel, and
//
//   β = sigmoid(b), g = -exp(A_log) · softplus(a + dt_bias)
//   S ← S · exp(g);  S ← S + k ⊗ ((v - kᵀS) · β);  o = qᵀS;  out_proj(norm(o) · silu(z))
struct GatedDeltaNet {
  Quantity hidden, key_heads, value_heads, key_dim, value_dim, kernel;
  bool fused =
      false;  // in_proj_qkvz and in_proj_ba, rows grouped by key head (Qwen3-Next); else four matrices
};
Module gated_delta_net(const GatedDeltaNet& n);
RecurrentGeometry geometry(const GatedDeltaNet& n, std::vector<std::uint64_t> layers);

// Kimi Delta Attention (arXiv 2510.26692): a delta rule that forgets channel by channel,
//
//   g = -exp(A_log) · softplus(f_b(f_a(x)) + dt_bias), or where it has a lower bound l: l · sigmoid(exp(A_log) · (…))
struct KimiDeltaAttention {
  Quantity hidden, heads, head_dim, kernel;
  bool full_rank_gate = false;             // g_proj, else g_b_proj(g_a_proj(x))
  bool full_rank_decay = false;            // f_proj, else f_b_proj(f_a_proj(x))
  std::vector<Quantity> decay_shape = {};  // of A_log
};
Module kimi_delta_attention(const KimiDeltaAttention& k);
RecurrentGeometry geometry(const KimiDeltaAttention& k, std::vector<std::uint64_t> layers);

// Mamba-2 (arXiv 2405.21060): in_proj makes z | x B C | dt, x B C pass a causal convolution, and
//
//   h ← h · exp(-exp(A_log) · dt) + dt · B ⊗ x;  y = C·h + D·x;  out_proj(norm(y · silu(z)))
struct Mamba2 {
  Quantity hidden, heads, head_dim, groups, state, kernel;
  bool conv_bias = true, bias = false;
  std::optional<bool> output_bias = {};  // absent: as in_proj
  bool norm = true;
  std::string path = "mixer";
  std::string title = "Mamba-2";
};
Module mamba2(const Mamba2& m);
RecurrentGeometry geometry(const Mamba2& m, std::vector<std::uint64_t> layers);

// Mamba (arXiv 2312.00752): in_proj makes x | z, x passes a causal convolution, x_proj makes dt | B | C of it, and
//
//   h ← h · exp(-exp(A_log) · dt) + dt · B · x for each channel, dt = softplus(dt_proj(dt));  out_proj((C·h + D·x) · silu(z))
struct Mamba1 {
  Quantity hidden, inner, state, rank, kernel;
  bool conv_bias = true, bias = false;
  bool norms = false;  // of dt, B and C (Jamba)
  std::string path = "mixer";
};
Module mamba1(const Mamba1& m);
RecurrentGeometry geometry(const Mamba1& m, std::vector<std::uint64_t> layers);

// LFM2's gated short convolution: out_proj(C · conv(B · x)) with B, C, x out of one in_proj.
struct ShortConvolution {
  Quantity hidden, kernel;
  bool bias = false;
};
Module short_convolution(const ShortConvolution& s);
RecurrentGeometry geometry(const ShortConvolution& s, std::vector<std::uint64_t> layers);

}  // namespace assay::blocks
