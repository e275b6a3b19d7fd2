#include "kernels/selection/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "kernels/selection/embedded_tunings.h"
#include "refimpl/ops/arithmetic.h"

namespace assay {
namespace {

constexpr std::string_view kTuningSchema = "assay.tuning/1";

double octaves(std::uint64_t a, std::uint64_t b) {
  const auto size = [](std::uint64_t n) {
    return std::log2(static_cast<double>(std::max<std::uint64_t>(1, n)));
  };
  return std::fabs(size(a) - size(b));
}

std::uint64_t size_of(const ParsedJson& row, std::string_view key, const std::filesystem::path& source) {
  const std::uint64_t size = json_u64(row.at(std::string(key)), key, source);
  if (size == 0) throw Error::input(fmt::format("{} is 0", key)).in(source);
  return size;
}

TunedProduct product_of(const ParsedJson& row, const std::filesystem::path& source) {
  for (const char* key : {"form", "precision", "tokens", "inputs", "outputs", "kernel"}) {
    if (!row.is_object() || !row.contains(key))
      throw Error::input(fmt::format("a row of 'measured' has no '{}'", key)).in(source);
  }
  TunedProduct p = {.form = json_string(row["form"], "form", source),
                    .precision = json_string(row["precision"], "precision", source),
                    .tokens = size_of(row, "tokens", source),
                    .inputs = size_of(row, "inputs", source),
                    .outputs = size_of(row, "outputs", source),
                    .kernel = json_string(row["kernel"], "kernel", source)};
  if (row.contains("seconds") && row["seconds"].is_number()) p.seconds = row["seconds"].get<double>();
  return p;
}

}  // namespace

std::string form_of(const WeightView& weight) {
  switch (weight.kind) {
    case FormKind::plain: return std::string(name(weight.type));
    case FormKind::scaled: return std::string(name(weight.type)) + " with scales";
    case FormKind::fp4: return weight.scale_type == ElementType::F8_E8M0 ? "MXFP4" : "NVFP4";
    case FormKind::packed: return "packed integers";
    case FormKind::codebook: return "a codebook";
  }
  return {};
}

std::string_view Tuning::fastest(const LinearCall& call, const Arithmetic& arithmetic) const {
  const std::string form = form_of(call.weight);
  const std::string_view precision = name(arithmetic.precision);
  const TunedProduct* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const TunedProduct& p : measured) {
    if (p.form != form || p.precision != precision) continue;
    const double off = octaves(p.tokens, call.x.rows()) + octaves(p.inputs, call.weight.inputs()) +
                       octaves(p.outputs, call.weight.outputs());
    if (off >= least) continue;
    least = off;
    nearest = &p;
  }
  return nearest == nullptr ? std::string_view() : nearest->kernel;
}

Tuning parse_tuning(std::string_view json, const std::filesystem::path& source) {
  const ParsedJson document = parse_json(json, source);
  if (!document.is_object() || document.value("schema", "") != kTuningSchema)
    throw Error::input(fmt::format("is no table of '{}'", kTuningSchema))
        .in(source)
        .remedy("make one with 'assay compare kernels --tune FILE'");
  Tuning tuning;
  if (!document.contains("device") || !document.contains("measured") || !document["measured"].is_array())
    throw Error::input("has no 'device', or no list 'measured'").in(source);
  tuning.device = json_string(document["device"], "device", source);
  for (const ParsedJson& row : document["measured"]) tuning.measured.push_back(product_of(row, source));
  return tuning;
}

Json to_json(const Tuning& tuning) {
  Json measured = Json::array();
  for (const TunedProduct& p : tuning.measured)
    measured.push_back({{"form", p.form},
                        {"precision", p.precision},
                        {"tokens", p.tokens},
                        {"inputs", p.inputs},
                        {"outputs", p.outputs},
                        {"kernel", p.kernel},
                        {"seconds", p.seconds}});
  return {{"schema", kTuningSchema}, {"device", tuning.device}, {"measured", std::move(measured)}};
}

std::string text_of(const Tuning& tuning) {
  const Json document = to_json(tuning);
  std::string text = fmt::format("{{\n \"schema\": {},\n \"device\": {},\n \"measured\": [",
                                 document["schema"].dump(), document["device"].dump());
  const char* before = "";
  for (const Json& row : document["measured"]) {
    text += fmt::format("{}\n  {}", before, row.dump());
    before = ",";
  }
  return text + "\n ]\n}\n";
}

const Tuning* builtin_tuning(std::string_view device) {
  static const std::vector<Tuning> all = [] {
    std::vector<Tuning> parsed;
    for (const EmbeddedTuning& one : embedded_tunings()) parsed.push_back(parse_tuning(one.json, one.file));
    return parsed;
  }();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Tuning& tuning) { return tuning.device == device; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace assay
