#include "kernels/cuda/glue.h"

#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

class Glue final : public DeviceGlue {
 public:
  Glue(Machine& machine, const GlueLaunchers& launchers) : machine_(machine), launchers_(launchers) {}

  void add(const Matrix& a, const Matrix& b, bool bfloat16, const Matrix& y) override {
    pair(launchers_.add, a, b, 0, bfloat16, y);
  }
  void scale(const Matrix& x, const Matrix& factors, bool bfloat16, const Matrix& y) override {
    pair(launchers_.scale, x, factors, x.columns() / factors.columns(), bfloat16, y);
  }
  void copy(const RowCopy& c) override {
    const std::size_t columns = c.columns();
    if (c.rows == 0 || columns == 0) return;
    const std::unique_ptr<Staging> staging = machine_.stage();
    // Rows that follow each other, as of a cache that is not paged, are a place to begin at and no table.
    const bool from_run = follow_each_other(c.from_rows), to_run = follow_each_other(c.to_rows);
    const std::vector<std::int32_t> from_rows = narrowed(c.from_rows, from_run),
                                    to_rows = narrowed(c.to_rows, to_run);
    const std::size_t from_first = from_run ? c.from_rows[0] : 0, to_first = to_run ? c.to_rows[0] : 0;
    const CopyArguments arguments = {.from = staging->in(c.from) + from_first * c.from.stride() + c.first,
                                     .to = staging->out(c.to) + to_first * c.to.stride(),
                                     .from_rows = staged(*staging, from_rows),
                                     .to_rows = staged(*staging, to_rows),
                                     .from_stride = c.from.stride(),
                                     .to_stride = c.to.stride(),
                                     .rows = narrow(c.rows),
                                     .columns = narrow(columns),
                                     .width = narrow(c.width),
                                     .count = narrow(c.count)};
    launchers_.copy(plan_glue(machine_.limits(), c.rows, columns), arguments, staging->stream());
    staging->finish();
  }

 private:
  using Pair = void (*)(const LaunchPlan&, const PairArguments&, Stream);
  void pair(Pair launch, const Matrix& a, const Matrix& b, std::size_t width, bool bfloat16,
            const Matrix& y) {
    if (y.empty()) return;
    const std::unique_ptr<Staging> staging = machine_.stage();
    const PairArguments arguments = {.a = staging->in(a),
                                     .b = staging->in(b),
                                     .y = staging->out(y),
                                     .a_stride = a.stride(),
                                     .b_stride = b.stride(),
                                     .y_stride = y.stride(),
                                     .rows = narrow(y.rows()),
                                     .columns = narrow(y.columns()),
                                     .width = narrow(width),
                                     .bfloat16 = bfloat16};
    launch(plan_glue(machine_.limits(), y.rows(), y.columns()), arguments, staging->stream());
    staging->finish();
  }

  static bool follow_each_other(std::span<const std::size_t> rows) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i] != rows[0] + i) return false;
    }
    return !rows.empty();
  }
  static std::vector<std::int32_t> narrowed(std::span<const std::size_t> rows, bool run) {
    std::vector<std::int32_t> narrow_rows;
    if (run) return narrow_rows;
    narrow_rows.reserve(rows.size());
    for (const std::size_t row : rows) narrow_rows.push_back(static_cast<std::int32_t>(narrow(row)));
    return narrow_rows;
  }
  static const std::int32_t* staged(Staging& staging, const std::vector<std::int32_t>& rows) {
    if (rows.empty()) return nullptr;
    return static_cast<const std::int32_t*>(staging.read(rows.data(), rows.size() * sizeof(std::int32_t)));
  }

  Machine& machine_;
  GlueLaunchers launchers_;
};

}  // namespace

std::unique_ptr<DeviceGlue> glue_of(Machine& machine, const GlueLaunchers& launchers) {
  return std::make_unique<Glue>(machine, launchers);
}

}  // namespace assay::cuda
