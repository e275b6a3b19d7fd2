// `assay compare kernels --perf`: how fast, and how far below the roof of this machine.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/name_filter.h"
#include "core/system/output_paths.h"
#include "core/system/progress.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/kernels.h"
#include "kernels/cuda/device_roof.h"
#include "kernels/harness/roof.h"

namespace assay {
namespace {

constexpr double kLeastSeconds = 0.2;

// The time nobody can be below: all bytes read once, all sums done at the peak, side by side.
double roof_seconds(const KernelTime& t, const Roof& roof) {
  return std::max(t.flops / roof.flops, t.bytes / roof.bytes);
}

// Of the machine's cores, and of its GPU where kernels of one were timed: 0, else.
struct Roofs {
  Roof cpu, gpu;
  const Roof& of(Device device) const { return device == Device::cuda ? gpu : cpu; }
};

std::string share_of_roof(const KernelTime& t, const Roof& roof) {
  if (roof.flops == 0 || roof.bytes == 0) return "-";
  return fmt::format("{:.0f} %", 100 * roof_seconds(t, roof) / t.seconds);
}

double seconds_of(const std::vector<KernelTime>& times, std::string_view kernel) {
  double best = 0;
  for (const KernelTime& t : times) {
    if (t.kernel.starts_with(kernel) && (best == 0 || t.seconds < best)) best = t.seconds;
  }
  return best;
}

std::string as_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} µs", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

// Neighbours on the machine lower what is measured, never raise it.
Roof higher(const Roof& a, const Roof& b) {
  return {std::max(a.flops, b.flops), std::max(a.bytes, b.bytes), std::max(a.bf16_products, b.bf16_products),
          std::max(a.byte_products, b.byte_products)};
}

std::string against(double other, double mine) {
  return other == 0 ? "-" : fmt::format("{:.2f}", other / mine);
}

// The cases to be timed of one operation: those asked for, else its own choice. What is computed in other
// arithmetics than float32 is for GPUs: no CPU kernel of ours does.
std::vector<CaseId> timed_cases(const OpExaminer& examiner, const CompareKernelsSettings& s) {
  if (s.request.cases.empty()) {
    std::vector<CaseId> chosen = examiner.perf_grid();
    if (s.request.device != Device::cuda)
      std::erase_if(chosen, [](const CaseId& id) { return id.word("act", "f32") != "f32"; });
    return chosen;
  }
  std::vector<CaseId> cases;
  for (const std::string& text : s.request.cases) {
    if (CaseId id = CaseId::parse(text); id.op() == examiner.op()) cases.push_back(std::move(id));
  }
  return cases;
}

// The kernels of each case side by side. The reference and the libraries always take part: they are what the
// others are compared with.
std::vector<std::vector<KernelTime>> time_all(const Registry& registry, const CompareKernelsSettings& s,
                                              const NameFilter& kernel) {
  const NameFilter op(s.request.op, "");
  const auto wanted = [&](const KernelLabel& k) {
    const bool yardstick = k.name == "reference" || kernel_group(k.name) == "library";
    return (kernel.accepts(k.name) || yardstick) && (!s.request.device || *s.request.device == k.device);
  };
  struct Job {
    const OpExaminer* examiner;
    CaseId id;
  };
  std::vector<Job> work;
  const auto all_of_them = examiners(registry);
  for (const auto& examiner : all_of_them) {
    if (!op.accepts(examiner->op())) continue;
    const std::vector<KernelLabel> kernels = examiner->kernels();
    // Yardsticks alone measure nothing.
    const auto asked = [&](const KernelLabel& k) { return kernel.accepts(k.name) && wanted(k); };
    if (std::none_of(kernels.begin(), kernels.end(), asked)) continue;
    for (CaseId& id : timed_cases(*examiner, s)) work.push_back({examiner.get(), std::move(id)});
  }
  std::vector<std::vector<KernelTime>> all;
  Progress progress(s.common.progress, "timing", work.size(), ProgressUnit::ones);
  for (const Job& job : work) {
    const auto told = [&](const KernelLabel& k) {  // asked of each just before it is timed
      const bool now = !interrupted() && wanted(k);
      if (now) progress.item(fmt::format("{} {}", k.name, job.id.text()));
      return now;
    };
    all.push_back(job.examiner->time(job.id, told, s.request.jobs, kLeastSeconds));
    progress.add(1);
    if (interrupted()) break;
  }
  return all;
}

std::map<std::string, Device> devices_of(const Registry& registry) {
  std::map<std::string, Device> devices;
  for (const KernelLabel& kernel : wanted_kernels(registry, {})) devices[kernel.name] = kernel.device;
  return devices;
}

bool any_on_gpu(const std::vector<std::vector<KernelTime>>& all,
                const std::map<std::string, Device>& devices) {
  return std::any_of(all.begin(), all.end(), [&](const std::vector<KernelTime>& times) {
    return std::any_of(times.begin(), times.end(),
                       [&](const KernelTime& t) { return devices.at(t.kernel) == Device::cuda; });
  });
}

// Why nothing was timed: kernels there are, and none runs on this machine, or none takes the case.
std::string nothing_timed(const Registry& registry, const SurveyRequest& request) {
  for (const KernelLabel& k : wanted_kernels(registry, request)) {
    if (!k.unavailable.empty()) return k.unavailable;
  }
  throw Error::usage("no kernel that is called so takes such a case")
      .remedy("see 'assay compare kernels --list'");
}

}  // namespace

int run_compare_perf(const Registry& registry, const CompareKernelsSettings& s) {
  const Output output(s.common.json);
  const NameFilter kernel(s.request.kernel, "");
  const Roof before = measure_roof(s.request.jobs);
  const std::vector<std::vector<KernelTime>> all = time_all(registry, s, kernel);
  const bool cut_short = interrupted();  // what there is by then is told
  const std::map<std::string, Device> devices = devices_of(registry);
  Roofs roofs = {.cpu = higher(before, measure_roof(s.request.jobs)), .gpu = {}};
  if (any_on_gpu(all, devices)) {
    const cuda::DeviceRoof gpu = cuda::measure_device_roof();
    roofs.gpu = {.flops = gpu.flops, .bytes = gpu.bytes};
  }

  using Align = Table::Align;
  Table table({"case", "kernel", "time", "GFLOP/s", "GB/s", "of the roof", "× library", "× reference"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  Json list = Json::array();
  std::string csv = "id,kernel,device,seconds,flops,bytes,share_of_roof\n";
  for (const std::vector<KernelTime>& times : all) {
    const double library = seconds_of(times, "library"), reference = seconds_of(times, "reference");
    for (const KernelTime& t : times) {
      if (!kernel.accepts(t.kernel)) continue;
      const Roof& roof = roofs.of(devices.at(t.kernel));
      table.add({t.id, t.kernel, as_time(t.seconds), fmt::format("{:.1f}", t.flops / t.seconds / 1e9),
                 fmt::format("{:.1f}", t.bytes / t.seconds / 1e9), share_of_roof(t, roof),
                 against(library, t.seconds), against(reference, t.seconds)});
      const Json share =
          roof.flops == 0 || roof.bytes == 0 ? Json() : Json(roof_seconds(t, roof) / t.seconds);
      list.push_back({{"id", t.id},
                      {"kernel", t.kernel},
                      {"seconds", t.seconds},
                      {"flops", t.flops},
                      {"bytes", t.bytes},
                      {"share_of_roof", share}});
      csv += fmt::format("{},{},{},{},{},{},{}\n", t.id, t.kernel, name(devices.at(t.kernel)), t.seconds,
                         t.flops, t.bytes, share.is_null() ? "" : share.dump());
    }
  }
  if (list.empty() && cut_short) return kExitInterrupted;
  if (list.empty())
    output.paint("SKIPPED: " + nothing_timed(registry, s.request), Style::yellow);
  else
    output.line(table.render());
  write_whole(s.csv, csv);
  output.line(fmt::format(
      "roof with {} threads, measured before and after: {:.0f} GFLOP/s in float32, {:.1f} GB/s read",
      s.request.jobs, roofs.cpu.flops / 1e9, roofs.cpu.bytes / 1e9));
  if (roofs.cpu.bf16_products != 0 || roofs.cpu.byte_products != 0)
    output.line(
        fmt::format("products of its instructions: {:.0f} G a second of bfloat16 pairs, {:.0f} G of bytes",
                    roofs.cpu.bf16_products / 1e9, roofs.cpu.byte_products / 1e9));
  if (roofs.gpu.bytes != 0)
    output.line(
        fmt::format("roof of the GPU, measured after: {:.0f} GFLOP/s in BF16 by cuBLAS, {:.1f} GB/s copied",
                    roofs.gpu.flops / 1e9, roofs.gpu.bytes / 1e9));
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"roof",
                {{"threads", s.request.jobs},
                 {"flops", roofs.cpu.flops},
                 {"bytes", roofs.cpu.bytes},
                 {"bf16_products", roofs.cpu.bf16_products},
                 {"byte_products", roofs.cpu.byte_products}}},
               {"gpu_roof",
                roofs.gpu.bytes == 0 ? Json() : Json{{"flops", roofs.gpu.flops}, {"bytes", roofs.gpu.bytes}}},
               {"perf", std::move(list)}});
  return cut_short ? kExitInterrupted : kExitOk;
}

}  // namespace assay
