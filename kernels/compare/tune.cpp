// `assay compare kernels --tune`: which of a GPU's kernels multiplies fastest, over forms, tokens and shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/output_paths.h"
#include "core/system/progress.h"
#include "core/system/table.h"
#include "core/system/threads.h"
#include "kernels/compare/kernels.h"
#include "kernels/cuda/runtime.h"
#include "kernels/harness/made_weight.h"
#include "kernels/selection/tuning.h"

namespace assay {
namespace {

constexpr double kLeastTunedSeconds = 0.02;  // a device's calls take microseconds

// What checkpoints hold, and the precisions it is run in.
struct Wanted {
  std::string_view form, act;
};
constexpr std::array kWanted = {Wanted{"F32", "f32"},          Wanted{"BF16", "f32"},
                                Wanted{"BF16", "bf16"},        Wanted{"F16", "bf16"},
                                Wanted{"Q8_0", "f32"},         Wanted{"Q8_0", "bf16"},
                                Wanted{"FP8_128x128", "bf16"}, Wanted{"FP8_128x128", "fp8-block"},
                                Wanted{"INT8_CHANNEL", "int8"}};
constexpr std::array<std::uint64_t, 8> kTokens = {1, 2, 4, 8, 16, 64, 512, 4096};
struct TunedShape {
  std::uint64_t inputs, outputs;
};
// A small model's, a large one's, and one that widens.
constexpr std::array kShapes = {TunedShape{1024, 1024}, TunedShape{4096, 4096}, TunedShape{2048, 8192}};

// A product to be timed.
struct TimedProduct {
  Wanted wanted;
  TunedShape shape;
  std::uint64_t tokens;

  CaseId id() const {
    return CaseId("linear", std::string(wanted.form))
        .with("m", tokens)
        .with("k", shape.inputs)
        .with("n", shape.outputs)
        .with("act", wanted.act)
        .with(InputKind::zero_mean);
  }
  std::string text() const {
    return fmt::format("{} in {}, {} × {} × {}", wanted.form, wanted.act, tokens, shape.inputs,
                       shape.outputs);
  }
};

std::vector<TimedProduct> products() {
  std::vector<TimedProduct> all;
  for (const Wanted& wanted : kWanted) {
    for (const TunedShape& shape : kShapes) {
      for (const std::uint64_t tokens : kTokens) all.push_back({wanted, shape, tokens});
    }
  }
  return all;
}

std::string stored_as(std::string_view form) {
  const WeightForm weight = weight_form(form);
  WeightView view;
  view.kind = weight.scaled ? FormKind::scaled : FormKind::plain;
  view.type = weight.type;
  return form_of(view);
}

bool takes_part(const KernelLabel& kernel) {
  return kernel.device == Device::cuda && kernel.name.starts_with("cuda.");
}

// To nanoseconds: what a clock says beyond is noise.
double rounded(double seconds) {
  return std::round(seconds * 1e9) / 1e9;
}

const KernelTime& fastest_of(const std::vector<KernelTime>& times) {
  return *std::min_element(times.begin(), times.end(),
                           [](const KernelTime& a, const KernelTime& b) { return a.seconds < b.seconds; });
}

std::string others(const std::vector<KernelTime>& times, const KernelTime& best) {
  std::string text;
  for (const KernelTime& t : times) {
    if (&t == &best) continue;
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", t.kernel, t.seconds / best.seconds);
  }
  return text;
}

// Why no kernel of a GPU runs here; empty: they do.
std::string unavailable(const std::vector<KernelLabel>& kernels) {
  const auto gemv = std::find_if(kernels.begin(), kernels.end(),
                                 [](const KernelLabel& kernel) { return kernel.name == "cuda.gemv"; });
  return gemv == kernels.end() ? std::string() : gemv->unavailable;
}

}  // namespace

int run_compare_tune(const Registry& registry, const CompareKernelsSettings& s) {
  const Output output(s.common.json);
  const auto all = examiners(registry);
  const auto linear =
      std::find_if(all.begin(), all.end(), [](const auto& examiner) { return examiner->op() == "linear"; });
  if (const std::string why = unavailable((*linear)->kernels()); !why.empty()) {
    output.paint("SKIPPED: " + why, Style::yellow);
    return kExitOk;
  }
  Tuning tuning = {.device = cuda::device_board(), .measured = {}};
  Table table({"product", "fastest", "time", "others' times over it"},
              {Table::Align::left, Table::Align::left, Table::Align::right, Table::Align::left});
  const std::vector<TimedProduct> wanted = products();
  Progress progress(s.common.progress, "timing", wanted.size(), ProgressUnit::ones);
  for (const TimedProduct& product : wanted) {
    if (interrupted()) return kExitInterrupted;
    progress.item(product.text());
    const std::vector<KernelTime> times =
        (*linear)->time(product.id(), takes_part, s.request.jobs, kLeastTunedSeconds);
    progress.add(1);
    if (times.empty()) continue;
    const KernelTime& best = fastest_of(times);
    table.add(
        {product.text(), best.kernel, fmt::format("{:.1f} µs", best.seconds * 1e6), others(times, best)});
    tuning.measured.push_back({stored_as(product.wanted.form), std::string(product.wanted.act),
                               product.tokens, product.shape.inputs, product.shape.outputs, best.kernel,
                               rounded(best.seconds)});
  }
  write_whole(s.tune, text_of(tuning));
  output.line(table.render());
  output.line(fmt::format("{}: {} products, written to {}", tuning.device, tuning.measured.size(), s.tune));
  output.json(to_json(tuning));
  return kExitOk;
}

}  // namespace assay
