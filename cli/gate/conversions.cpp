// Conversions of data/tinylm, its BF16 twin and one 256 wide: the lossless ones with their proof, a round
// trip, how far each lossy one moves the weights, and what types a GGUF's tensors have.
#include <fmt/format.h>
#include <unistd.h>

#include <map>

#include "cli/gate/suites.h"
#include "cli/gate/wide_twin.h"
#include "convert/convert.h"
#include "convert/equal.h"
#include "convert/gguf_plan.h"

namespace assay {
namespace {

// A folder of its own among the temporary ones, gone with the object.
class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::temp_directory_path() / fmt::format("assay-gate-{}", ::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

ConvertOptions options_for(const char* spec, int jobs) {
  ConvertOptions options;
  options.to = spec;
  options.jobs = jobs;
  return options;
}

ConvertResult run(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  const ConversionPlan plan = make_plan(in, options);
  check_output(in, out, options);
  return convert(out, plan, options, ProgressMode::never);
}

GateFigure proof_figure(const fs::path& model, const ScratchFolder& scratch, int jobs) {
  const ConvertResult result = run(model, scratch / "reblocked", options_for("reblock=64x64", jobs));
  GateFigure figure = {.name = "tinylm to reblock=64x64: proof", .drift = Drift::exact, .word = "none"};
  figure.holds = result.proof && result.proof->holds();
  if (result.proof)
    figure.word = fmt::format("{} tensors, {} bytes as they were, sha256 {}", result.proof->tensors,
                              result.proof->code_bytes, result.proof->after.hex());
  if (!figure.holds) figure.detail = "the proof does not hold";
  return figure;
}

// FP8 to BF16 rounds each value; back under the old scales every code has to be what it was.
GateFigure round_trip_figure(const fs::path& model, const ScratchFolder& scratch, int jobs) {
  run(model, scratch / "bf16", options_for("bf16", jobs));
  ConvertOptions back = options_for("fp8:block=128x128", jobs);
  back.scales_from = model.string();
  run(scratch / "bf16", scratch / "fp8", back);
  Progress progress(ProgressMode::never, "compare", 0);
  const EqualReport equal =
      compare_values(Side(model, jobs), Side(scratch / "fp8", jobs), {.jobs = jobs}, progress);
  GateFigure figure = {.name = "tinylm to bf16 and back to FP8: values", .drift = Drift::exact, .word = {}};
  figure.word = fmt::format("{} tensors, {} differ", equal.tensors, equal.differences.size());
  figure.holds = equal.differences.empty();
  if (!figure.holds) figure.detail = equal.differences.front().tensor + ": " + equal.differences.front().what;
  return figure;
}

std::string noise_name(std::string_view model, const char* spec) {
  return fmt::format("{} to {}: SQNR in dB", model, spec);
}

ErrorSums sum_of(const ConvertResult& result) {
  ErrorSums all;
  for (const WorkError& error : result.errors) all.add(error.sums);
  return all;
}

GateFigure noise_figure(std::string_view model, const char* spec, const ErrorSums& sums) {
  GateFigure figure = {
      .name = noise_name(model, spec), .drift = Drift::decibels, .value = sums.sqnr_db(), .word = {}};
  figure.holds = sums.error_squares > 0;
  if (!figure.holds) figure.detail = "nothing was rounded: nothing was converted";
  return figure;
}

// To GGUF, and which types the tensors of a model that is wide enough for them became.
void add_gguf_figures(const fs::path& model, const ScratchFolder& scratch, const char* spec, int jobs,
                      std::vector<GateFigure>& figures) {
  const std::string name = model.filename().string();
  const fs::path out = scratch / fmt::format("{}-{}.gguf", name, spec + 5).c_str();
  const ConvertOptions options = options_for(spec, jobs);
  const ConversionPlan plan = make_gguf_plan(model, out, options, {});
  std::map<std::string_view, std::size_t> types;
  for (const DerivedOutput& output : plan.derived) ++types[info(output.type).name];
  figures.push_back(noise_figure(name, spec, sum_of(convert(out, plan, options, ProgressMode::never))));
  GateFigure kinds = {
      .name = fmt::format("{} to {}: tensors", name, spec), .drift = Drift::exact, .word = {}};
  for (const auto& [type, count] : types)
    kinds.word += fmt::format("{}{} {}", kinds.word.empty() ? "" : ", ", count, type);
  figures.push_back(std::move(kinds));
}

}  // namespace

std::vector<GateFigure> gate_conversions(const fs::path& data, int jobs) {
  std::vector<GateFigure> figures;
  const fs::path fp8 = data / "tinylm", bf16 = data / "tinylm-bf16";
  if (!fs::exists(fp8) || !fs::exists(bf16)) return figures;
  const ScratchFolder scratch;
  const auto add = [&](const std::string& name, const auto& measure) {
    try {
      figures.push_back(measure());
    } catch (const std::exception& error) {  // the other conversions are judged all the same
      figures.push_back(broken_figure(name, error));
    }
  };
  add("tinylm to reblock=64x64: proof", [&] { return proof_figure(fp8, scratch, jobs); });
  add("tinylm to bf16 and back to FP8: values", [&] { return round_trip_figure(fp8, scratch, jobs); });
  for (const char* spec : {"fp8:block=128x128", "fp8:block=128x128,scale=ue8m0", "fp8:channel",
                           "int8:channel", "int8:block=128x128"})
    add(noise_name("tinylm-bf16", spec), [&] {
      return noise_figure("tinylm-bf16", spec, sum_of(run(bf16, scratch / spec, options_for(spec, jobs))));
    });
  const auto add_gguf = [&](const fs::path& model, std::initializer_list<const char*> specs) {
    for (const char* spec : specs) {
      const std::string name = model.filename().string();
      try {
        add_gguf_figures(model, scratch, spec, jobs, figures);
      } catch (const std::exception& error) {
        figures.push_back(broken_figure(noise_name(name, spec), error));
      }
    }
  };
  add_gguf(bf16, {"gguf:q8_0", "gguf:q6_k", "gguf:q4_k_m"});
  const fs::path wide = scratch / "wide-bf16";
  write_wide_twin(wide, bf16);
  add_gguf(wide, {"gguf:q6_k", "gguf:q5_k_m", "gguf:q4_k_m", "gguf:q3_k_m", "gguf:q2_k"});
  return figures;
}

}  // namespace assay
