#include "kernels/cuda/head_matrices.h"

#include <fmt/format.h>

#include <cstring>

#include "core/numeric/codec.h"

namespace assay::cuda {
namespace {

// One head's part of a checkpoint's matrix, and whether it lies as [outputs, inputs].
struct HeadPart {
  WeightView stored;
  bool transposed;
};

class HeadMatrices {
 public:
  HeadMatrices(const Arithmetic& arithmetic, std::size_t heads, std::size_t inputs, std::size_t outputs)
      : bfloat16_(arithmetic.bfloat16()), heads_(heads), inputs_(inputs), outputs_(outputs) {}

  template <class PartOf>
  std::vector<std::byte> bytes(PartOf part_of) const {
    const std::size_t width = bfloat16_ ? sizeof(std::uint16_t) : sizeof(float);
    std::vector<std::byte> all(heads_ * inputs_ * outputs_ * width);
    for (std::size_t h = 0; h < heads_; ++h) write(part_of(h), &all[h * inputs_ * outputs_ * width]);
    return all;
  }
  std::string text() const {
    return fmt::format("{} x {} x {} {}", heads_, inputs_, outputs_, bfloat16_ ? "bf16" : "f32");
  }

 private:
  void write(const HeadPart& part, std::byte* to) const {
    std::vector<float> decoded(inputs_ * outputs_);
    decode_rows(part.stored, 0, part.stored.rows, decoded.data());
    for (std::size_t i = 0; i < inputs_; ++i) {
      for (std::size_t o = 0; o < outputs_; ++o) {
        const float value = part.transposed ? decoded[o * inputs_ + i] : decoded[i * outputs_ + o];
        put(value, to, i * outputs_ + o);
      }
    }
  }
  void put(float value, std::byte* to, std::size_t at) const {
    if (!bfloat16_) {
      std::memcpy(to + at * sizeof value, &value, sizeof value);
      return;
    }
    const auto code = static_cast<std::uint16_t>(encode(kBF16, value, Overflow::special));
    std::memcpy(to + at * sizeof code, &code, sizeof code);
  }

  bool bfloat16_;
  std::size_t heads_, inputs_, outputs_;
};

}  // namespace

const void* key_matrices(Staging& staging, const Arithmetic& arithmetic, const MlaCall& call, KeyMatrix way) {
  const bool absorbed = way == KeyMatrix::absorbed;
  const HeadMatrices matrices(arithmetic, call.heads, absorbed ? call.nope_dim : call.kv_rank,
                              absorbed ? call.kv_rank : call.nope_dim);
  return staging.made_of(
      call.kv_b ? call.kv_b : call.k_b,
      fmt::format("keys {} {}", absorbed ? "absorbed" : "expanded", matrices.text()), [&] {
        return matrices.bytes([&](std::size_t h) -> HeadPart {
          if (call.kv_b)
            return {call.kv_b.row_range(h * (call.nope_dim + call.v_dim), call.nope_dim), !absorbed};
          return {call.k_b.row_range(h * call.kv_rank, call.kv_rank), absorbed};
        });
      });
}

const void* value_matrices(Staging& staging, const Arithmetic& arithmetic, const MlaCall& call) {
  const HeadMatrices matrices(arithmetic, call.heads, call.kv_rank, call.v_dim);
  return staging.made_of(
      call.kv_b ? call.kv_b : call.v_b, fmt::format("values {} of {}", matrices.text(), call.nope_dim), [&] {
        return matrices.bytes([&](std::size_t h) -> HeadPart {
          if (call.kv_b)
            return {call.kv_b.row_range(h * (call.nope_dim + call.v_dim) + call.nope_dim, call.v_dim), true};
          return {call.v_b.row_range(h * call.v_dim, call.v_dim), true};
        });
      });
}

}  // namespace assay::cuda
