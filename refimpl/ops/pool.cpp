// entry[e] = Σ_j softmax_j(gate[j] + position[j]) · value[j], channel by channel (DeepSeek-V4: compressors). With
// overlapping windows entry 0 has no window before it, and takes the second halves of its own alone.
#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/ops/pool_calls.h"
#include "refimpl/ops/softmax.h"

namespace assay {
namespace {

// One channel of one entry: what is summed, and by which gates.
struct PooledChannel {
  std::vector<double> values, gates;
};

struct PoolNumbers {
  std::vector<double> values, gates, position;
  std::size_t columns = 0;
};

void take_window(const PoolNumbers& of, std::size_t ratio, std::size_t window, std::size_t column,
                 PooledChannel& channel) {
  for (std::size_t j = 0; j < ratio; ++j) {
    const std::size_t place = (window * ratio + j) * of.columns + column;
    channel.values.push_back(of.values[place]);
    channel.gates.push_back(of.gates[place] + of.position[j * of.columns + column]);
  }
}

void check(const PoolCall& call, std::size_t positions) {
  const std::size_t columns = call.values.columns();
  if (call.ratio == 0 || positions != call.ratio * columns || call.gates.columns() != columns ||
      call.gates.rows() != call.values.rows() || (call.overlapping && columns % 2 != 0))
    throw Error::internal(fmt::format("pool: values [{}, {}], gates [{}, {}], {} positions for windows of {}",
                                      call.values.rows(), columns, call.gates.rows(), call.gates.columns(),
                                      positions, call.ratio));
}

}  // namespace

Matrix pool(Ops& ops, const PoolCall& call) {
  const PoolNumbers of = {ops.download(call.values), ops.download(call.gates),
                          decode_vector(call.position),  // float32 in every arithmetic
                          call.values.columns()};
  check(call, of.position.size());
  const std::size_t width = of.columns / (call.overlapping ? 2 : 1);
  const std::size_t entries = call.values.rows() / call.ratio;
  const Arithmetic& arithmetic = ops.arithmetic();
  std::vector<double> out(entries * width);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t e = i / width, c = i % width;
    PooledChannel channel;
    if (call.overlapping && e > 0) take_window(of, call.ratio, e - 1, c, channel);
    take_window(of, call.ratio, e, call.overlapping ? width + c : c, channel);
    softmax_three_pass(channel.gates);
    for (std::size_t j = 0; j < channel.values.size(); ++j)
      out[i] += arithmetic.stage(channel.values[j] * arithmetic.stage(channel.gates[j]));
  }
  return ops.upload(out, entries, width);
}

}  // namespace assay
