// An Ops that hands each call to the first of its chosen kernels that takes it, and else to the reference.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/runtime.h"
#include "kernels/registry/calling_ops.h"
#include "kernels/registry/device_glue.h"
#include "kernels/registry/model_memory.h"
#include "kernels/selection/matrix_memory.h"
#include "kernels/selection/select.h"
#include "kernels/selection/tuning.h"

namespace assay {
namespace {

// The weight whose form decides which kernels take a call; none: its form decides nothing.
template <class Call>
const WeightView* weight_of(const Call& call) {
  if constexpr (std::is_same_v<Call, LinearCall>)
    return &call.weight;
  else if constexpr (std::is_same_v<Call, EmbeddingCall>)
    return &call.table;
  else if constexpr (std::is_same_v<Call, FusedMoeCall>)
    return call.experts.down.empty() ? nullptr : &call.experts.down.front();
  else
    return nullptr;
}

class SelectedOps final : public CallingOps<SelectedOps> {
 public:
  // Without `device` all is ordinary memory, and no kernel runs on after it returned.
  SelectedOps(const Arithmetic& arithmetic, int jobs, Registry chosen, ModelDevice device,
              std::shared_ptr<Fallbacks> fallbacks, std::shared_ptr<const Tuning> tuning)
      : CallingOps(arithmetic, jobs),
        chosen_(std::move(chosen)),
        device_(std::move(device.memory)),
        glue_(arithmetic.storage() == Real::f32 ? std::move(device.glue) : nullptr),
        fallbacks_(std::move(fallbacks)),
        tuning_(std::move(tuning)) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override {
    const Real real = arithmetic().storage();
    if (!device_) return memory_->allocate(rows, columns, real);
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) ||
        __builtin_mul_overflow(bytes, real == Real::f64 ? sizeof(double) : sizeof(float), &bytes))
      throw Error::input("a matrix beyond all memory");
    if (!on_device_) settle();  // kernels may still be at what this memory was before
    return {device_->allocate(bytes), real, rows, columns};
  }
  std::vector<double> download(const Matrix& x) override {
    settle();
    if (!device_ || x.empty() || x.real() != Real::f32 || x.stride() != x.columns())
      return ReferenceOps::download(x);
    const std::size_t count = x.rows() * x.columns();
    const auto* values =
        static_cast<const float*>(device_->host_copy(x.row<float>(0), count * sizeof(float)));
    return {values, values + count};
  }
  void store(const PagedKvView& cache, std::size_t position, const Matrix& source) override {
    if (!glue_) {
      settle();
      return ReferenceOps::store(cache, position, source);
    }
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < source.rows(); ++r) rows.push_back(cache.row(position + r));
    RowCopy copy = whole_rows(source, rows.size());
    copy.to = cache.base;
    copy.to_rows = rows;
    const Side side(*this, true);
    glue_->copy(copy);
  }
  Matrix gather(const Matrix& x, std::span<const std::size_t> rows) override {
    if (!glue_) return on_host([&] { return ReferenceOps::gather(x, rows); });
    RowCopy copy = whole_rows(x, rows.size());
    copy.from_rows = rows;
    return copied(std::move(copy));
  }
  Matrix multiply(const Matrix& x, double factor) override {
    return on_host([&] { return ReferenceOps::multiply(x, factor); });
  }
  Matrix soft_cap(const Matrix& x, double cap) override {
    return on_host([&] { return ReferenceOps::soft_cap(x, cap); });
  }
  Matrix scale(const Matrix& x, const Matrix& factors) override {
    if (!glue_ || x.rows() != factors.rows() || factors.columns() == 0 ||
        x.columns() % factors.columns() != 0)
      return on_host([&] { return ReferenceOps::scale(x, factors); });
    const Side side(*this, true);
    Matrix y = allocate(x.rows(), x.columns());
    glue_->scale(x, factors, arithmetic().bfloat16(), y);
    return y;
  }
  Matrix clamp(const Matrix& x, double limit) override {
    return on_host([&] { return ReferenceOps::clamp(x, limit); });
  }
  Matrix concatenate(const Matrix& a, const Matrix& b) override {
    if (!glue_ || a.rows() != b.rows()) return on_host([&] { return ReferenceOps::concatenate(a, b); });
    const Side side(*this, true);
    Matrix y = allocate(a.rows(), a.columns() + b.columns());
    const auto place = [&](const Matrix& x, std::size_t first) {
      RowCopy copy = whole_rows(x, x.rows());
      copy.to = y.part(first, x.columns());
      glue_->copy(copy);
    };
    place(a, 0);
    place(b, a.columns());
    return y;
  }
  Matrix of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) override {
    if (!glue_ || width == 0 || x.columns() % width != 0 || first > width || count > width - first)
      return on_host([&] { return ReferenceOps::of_each(x, width, first, count); });
    return copied({.from = x, .rows = x.rows(), .width = width, .first = first, .count = count});
  }

  // In float32 and bfloat16 the sum of two numbers is the same bits however it is computed.
  Matrix add(const Matrix& a, const Matrix& b) override {
    if (a.rows() != b.rows() || a.columns() != b.columns())
      throw Error::internal(
          fmt::format("add: [{}, {}] and [{}, {}]", a.rows(), a.columns(), b.rows(), b.columns()));
    if (glue_) {
      const Side side(*this, true);
      Matrix y = allocate(a.rows(), a.columns());
      glue_->add(a, b, arithmetic().bfloat16(), y);
      return y;
    }
    settle();
    if (arithmetic().storage() == Real::f64) return ReferenceOps::add(a, b);
    Matrix y = allocate(a.rows(), a.columns());
    cpu::add(a, b, arithmetic().bfloat16(), y, jobs());
    return y;
  }

  std::vector<Matrix> run_together(std::span<const LinearCall> calls) override {
    const Kernel<LinearCall>* kernel = calls.empty() ? nullptr : kernel_for(calls.front());
    const bool by_one = kernel != nullptr && kernel->run_together &&
                        std::all_of(calls.begin() + 1, calls.end(),
                                    [&](const LinearCall& call) { return kernel_for(call) == kernel; });
    if (!by_one) return CallingOps::run_together(calls);
    for (const LinearCall& call : calls) count(call, false);
    const Side side(*this, device_ && kernel->device == Device::cuda);
    return kernel->run_together(*this, calls);
  }

  template <class Call>
  ResultOf<Call> call(const Call& call) {
    if (const Kernel<Call>* kernel = kernel_for(call)) {
      count(call, false);
      const Side side(*this, device_ && kernel->device == Device::cuda);
      return kernel->run(*this, call);
    }
    count(call, true);
    const Side side(*this, false);
    return run_reference(*this, call);
  }

 private:
  // Of those that take it the one that was measured fastest, else the first.
  template <class Call>
  const Kernel<Call>* kernel_for(const Call& call) const {
    const std::vector<Kernel<Call>>& kernels = chosen_.of<Call>();
    const auto taking = [&](std::string_view wanted) {
      const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const Kernel<Call>& kernel) {
        return (wanted.empty() || kernel.name == wanted) && kernel.takes(arithmetic(), call);
      });
      return found == kernels.end() ? nullptr : &*found;
    };
    if constexpr (std::is_same_v<Call, LinearCall>) {
      const std::string_view fastest = tuning_ ? fastest_for(call) : std::string_view();
      if (const Kernel<Call>* kernel = fastest.empty() ? nullptr : taking(fastest)) return kernel;
    }
    return taking({});
  }
  // A model asks for the same few products again and again: the table is searched once for each.
  std::string_view fastest_for(const LinearCall& call) const {
    const WeightView& w = call.weight;
    const auto [found, made] = fastest_.try_emplace({w.kind, w.type, call.x.rows(), w.inputs(), w.outputs()});
    if (made) found->second = tuning_->fastest(call, arithmetic());
    return found->second;
  }
  template <class Call>
  void count(const Call& call, bool by_reference) {
    if (!fallbacks_ || chosen_.of<Call>().empty()) return;
    if (!by_reference) return fallbacks_->count(Call::kOp);
    const WeightView* weight = weight_of(call);
    fallbacks_->count_by_reference(Call::kOp, weight == nullptr ? std::string() : form_of(*weight));
  }

  // Whose code runs now; a kernel may call other operations, of either side.
  class Side {
   public:
    Side(SelectedOps& ops, bool device) : ops_(ops), before_(ops.on_device_) {
      ++ops_.depth_;
      if (device) ops_.under_way_ = true;
      if (!device) ops_.settle();
      turn(device);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    ~Side() noexcept(false) {
      turn(before_);
      // A kernel of the host that called one of the device looks at what that wrote; a model does not.
      if (--ops_.depth_ > 0 && !before_ && std::uncaught_exceptions() == 0) ops_.settle();
    }

   private:
    void turn(bool device) {
      if (ops_.on_device_ == device) return;
      ops_.on_device_ = device;
      device ? ops_.device_->enter() : ops_.device_->leave();
    }
    SelectedOps& ops_;
    bool before_;
  };

  template <class Function>
  Matrix on_host(Function function) {
    settle();
    return function();
  }
  Matrix copied(RowCopy copy) {
    const Side side(*this, true);
    copy.to = allocate(copy.rows, copy.columns());
    glue_->copy(copy);
    return copy.to;
  }

  // Before host code looks at, or writes to, what kernels may still be at.
  void settle() {
    if (!under_way_) return;
    under_way_ = false;
    device_->synchronise();
  }

  Registry chosen_;
  std::shared_ptr<MatrixMemory> memory_ = std::make_shared<MatrixMemory>();
  std::unique_ptr<ModelMemory> device_;  // in its place, where kernels run on a device
  std::unique_ptr<DeviceGlue> glue_;     // and what is computed there between them
  bool on_device_ = false, under_way_ = false;
  int depth_ = 0;  // of calls within calls
  std::shared_ptr<Fallbacks> fallbacks_;
  std::shared_ptr<const Tuning> tuning_;
  using Asked = std::tuple<FormKind, ElementType, std::size_t, std::size_t, std::size_t>;
  mutable std::map<Asked, std::string_view> fastest_;
};

constexpr std::string_view kInvariant = "-invariant";
constexpr std::uint64_t kMostTuning = 16ull << 20;

template <class Call>
bool is_steady(const Kernel<Call>& kernel) {
  return kernel.invariants.batch_invariant && kernel.invariants.chunk_invariant;
}
// "cpu" is all of that group, "cpu-invariant" the steady ones of it.
template <class Call>
bool is_of_group(const Kernel<Call>& kernel, std::string_view entry) {
  const bool steady = entry.ends_with(kInvariant);
  if (steady) entry.remove_suffix(kInvariant.size());
  return kernel_group(kernel.name) == entry && (!steady || is_steady(kernel));
}

// The kernels chosen for one operation, first choice first.
template <class Call>
void choose(const std::vector<Kernel<Call>>& kernels, const std::vector<std::string>& wanted,
            Registry& chosen) {
  for (auto entry = wanted.rbegin(); entry != wanted.rend(); ++entry) {
    if (*entry == "reference") return;
    const auto equals = entry->find('=');
    const std::string_view op = std::string_view(*entry).substr(0, equals);
    for (const Kernel<Call>& kernel : kernels) {
      const bool group = equals == std::string::npos && is_of_group(kernel, *entry);
      const bool named = equals != std::string::npos && op == Call::kOp &&
                         kernel.name == std::string_view(*entry).substr(equals + 1);
      if (group || named) chosen.add(kernel);
    }
  }
}

// Whether an entry of a selection names anything, and why it can run nothing here, if so.
struct Named {
  bool known = false;
  std::string unavailable;
};
Named named(const Registry& registry, std::string_view entry) {
  const auto equals = entry.find('=');
  if (entry == "reference") return {true, {}};
  Named found;
  bool available = false;
  registry.for_each_op([&]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    const bool group = equals == std::string_view::npos;
    if (!group && entry.substr(0, equals) != Call::kOp) return;
    for (const Kernel<Call>& kernel : kernels) {
      if (group ? !is_of_group(kernel, entry) : kernel.name != entry.substr(equals + 1)) continue;
      found.known = true;
      const std::string why = kernel.unavailable ? kernel.unavailable() : std::string();
      available |= why.empty();
      if (!why.empty()) found.unavailable = why;
    }
  });
  if (available) found.unavailable.clear();
  return found;
}

// Throws Error::usage where the selection names what there is not.
constexpr std::string_view kTuningEntry = "tuning=";

std::vector<std::string> entries_of(std::string_view selection) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin <= selection.size();) {
    const std::size_t end = std::min(selection.find(',', begin), selection.size());
    entries.emplace_back(trim(selection.substr(begin, end - begin)));
    begin = end + 1;
  }
  return entries;
}

// The table that linear's kernels are chosen by: the one named, else the board's own. None where a selection names
// linear's kernel, or wants such as promise a token its bits: which is fastest depends on how many come together.
std::shared_ptr<const Tuning> tuning_of(std::string_view selection) {
  bool whole_group = false, left_open = true;
  std::string file;
  for (const std::string& entry : entries_of(selection)) {
    whole_group |= entry == "cuda";
    left_open &= !entry.starts_with("linear=") && !entry.ends_with(kInvariant);
    if (entry.starts_with(kTuningEntry)) file = entry.substr(kTuningEntry.size());
  }
  if (!file.empty() && !(whole_group && left_open))
    throw Error::usage("a tuning= goes with cuda, and with no linear=NAME");
  if (!file.empty())
    return std::make_shared<const Tuning>(parse_tuning(read_small_file(file, kMostTuning), file));
  if (!whole_group || !left_open) return nullptr;
  const Tuning* own = builtin_tuning(cuda::device_board());
  return {std::shared_ptr<void>(), own};
}

Registry chosen_of(const Registry& registry, std::string_view selection) {
  std::vector<std::string> wanted;
  for (const std::string& entry : entries_of(selection)) {
    if (entry.starts_with(kTuningEntry)) continue;
    const Named name = named(registry, entry);
    if (!name.known)
      throw Error::usage(fmt::format("no kernels are called '{}'", escape_for_terminal(entry)))
          .remedy("use reference, cpu, cpu-invariant, cuda, or OP=NAME of 'assay compare kernels --list'");
    if (!name.unavailable.empty())
      throw Error::usage(fmt::format("kernels '{}': {}", entry, name.unavailable))
          .remedy("use --kernels cpu or reference");
    wanted.push_back(entry);
  }
  Registry chosen;
  registry.for_each_op([&](const auto& kernels) { choose(kernels, wanted, chosen); });
  return chosen;
}

}  // namespace

std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs) {
  return select_kernels(registry, selection, arithmetic, jobs, nullptr);
}

bool is_invariant(const Registry& registry, std::string_view selection) {
  bool all = true;
  chosen_of(registry, selection).for_each_op([&](const auto& kernels) {
    for (const auto& kernel : kernels) all &= is_steady(kernel);
  });
  return all;
}

std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs,
                                    std::shared_ptr<Fallbacks> fallbacks) {
  return select_kernels(registry, selection, arithmetic, jobs, std::move(fallbacks), cuda_model_device);
}

std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs,
                                    std::shared_ptr<Fallbacks> fallbacks, ModelDevice (*device)()) {
  Registry chosen = chosen_of(registry, selection);
  bool cuda = false;
  chosen.for_each_op([&](const auto& kernels) {
    for (const auto& kernel : kernels) cuda |= kernel.device == Device::cuda;
  });
  return std::make_unique<SelectedOps>(arithmetic, jobs, std::move(chosen), cuda ? device() : ModelDevice(),
                                       std::move(fallbacks), tuning_of(selection));
}

}  // namespace assay
