// Conversions of data/tinylm and its BF16 twin: the lossless ones with their proof, a round trip, and how far
// each lossy one moves the weights.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/gate/suites.h"
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
  return convert(in, out, plan, options, ProgressMode::never);
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

std::string noise_name(const char* spec) {
  return fmt::format("tinylm-bf16 to {}: SQNR in dB", spec);
}

ErrorSums errors_of(const fs::path& model, const ScratchFolder& scratch, const char* spec, int jobs) {
  ErrorSums all;
  for (const WorkError& error : run(model, scratch / spec, options_for(spec, jobs)).errors)
    all.add(error.sums);
  return all;
}

ErrorSums gguf_errors_of(const fs::path& model, const ScratchFolder& scratch, const char* spec, int jobs) {
  const fs::path out = scratch / (std::string(spec + 5) + ".gguf").c_str();
  const ConvertOptions options = options_for(spec, jobs);
  ErrorSums all;
  for (const auto& [name, tensor] :
       regroup(make_gguf_plan(model, out, options, {}), out, options, ProgressMode::never).tensors)
    all.add(tensor.error);
  return all;
}

GateFigure noise_figure(const char* spec, const ErrorSums& sums) {
  GateFigure figure = {
      .name = noise_name(spec), .drift = Drift::decibels, .value = sums.sqnr_db(), .word = {}};
  figure.holds = sums.error_squares > 0;
  if (!figure.holds) figure.detail = "nothing was rounded: nothing was converted";
  return figure;
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
    add(noise_name(spec), [&] { return noise_figure(spec, errors_of(bf16, scratch, spec, jobs)); });
  for (const char* spec : {"gguf:q8_0", "gguf:q6_k", "gguf:q4_k_m"})
    add(noise_name(spec), [&] { return noise_figure(spec, gguf_errors_of(bf16, scratch, spec, jobs)); });
  return figures;
}

}  // namespace assay
