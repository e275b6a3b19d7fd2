// A right kernel for every operation but linear (right.c), plain and in double: what kernels/plugin.h says of
// each call, and nothing else, is what these are written from.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "decode.h"

namespace {

using Values = std::vector<double>;

bool is_float32(const assay_context* context) {
  return context->precision == ASSAY_PRECISION_F32;
}
bool absent_or_decodable(const assay_weight* w) {
  return w == nullptr || can_decode(w) != 0;
}

// A matrix of weights as rows on end; empty of none.
struct Dense {
  explicit Dense(const assay_weight* w) {
    if (w == nullptr) return;
    columns = w->columns;
    values.resize(w->rows * columns);
    for (size_t r = 0; r < w->rows; ++r) decode_row(w, r, &values[r * columns]);
  }
  double at(size_t r, size_t c) const { return values[r * columns + c]; }
  bool empty() const { return values.empty(); }
  size_t columns = 0;
  std::vector<float> values;
};

double activated(int32_t kind, double x) {
  switch (kind) {
    case ASSAY_SILU: return x / (1 + std::exp(-x));
    case ASSAY_GELU: return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case ASSAY_GELU_TANH: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: return std::max(x, 0.0);
  }
}
double gated(int32_t kind, double limit, double gate, double up) {
  if (kind != ASSAY_GPT_OSS) return activated(kind, gate) * up;
  const double g = std::min(gate, limit), u = std::clamp(up, -limit, limit);
  return g / (1 + std::exp(-1.702 * g)) * (u + 1);
}

// e^(s - max) / Σ, in place; `sink` takes its share where there is one.
void softmax(Values& s, const double* sink = nullptr) {
  double largest = sink == nullptr ? -std::numeric_limits<double>::infinity() : *sink;
  for (const double x : s) largest = std::max(largest, x);
  double sum = sink == nullptr ? 0 : std::exp(*sink - largest);
  for (double& x : s) sum += x = std::exp(x - largest);
  for (double& x : s) x /= sum;
}

// --- row by row

int rms_norm(const assay_rms_norm& a) {
  const Dense w(a.weight);
  const size_t group = w.columns;
  for (size_t t = 0; t < a.x.rows; ++t) {
    const float* x = row_of(&a.x, t);
    for (size_t g = 0; g + group <= a.x.columns; g += group) {
      double squares = 0;
      for (size_t i = 0; i < group; ++i) squares += double(x[g + i]) * x[g + i];
      const double factor = 1 / std::sqrt(squares / double(group) + a.epsilon);
      for (size_t i = 0; i < group; ++i) {
        const double weight = w.at(0, i) + (a.form == ASSAY_NORM_ONE_PLUS_WEIGHT ? 1 : 0);
        out_row(&a.y, t)[g + i] = float(x[g + i] * factor * weight);
      }
    }
  }
  return 0;
}

int layer_norm(const assay_layer_norm& a) {
  const Dense w(a.weight), b(a.bias);
  for (size_t t = 0; t < a.x.rows; ++t) {
    const float* x = row_of(&a.x, t);
    const double n = double(a.x.columns);
    const double mean = std::accumulate(x, x + a.x.columns, 0.0) / n;
    double variance = 0;
    for (size_t i = 0; i < a.x.columns; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(variance / n + a.epsilon);
    for (size_t i = 0; i < a.x.columns; ++i)
      out_row(&a.y, t)[i] = float((x[i] - mean) * factor * w.at(0, i) + (b.empty() ? 0 : b.at(0, i)));
  }
  return 0;
}

int rope(const assay_rope& a) {
  const size_t pairs = a.cos.columns;
  for (size_t t = 0; t < a.x.rows; ++t) {
    for (size_t h = 0; h < a.heads; ++h) {
      float* head = out_row(&a.x, t) + h * a.head_dim + a.offset;
      for (size_t i = 0; i < pairs; ++i) {
        float& x = head[a.interleaved ? 2 * i : i];
        float& y = head[a.interleaved ? 2 * i + 1 : i + pairs];
        const double cos = row_of(&a.cos, t)[i], sin = row_of(&a.sin, t)[i], u = x, v = y;
        x = float(u * cos - v * sin);
        y = float(v * cos + u * sin);
      }
    }
  }
  return 0;
}

int activation(const assay_activation& a) {
  for (size_t t = 0; t < a.x.rows; ++t)
    for (size_t i = 0; i < a.x.columns; ++i)
      out_row(&a.y, t)[i] = float(activated(a.kind, row_of(&a.x, t)[i]));
  return 0;
}

int gate_and_up(const assay_gated_activation& a) {
  for (size_t t = 0; t < a.gate.rows; ++t)
    for (size_t i = 0; i < a.gate.columns; ++i)
      out_row(&a.y, t)[i] = float(gated(a.kind, a.limit, row_of(&a.gate, t)[i], row_of(&a.up, t)[i]));
  return 0;
}

int softmax_rows(const assay_softmax& a) {
  for (size_t t = 0; t < a.x.rows; ++t) {
    Values row(row_of(&a.x, t), row_of(&a.x, t) + a.x.columns);
    softmax(row);
    std::copy(row.begin(), row.end(), out_row(&a.y, t));
  }
  return 0;
}

// --- attention

const float* cache_row(const assay_paged_kv& cache, size_t position) {
  if (cache.pages == nullptr) return row_of(&cache.base, position);
  return row_of(&cache.base, size_t(cache.pages[position / cache.page_rows]) * cache.page_rows +
                                 position % cache.page_rows);
}

void attend(const assay_attention& a, const Dense& sinks, const assay_sequence& s, size_t query,
            size_t head) {
  const size_t position = s.keys - s.queries + query, kv = head / (a.heads / a.kv_heads);
  const size_t first = a.window != 0 && position + 1 > a.window ? position + 1 - a.window : 0;
  const float* q = row_of(&a.q, s.first + query) + head * a.qk_dim;
  Values p;
  for (size_t k = first; k <= position; ++k) {
    const float* key = cache_row(s.key_rows, k) + kv * a.qk_dim;
    double score = 0;
    for (size_t i = 0; i < a.qk_dim; ++i) score += double(q[i]) * key[i];
    score *= a.scale;
    p.push_back(a.soft_cap == 0 ? score : a.soft_cap * std::tanh(score / a.soft_cap));
  }
  const double sink = sinks.empty() ? 0 : sinks.values[head];
  softmax(p, sinks.empty() ? nullptr : &sink);
  Values out(a.v_dim);
  for (size_t k = first; k <= position; ++k)
    for (size_t i = 0; i < a.v_dim; ++i)
      out[i] += p[k - first] * cache_row(s.value_rows, k)[kv * a.v_dim + i];
  std::copy(out.begin(), out.end(), out_row(&a.y, s.first + query) + head * a.v_dim);
}

int attention(const assay_attention& a) {
  const Dense sinks(a.sinks);
  for (size_t s = 0; s < a.sequence_count; ++s)
    for (size_t i = 0; i < a.sequences[s].queries; ++i)
      for (size_t h = 0; h < a.heads; ++h) attend(a, sinks, a.sequences[s], i, h);
  return 0;
}

// Row i of head h's expansion to keys or values, of either way in which it is stored.
struct Expansion {
  const assay_mla& a;
  Dense both, keys, values;
  explicit Expansion(const assay_mla& call) : a(call), both(call.kv_b), keys(call.k_b), values(call.v_b) {}
  double key(size_t h, size_t n, size_t r) const {
    return both.empty() ? keys.at(h * a.kv_rank + r, n) : both.at(h * (a.nope_dim + a.v_dim) + n, r);
  }
  double value(size_t h, size_t i, size_t r) const {
    return both.empty() ? values.at(h * a.v_dim + i, r)
                        : both.at(h * (a.nope_dim + a.v_dim) + a.nope_dim + i, r);
  }
};

void attend(const Expansion& w, const assay_sequence& s, size_t query, size_t h) {
  const assay_mla& a = w.a;
  const float* q = row_of(&a.q, s.first + query) + h * (a.nope_dim + a.rope_dim);
  Values latent(a.kv_rank), p, mixed(a.kv_rank);
  for (size_t n = 0; n < a.nope_dim; ++n)
    for (size_t r = 0; r < a.kv_rank; ++r) latent[r] += q[n] * w.key(h, n, r);
  const size_t count = s.keys - s.queries + query + 1;
  for (size_t k = 0; k < count; ++k) {
    const float* row = cache_row(s.key_rows, k);
    double score = std::inner_product(latent.begin(), latent.end(), row, 0.0);
    for (size_t r = 0; r < a.rope_dim; ++r) score += double(q[a.nope_dim + r]) * row[a.kv_rank + r];
    p.push_back(score * a.scale);
  }
  softmax(p);
  for (size_t k = 0; k < count; ++k)
    for (size_t r = 0; r < a.kv_rank; ++r) mixed[r] += p[k] * cache_row(s.key_rows, k)[r];
  for (size_t i = 0; i < a.v_dim; ++i) {
    double y = 0;
    for (size_t r = 0; r < a.kv_rank; ++r) y += w.value(h, i, r) * mixed[r];
    out_row(&a.y, s.first + query)[h * a.v_dim + i] = float(y);
  }
}

int mla(const assay_mla& a) {
  const Expansion w(a);
  for (size_t s = 0; s < a.sequence_count; ++s)
    for (size_t i = 0; i < a.sequences[s].queries; ++i)
      for (size_t h = 0; h < a.heads; ++h) attend(w, a.sequences[s], i, h);
  return 0;
}

// --- mixtures of experts

// The `count` best, the earlier of equals first.
std::vector<size_t> best(const Values& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return scores[x] > scores[y]; });
  order.resize(count);
  return order;
}

void mask_groups(const assay_moe_gate& a, Values& choice) {
  if (a.groups <= 1 || a.chosen_groups >= a.groups) return;
  const size_t size = choice.size() / a.groups;
  Values of_group;
  for (size_t g = 0; g < a.groups; ++g) {
    Values members(choice.begin() + ptrdiff_t(g * size), choice.begin() + ptrdiff_t((g + 1) * size));
    std::sort(members.begin(), members.end(), std::greater<>());
    of_group.push_back(members[0] + (a.group_score == ASSAY_GROUP_SUM_OF_TWO && size > 1 ? members[1] : 0));
  }
  std::vector<bool> kept(a.groups);
  for (const size_t g : best(of_group, a.chosen_groups)) kept[g] = true;
  for (size_t e = 0; e < choice.size(); ++e)
    if (!kept[e / size]) choice[e] = a.masked_is_zero ? 0 : -std::numeric_limits<double>::infinity();
}

int moe_gate(const assay_moe_gate& a) {
  const Dense correction(a.correction);
  for (size_t t = 0; t < a.logits.rows; ++t) {
    Values scores(row_of(&a.logits, t), row_of(&a.logits, t) + a.logits.columns);
    const Values logits = scores;
    if (a.score == ASSAY_SCORE_SIGMOID)
      for (double& x : scores) x = 1 / (1 + std::exp(-x));
    else if (!a.top_k_first)
      softmax(scores);
    Values choice = scores;
    for (size_t e = 0; e < choice.size() && !correction.empty(); ++e) choice[e] += correction.values[e];
    mask_groups(a, choice);
    const std::vector<size_t> chosen = best(choice, a.top_k);
    Values weights;
    for (const size_t e : chosen) weights.push_back(a.top_k_first ? logits[e] : scores[e]);
    if (a.top_k_first && a.score == ASSAY_SCORE_SOFTMAX) softmax(weights);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < a.top_k; ++i) {
      a.experts[t * a.top_k + i] = int32_t(chosen[i]);
      out_row(&a.weights, t)[i] = float(weights[i] / (a.renormalize ? sum + a.epsilon : 1) * a.scale);
    }
  }
  return 0;
}

Values times(const Dense& w, const Values& x, const Dense& bias) {
  Values y(w.columns == 0 ? 0 : w.values.size() / w.columns);
  for (size_t o = 0; o < y.size(); ++o) {
    for (size_t i = 0; i < w.columns; ++i) y[o] += w.at(o, i) * x[i];
    if (!bias.empty()) y[o] += bias.values[o];
  }
  return y;
}

const assay_weight* one(const assay_weight* const* list, size_t expert) {
  return list == nullptr ? nullptr : list[expert];
}

Values expert_result(const assay_fused_moe& a, size_t e, const Values& x) {
  Values gate, up;
  if (a.gate_up != nullptr) {
    const Values both = times(Dense(a.gate_up[e]), x, Dense(one(a.gate_up_bias, e)));
    const size_t width = both.size() / 2;
    for (size_t i = 0; i < width; ++i) {
      gate.push_back(both[a.interleaved ? 2 * i : i]);
      up.push_back(both[a.interleaved ? 2 * i + 1 : width + i]);
    }
  } else {
    gate = times(Dense(a.gate[e]), x, Dense(one(a.gate_bias, e)));
    up = times(Dense(a.up[e]), x, Dense(one(a.up_bias, e)));
  }
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gated(a.kind, a.limit, gate[i], up[i]);
  return times(Dense(a.down[e]), gate, Dense(one(a.down_bias, e)));
}

int fused_moe(const assay_fused_moe& a) {
  for (size_t t = 0; t < a.x.rows; ++t) {
    const Values x(row_of(&a.x, t), row_of(&a.x, t) + a.x.columns);
    Values y(a.x.columns);
    for (size_t e = 0; e < a.experts; ++e) {
      for (size_t i = 0; i < a.top_k; ++i) {
        if (size_t(a.chosen[t * a.top_k + i]) != e) continue;
        const Values part = expert_result(a, e, x);
        for (size_t c = 0; c < y.size(); ++c) y[c] += row_of(&a.weights, t)[i] * part[c];
      }
    }
    std::copy(y.begin(), y.end(), out_row(&a.y, t));
  }
  return 0;
}

// --- quantized activations: INT8 only

size_t block(size_t size, size_t whole) {
  return size == 0 ? std::max<size_t>(1, whole) : size;
}

int quantize(const assay_quantize& a) {
  const size_t down = block(a.block_rows, a.x.rows), across = block(a.block_columns, a.x.columns);
  const size_t per_row = (a.x.columns + across - 1) / across, rows = (a.x.rows + down - 1) / down;
  Values largest(rows * per_row);
  const auto at = [&](size_t r, size_t c) { return r / down * per_row + c / across; };
  for (size_t r = 0; r < a.x.rows; ++r)
    for (size_t c = 0; c < a.x.columns; ++c)
      largest[at(r, c)] = std::max(largest[at(r, c)], std::fabs(double(row_of(&a.x, r)[c])));
  for (size_t i = 0; i < largest.size(); ++i) a.scales[i] = largest[i] == 0 ? 1.0F : float(largest[i] / 127);
  for (size_t r = 0; r < a.x.rows; ++r)
    for (size_t c = 0; c < a.x.columns; ++c)
      static_cast<signed char*>(a.codes)[r * a.x.columns + c] =
          static_cast<signed char>(std::lrint(row_of(&a.x, r)[c] / a.scales[at(r, c)]));
  return 0;
}

int dequantize(const assay_dequantize& a) {
  const size_t down = block(a.block_rows, a.rows), across = block(a.block_columns, a.columns);
  const size_t per_row = (a.columns + across - 1) / across;
  for (size_t r = 0; r < a.rows; ++r)
    for (size_t c = 0; c < a.columns; ++c)
      out_row(&a.y, r)[c] = float(static_cast<const signed char*>(a.codes)[r * a.columns + c]) *
                            a.scales[r / down * per_row + c / across];
  return 0;
}

int embedding(const assay_embedding& a) {
  for (size_t t = 0; t < a.token_count; ++t) decode_row(a.table, a.tokens[t], out_row(&a.y, t));
  return 0;
}

// --- what is offered

int takes(void*, const assay_context* context, const assay_call* call) {
  if (!is_float32(context)) return 0;
  switch (call->op) {
    case ASSAY_RMS_NORM: return can_decode(call->as.rms_norm->weight);
    case ASSAY_LAYER_NORM:
      return can_decode(call->as.layer_norm->weight) && absent_or_decodable(call->as.layer_norm->bias);
    case ASSAY_FUSED_MOE: {
      const assay_fused_moe& a = *call->as.fused_moe;
      return a.form == ASSAY_MOE_SPARSE && a.experts > 0 && can_decode(a.down[0]);
    }
    case ASSAY_QUANTIZE: return call->as.quantize->type == ASSAY_I8 && !call->as.quantize->power_of_two;
    case ASSAY_DEQUANTIZE: return call->as.dequantize->type == ASSAY_I8;
    case ASSAY_EMBEDDING: return can_decode(call->as.embedding->table);
    default: return 1;
  }
}

int run(void*, const assay_context*, const assay_call* call, char*, size_t) {
  switch (call->op) {
    case ASSAY_RMS_NORM: return rms_norm(*call->as.rms_norm);
    case ASSAY_LAYER_NORM: return layer_norm(*call->as.layer_norm);
    case ASSAY_ROPE: return rope(*call->as.rope);
    case ASSAY_ATTENTION: return attention(*call->as.attention);
    case ASSAY_MLA: return mla(*call->as.mla);
    case ASSAY_ACTIVATION: return activation(*call->as.activation);
    case ASSAY_GATED_ACTIVATION: return gate_and_up(*call->as.gated_activation);
    case ASSAY_SOFTMAX: return softmax_rows(*call->as.softmax);
    case ASSAY_MOE_GATE: return moe_gate(*call->as.moe_gate);
    case ASSAY_FUSED_MOE: return fused_moe(*call->as.fused_moe);
    case ASSAY_QUANTIZE: return quantize(*call->as.quantize);
    case ASSAY_DEQUANTIZE: return dequantize(*call->as.dequantize);
    case ASSAY_EMBEDDING: return embedding(*call->as.embedding);
    default: return 1;
  }
}

std::vector<assay_kernel> make_kernels() {
  std::vector<assay_kernel> kernels;
  for (int32_t op = ASSAY_RMS_NORM; op <= ASSAY_EMBEDDING; ++op)
    kernels.push_back({sizeof(assay_kernel), op, ASSAY_CPU, ASSAY_F32, "plain", "loops in double",
                       ASSAY_ALL_INVARIANT, 0, 0x1p-24, nullptr, takes, run});
  return kernels;
}

}  // namespace

const assay_plugin_info* assay_plugin(uint32_t) {
  static const std::vector<assay_kernel> kernels = make_kernels();
  static const std::vector<const assay_kernel*> pointers = [] {
    std::vector<const assay_kernel*> list;
    for (const assay_kernel& kernel : kernels) list.push_back(&kernel);
    return list;
  }();
  static const assay_plugin_info info = {sizeof info, ASSAY_PLUGIN_ABI, "every",
                                         "1",         pointers.data(),  pointers.size()};
  return &info;
}
