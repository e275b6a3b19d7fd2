#include "kernels/cuda/attention_arguments.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numbers>

#include "refimpl/ops/support.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();

const std::int32_t* staged_pages(Staging& staging, const PagedKvView& cache, std::size_t keys) {
  if (cache.pages == nullptr || keys == 0) return nullptr;
  const std::size_t count = (keys + cache.page_rows - 1) / cache.page_rows;
  return static_cast<const std::int32_t*>(staging.read(cache.pages, count * sizeof(std::int32_t)));
}

bool rows_hold(const PagedKvView& cache, std::size_t keys, std::size_t columns) {
  if (keys == 0) return true;
  return cache.base.rows() <= kMost && cache.base.columns() >= columns && cache.base.real() == Real::f32 &&
         (cache.pages == nullptr || cache.page_rows != 0);
}

}  // namespace

unsigned element_bytes(const Arithmetic& arithmetic) {
  return arithmetic.bfloat16() ? 2 : 4;
}

AttentionShape shape_of(unsigned element_bytes, const AttentionCall& call) {
  AttentionShape shape = {.heads = call.heads,
                          .kv_heads = call.kv_heads,
                          .qk_dim = call.qk_dim,
                          .v_dim = call.v_dim,
                          .window = call.window,
                          .element_bytes = element_bytes,
                          .sequences = {}};
  for (const SequenceMetadata& span : call.sequences) shape.sequences.push_back({span.queries, span.keys});
  return shape;
}

bool is_sound(const AttentionCall& call) {
  if (call.kv_heads == 0 || call.heads % call.kv_heads != 0 || call.qk_dim == 0 || call.v_dim == 0)
    return false;
  return call.q.columns() == call.heads * call.qk_dim && are_sound_sequences(call);
}

bool are_sound_sequences(const AttentionCall& call) {
  if (call.q.rows() * call.heads > kMost) return false;
  return std::all_of(call.sequences.begin(), call.sequences.end(), [&](const SequenceMetadata& span) {
    return span.queries <= span.keys && span.keys <= kMost / 2 &&
           rows_hold(span.key_rows, span.keys, call.kv_heads * call.qk_dim) &&
           rows_hold(span.value_rows, span.keys, call.kv_heads * call.v_dim);
  });
}

AttentionArguments::AttentionArguments(const Arithmetic& arithmetic, const AttentionCall& call,
                                       unsigned element_bytes, const AttentionPlan& plan, Machine& machine,
                                       Staging& staging, PackLauncher pack, PoolReaders readers)
    : limits_(machine.limits()),
      staging_(staging),
      pack_(pack),
      keys_format_{.heads = call.kv_heads, .dim = call.qk_dim, .element_bytes = element_bytes},
      values_format_{.heads = call.kv_heads, .dim = call.v_dim, .element_bytes = element_bytes},
      readers_(std::move(readers)) {
  args.heads = narrow(call.heads);
  args.kv_heads = narrow(call.kv_heads);
  args.qk_dim = narrow(call.qk_dim);
  args.v_dim = narrow(call.v_dim);
  args.window = narrow(std::min(call.window, kMost));
  args.tiling = plan.tiling;
  args.round_out = arithmetic.bfloat16();
  args.head_stride = narrow(keys_format_.padded());
  args.value_head_stride = narrow(values_format_.padded());
  const double log2_e = std::numbers::log2e;
  args.score_factor =
      static_cast<float>(call.soft_cap != 0 ? call.scale / call.soft_cap : call.scale * log2_e);
  args.cap_factor = static_cast<float>(call.soft_cap * log2_e);

  for (const double sink : vector_of(call.sinks, arithmetic)) sinks_.push_back(static_cast<float>(sink));
  if (!readers_.keys) readers_.keys = packing(keys_format_);
  if (!readers_.values) readers_.values = packing(values_format_);
  stage_sequences(call);
  upload(plan);
  stage_partials(plan);
}

PoolReader AttentionArguments::packing(const HeadFormat& format) const {
  return [this, format](const Matrix& rows) {
    return packed_rows(limits_, staging_, rows.part(0, format.heads * format.dim), format, pack_);
  };
}

void AttentionArguments::stage_sequences(const AttentionCall& call) {
  for (const SequenceMetadata& span : call.sequences) {
    keys_.add(span.key_rows, span.keys);
    if (!readers_.values_are_keys) values_.add(span.value_rows, span.keys);
  }
  for (const SequenceMetadata& span : call.sequences) {
    const PackedRows keys = keys_.find(span.key_rows, readers_.keys);
    SequenceArgs s = {.keys = keys.data,
                      .key_pages = staged_pages(staging_, span.key_rows, span.keys),
                      .key_page_rows = narrow(span.key_rows.page_rows),
                      .key_stride = keys.stride,
                      .first = narrow(span.first),
                      .queries = narrow(span.queries),
                      .key_count = narrow(span.keys)};
    if (!readers_.values_are_keys) {
      const PackedRows values = values_.find(span.value_rows, readers_.values);
      s.values = values.data;
      s.value_stride = values.stride;
      s.value_pages = staged_pages(staging_, span.value_rows, span.keys);
      s.value_page_rows = narrow(span.value_rows.page_rows);
    }
    sequences_.push_back(s);
  }
}

// Each copy to a device takes some 2 µs of it, however short.
void AttentionArguments::upload(const AttentionPlan& plan) {
  const auto add = [&]<class T>(const std::vector<T>& values) {
    const std::size_t at = round_up(uploaded_.size(), alignof(std::max_align_t)),
                      bytes = values.size() * sizeof(T);
    uploaded_.resize(at + bytes);
    if (bytes != 0) std::memcpy(uploaded_.data() + at, values.data(), bytes);
    return at;
  };
  const std::size_t sequences = add(sequences_), work = add(plan.work), merges = add(plan.merges),
                    sinks = add(sinks_);
  if (uploaded_.empty()) return;
  const auto* there = static_cast<const std::byte*>(staging_.read(uploaded_.data(), uploaded_.size()));
  args.sequences = reinterpret_cast<const SequenceArgs*>(there + sequences);
  args.work = reinterpret_cast<const AttentionWork*>(there + work);
  args.merges = reinterpret_cast<const MergeWork*>(there + merges);
  args.sinks = sinks_.empty() ? nullptr : reinterpret_cast<const float*>(there + sinks);
}

void AttentionArguments::stage_partials(const AttentionPlan& plan) {
  const std::size_t slots = plan.partials * args.kv_heads * args.tiling.rows;
  if (slots == 0) return;
  args.partial_out = static_cast<float*>(staging_.scratch(slots * args.v_dim * sizeof(float)));
  args.partial_stats = static_cast<float*>(staging_.scratch(slots * 2 * sizeof(float)));
}

void AttentionArguments::q_from(const Matrix& q) {
  const HeadFormat format = {
      .heads = args.heads, .dim = keys_format_.dim, .element_bytes = keys_format_.element_bytes};
  const PackedRows rows = packed_rows(limits_, staging_, q, format, pack_);
  args.q = rows.data;
  args.q_stride = rows.stride;
}

}  // namespace assay::cuda
