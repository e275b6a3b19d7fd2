#include "convert/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "convert/estimate.h"
#include "convert/ranks.h"
#include "convert/render_gguf.h"
#include "core/model/stored_checks.h"
#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kShardsShown = 20, kWorstShown = 10, kFaultsShown = 20;

// One row for every kind of tensor: however many layers and experts, a model has a few dozen.
void render_kinds(const ConversionPlan& plan, const Output& output) {
  using Key = std::tuple<WorkAction, std::string, std::string, std::string>;
  std::map<Key, std::pair<std::uint64_t, std::string>> kinds;
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    auto& [count, example] = kinds[{work.action, form_name(tensor), work.to, shape_text(tensor.shape)}];
    if (count++ == 0) example = escape_for_terminal(tensor.name);
  }
  Table table({"action", "from", "to", "shape", "tensors", "for example"},
              {Table::Align::left, Table::Align::left, Table::Align::left, Table::Align::left,
               Table::Align::right, Table::Align::left});
  for (const auto& [key, value] : kinds) {
    const auto& [action, from, to, shape] = key;
    table.add({std::string(name(action)), from, to, shape, with_thousands(value.first), value.second});
  }
  output.line(table.render());
}

void render_shards(const ConversionPlan& plan, const Output& output) {
  Table table({"file", "tensors", "bytes"}, {Table::Align::left, Table::Align::right, Table::Align::right});
  for (std::size_t i = 0; i < std::min(kShardsShown, plan.shards.size()); ++i) {
    const OutputShard& shard = plan.shards[i];
    table.add(
        {escape_for_terminal(shard.name), with_thousands(shard.tensors.size()), with_thousands(shard.bytes)});
  }
  output.line(table.render());
  if (plan.shards.size() > kShardsShown)
    output.line(
        fmt::format("and {} more files (--json lists them all)\n", plan.shards.size() - kShardsShown));
}

// How every kind of weight is dealt out, and what each rank gets.
void render_ranks(const ConversionPlan& plan, const Output& output) {
  std::map<std::string, std::pair<std::uint64_t, std::string>> rules;
  for (std::uint32_t i = 0; i < plan.works.size(); ++i) {
    auto& [count, example] = rules[plan.ranks->rule(i)];
    if (count++ == 0) example = escape_for_terminal(plan.stored.tensors[plan.works[i].tensor].name);
  }
  Table table({"cut", "tensors", "for example"},
              {Table::Align::left, Table::Align::right, Table::Align::left});
  for (const auto& [rule, value] : rules) table.add({rule, with_thousands(value.first), value.second});
  output.line(table.render());
  const auto& bytes = plan.ranks->file_bytes();
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  output.line(fmt::format("{} ranks of {} to {}", bytes.size(), human_bytes(*least), human_bytes(*most)));
}

struct ScaleBytes {
  std::uint64_t before = 0, after = 0;
};
ScaleBytes scale_bytes(const ConversionPlan& plan) {
  ScaleBytes bytes;
  std::vector<bool> is_scale(plan.checkpoint.tensors.size());
  for (const LogicalTensor& tensor : plan.stored.tensors) {
    if (!tensor.scale) continue;
    is_scale[*tensor.scale] = true;
    bytes.before += plan.checkpoint.tensors[*tensor.scale].bytes;
  }
  for (const OutputShard& shard : plan.shards) {
    for (const OutputTensor& tensor : shard.tensors) {
      const bool kept = tensor.source == OutputTensor::Source::stored && is_scale[tensor.from];
      if (kept || tensor.source == OutputTensor::Source::scales) bytes.after += tensor.bytes;
    }
  }
  return bytes;
}

void render_errors(const ConversionPlan& plan, const ConvertResult& result, const Output& output) {
  std::vector<WorkError> worst = result.errors;
  std::stable_sort(worst.begin(), worst.end(), [](const WorkError& a, const WorkError& b) {
    return a.sums.relative_frobenius() > b.sums.relative_frobenius();
  });
  ErrorSums all;
  for (const WorkError& error : result.errors) all.add(error.sums);
  Table table({"rel. error", "max abs", "SQNR dB", "1-cos", "clamped", "zero blocks", "tensor"},
              {Table::Align::right, Table::Align::right, Table::Align::right, Table::Align::right,
               Table::Align::right, Table::Align::right, Table::Align::left});
  const auto add = [&](const ErrorSums& e, const std::string& who) {
    table.add({fmt::format("{:.3e}", e.relative_frobenius()), fmt::format("{:.3e}", e.largest_error),
               e.error_squares == 0 ? "exact" : fmt::format("{:.1f}", e.sqnr_db()),
               fmt::format("{:.2e}", e.one_minus_cosine()), with_thousands(e.clamped),
               with_thousands(e.zero_blocks), who});
  };
  for (std::size_t i = 0; i < std::min(kWorstShown, worst.size()); ++i)
    add(worst[i].sums, escape_for_terminal(plan.name_of(worst[i].work)));
  add(all, fmt::format("all {} converted tensors", worst.size()));
  output.line(table.render());
}

void render_proof(const Proof& proof, const Output& output) {
  output.line(fmt::format("stored bytes before  sha256 {}", proof.before.hex()));
  output.line(fmt::format("stored bytes after   sha256 {}", proof.after.hex()));
  for (std::size_t i = 0; i < std::min(kFaultsShown, proof.faults.size()); ++i)
    output.paint(escape_for_terminal(proof.faults[i]), Style::red);
  if (!proof.holds()) return;
  output.line(fmt::format("proved: {} bytes unchanged, {} scales each that of its block, {} values equal",
                          with_thousands(proof.code_bytes), with_thousands(proof.scales),
                          with_thousands(proof.values)));
}

Json to_json(const Proof& proof) {
  return {{"holds", proof.holds()},
          {"tensors", proof.tensors},
          {"bytes", proof.code_bytes},
          {"scales", proof.scales},
          {"values", proof.values},
          {"before_sha256", proof.before.hex()},
          {"after_sha256", proof.after.hex()},
          {"faults", proof.faults}};
}

Json to_json(const RankPlan& ranks) {
  return {{"tp", ranks.grid().tp}, {"ep", ranks.grid().ep}, {"bytes", ranks.file_bytes()}};
}

}  // namespace

void render_plan(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 const Output& output) {
  if (!output.text_wanted()) return;
  if (plan.gguf) return render_gguf_plan(plan, out, output);
  for (const Finding& finding : plan.findings) output.line(to_line(finding));
  if (!plan.feasible()) return;
  if (!plan.roles_from.empty()) output.line(fmt::format("what to quantize: from {}", plan.roles_from));
  if (!options.dry_run) return;
  render_kinds(plan, output);
  render_shards(plan, output);
  if (plan.ranks) render_ranks(plan, output);
  const ScaleBytes scales = scale_bytes(plan);
  const Space space = check_space(plan, out);
  output.line(fmt::format("scales        {} -> {}", human_bytes(scales.before), human_bytes(scales.after)));
  output.line(fmt::format("read, written {}, {} in {} files", human_bytes(plan.read_bytes),
                          human_bytes(plan.file_bytes), plan.shards.size()));
  output.line(fmt::format("free space    {}, {} needed, {} of them in reserve", human_bytes(space.free),
                          human_bytes(space.needed), human_bytes(space.reserve)));
  if (const auto time = estimate_time(plan)) {
    output.line(fmt::format(
        "time          about {} (estimate: what is read and written, at the {}/s at which {} were read)",
        human_duration(time->seconds), human_bytes(static_cast<std::uint64_t>(time->bytes_per_second)),
        human_bytes(time->sample)));
  }
  const int jobs = jobs_within_memory(plan, options);
  output.line(fmt::format("peak memory   about {} for {} at a time",
                          human_bytes(largest_piece(plan) * static_cast<std::uint64_t>(jobs)),
                          jobs == 1 ? "one piece" : fmt::format("{} pieces", jobs)));
}

void render_result(const ConversionPlan& plan, const ConvertResult& result, const Output& output) {
  if (!output.text_wanted()) return;
  if (plan.gguf) return render_gguf_result(plan, result, output);
  if (result.reused > 0) output.line(fmt::format("resumed: {} files were finished already", result.reused));
  if (!result.errors.empty()) render_errors(plan, result, output);
  if (result.proof) render_proof(*result.proof, output);
  if (!result.note.empty()) output.paint("note: " + result.note, Style::yellow);
}

Json render_json(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 const ConvertResult* result) {
  if (plan.gguf) return gguf_json(plan, out, result);
  std::map<std::uint32_t, const ErrorSums*> errors;
  if (result != nullptr) {
    for (const WorkError& error : result->errors) errors[error.work] = &error.sums;
  }
  Json tensors = Json::array();
  for (std::uint32_t i = 0; i < plan.works.size(); ++i) {
    const LogicalTensor& tensor = plan.stored.tensors[plan.works[i].tensor];
    Json row = {{"name", tensor.name},
                {"action", name(plan.works[i].action)},
                {"shape", tensor.shape},
                {"from", form_name(tensor)},
                {"to", plan.works[i].to.empty() ? form_name(tensor) : plan.works[i].to}};
    if (plan.ranks) row["cut"] = plan.ranks->rule(i);
    if (const auto found = errors.find(i); found != errors.end()) row["error"] = to_json(*found->second);
    tensors.push_back(std::move(row));
  }
  for (const OutputShard& shard : plan.shards) {
    for (const OutputTensor& tensor : shard.tensors) {
      if (tensor.source == OutputTensor::Source::gathered)
        tensors.push_back({{"name", tensor.name},
                           {"action", "merge"},
                           {"shape", tensor.shape},
                           {"from", name(tensor.type)},
                           {"to", name(tensor.type)}});
    }
  }
  Json files = Json::array();
  for (const OutputShard& shard : plan.shards)
    files.push_back({{"name", shard.name}, {"tensors", shard.tensors.size()}, {"bytes", shard.bytes}});
  const ScaleBytes scales = scale_bytes(plan);
  Json json = {{"schema", "assay.convert/1"},
               {"spec", plan.spec.text},
               {"out", out.string()},
               {"dry_run", options.dry_run},
               {"feasible", plan.feasible()},
               {"roles_from", plan.roles_from},
               {"tensors", std::move(tensors)},
               {"files", std::move(files)},
               {"total_size", plan.tensor_bytes},
               {"bytes", plan.file_bytes},
               {"ranks", plan.ranks ? to_json(*plan.ranks) : Json(nullptr)},
               {"scale_bytes", {{"before", scales.before}, {"after", scales.after}}},
               {"findings", to_json(plan.findings)}};
  if (result != nullptr) {
    json["interrupted"] = result->interrupted;
    json["note"] = result->note;
    json["proof"] = result->proof ? to_json(*result->proof) : Json(nullptr);
  }
  return json;
}

}  // namespace assay
