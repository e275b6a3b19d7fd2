// embedding as a kernel of the registry: y[t] = table[token t]. The table is copied to the device once for a
// model; the rows of a prompt are decoded there.
#include <fmt/format.h>

#include <limits>

#include "core/system/error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

std::vector<LaunchPlan> plans_of_embedding(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                           const EmbeddingCall& call) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  const WeightView& table = call.table;
  if (arithmetic.storage() != Real::f32 || table.input_major || !is_convertible(table) ||
      table.columns > kMost || call.tokens.size() > kMost)
    return {};
  return {plan_convert(limits, {.rows = call.tokens.size(), .columns = table.columns})};
}

Matrix run_embedding(Machine& machine, Ops& ops, const EmbeddingCall& call,
                     const EmbeddingLaunchers& launchers) {
  const WeightView& table = call.table;
  for (const TokenId token : call.tokens) {
    if (token >= table.rows)
      throw Error::input(fmt::format("token {} is outside the vocabulary of {}", token, table.rows));
  }
  Matrix y = ops.allocate(call.tokens.size(), table.columns);
  if (y.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  const Number stored = *number_of(table.type);
  const auto rows = static_cast<std::uint32_t>(y.rows()), columns = static_cast<std::uint32_t>(y.columns());
  ConvertArguments arguments = {
      .from = staging->codes(table),
      .from_type = stored,
      .from_stride = table.row_bytes / bytes_of(stored),
      .rows_of = static_cast<const std::uint32_t*>(
          staging->read(call.tokens.data(), call.tokens.size() * sizeof(TokenId))),
      .to = staging->out(y),
      .to_stride = y.stride(),
      .rows = rows,
      .columns = columns,
      .padded_rows = rows,
      .padded_columns = columns,
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  if (table.kind == FormKind::scaled) set_scales(arguments, table, *staging);
  launchers.convert(plan_convert(machine.limits(), {.rows = y.rows(), .columns = y.columns()}), arguments,
                    staging->stream());
  staging->finish();
  return y;
}

}  // namespace

void add_embedding_kernels(Registry& registry, Machine& machine, const EmbeddingLaunchers& launchers) {
  registry.add(cuda_kernel<EmbeddingCall>(machine, "cuda.gather", "rows of the table decoded on the device",
                                          element_edges("hidden"), plans_of_embedding,
                                          [launchers](Machine& m, Ops& ops, const EmbeddingCall& call) {
                                            return run_embedding(m, ops, call, launchers);
                                          }));
}

}  // namespace assay::cuda
