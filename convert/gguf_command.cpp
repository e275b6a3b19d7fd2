#include "convert/gguf_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kWorstShown = 10;

struct TypeTotal {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::map<ElementType, TypeTotal> totals_by_type(const RegroupPlan& plan) {
  std::map<ElementType, TypeTotal> totals;
  for (const RegroupFile& file : plan.files) {
    for (const RegroupTensor& tensor : file.tensors) {
      TypeTotal& total = totals[tensor.type];
      ++total.tensors;
      total.elements += element_count(tensor.made.shape).value_or(0);
      total.bytes += tensor.bytes;
    }
  }
  return totals;
}

std::string human_bits(const TypeTotal& total) {
  if (total.elements == 0) return "";
  return fmt::format("{:.4g}", 8.0 * static_cast<double>(total.bytes) / static_cast<double>(total.elements));
}

void render_plan(const RegroupPlan& plan, const fs::path& out, const Output& output) {
  const std::string names = plan.roles.empty() ? "names kept" : "names by " + plan.roles;
  output.line(fmt::format("{}: {} tensors into {} in {} file{}; {}", plan.to, plan.tensor_count(),
                          human_bytes(plan.file_bytes), plan.files.size(), plan.files.size() == 1 ? "" : "s",
                          names));
  Table table({"type", "tensors", "values", "bytes", "bits a value"},
              {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::right,
               Table::Align::right});
  for (const auto& [type, total] : totals_by_type(plan)) {
    table.add({std::string(name(type)), std::to_string(total.tensors), with_thousands(total.elements),
               human_bytes(total.bytes), human_bits(total)});
  }
  std::string text = table.render();
  if (!text.empty()) text.pop_back();
  output.line(text);
  for (const std::string& note : plan.notes) output.line("note: " + escape_for_terminal(note));
  const Space space = regroup_space(plan, out);
  output.line(fmt::format("{} needed on the disk, {} free; at most {} of memory for one piece of work",
                          human_bytes(space.needed), human_bytes(space.free),
                          human_bytes(largest_regroup_piece(plan))));
}

void render_result(const RegroupPlan& plan, const RegroupResult& result, const Output& output) {
  if (!result.note.empty()) output.paint("note: " + result.note, Style::yellow);
  if (result.reused > 0) output.line(fmt::format("{} tensors were finished before", result.reused));
  std::vector<std::pair<std::string, const ErrorSums*>> moved;
  for (const auto& [name, tensor] : result.tensors) {
    if (tensor.error.error_squares > 0) moved.emplace_back(name, &tensor.error);
  }
  if (moved.empty())
    output.line(fmt::format("every value of {} tensors is exactly the source's", result.tensors.size()));
  std::stable_sort(moved.begin(), moved.end(), [](const auto& a, const auto& b) {
    return a.second->relative_frobenius() > b.second->relative_frobenius();
  });
  if (!moved.empty()) {
    Table table({"moved most", "relative error", "SQNR dB", "largest", "1 - cosine"},
                {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::right,
                 Table::Align::right});
    for (std::size_t i = 0; i < std::min(kWorstShown, moved.size()); ++i) {
      const auto& [name, sums] = moved[i];
      table.add({escape_for_terminal(name), fmt::format("{:.3e}", sums->relative_frobenius()),
                 fmt::format("{:.2f}", sums->sqnr_db()), fmt::format("{:.3g}", sums->largest_error),
                 fmt::format("{:.2e}", sums->one_minus_cosine())});
    }
    std::string text = table.render();
    text.pop_back();
    output.line(text);
  }
  for (const RegroupFile& file : plan.files) {
    const auto digest = result.files.find(file.name);
    if (digest != result.files.end())
      output.line(fmt::format("{}  {}", digest->second.hex(), escape_for_terminal(file.name)));
  }
}

Json to_json(const RegroupPlan& plan, const fs::path& out, const RegroupResult* result) {
  const Space space = regroup_space(plan, out);
  Json json = {{"schema", "assay.convert-gguf/1"},
               {"to", plan.to},
               {"roles", plan.roles},
               {"file_bytes", plan.file_bytes},
               {"read_bytes", plan.read_bytes},
               {"free_bytes", space.free},
               {"largest_piece_bytes", largest_regroup_piece(plan)},
               {"written", result != nullptr && !result->interrupted},
               {"notes", plan.notes}};
  if (result != nullptr && !result->note.empty()) json["notes"].push_back(result->note);
  Json types = Json::array(), files = Json::array(), tensors = Json::array();
  for (const auto& [type, total] : totals_by_type(plan))
    types.push_back({{"type", name(type)},
                     {"tensors", total.tensors},
                     {"elements", total.elements},
                     {"bytes", total.bytes}});
  for (const RegroupFile& file : plan.files) {
    Json entry = {{"name", file.name}, {"bytes", file.bytes}};
    if (result != nullptr && result->files.contains(file.name))
      entry["sha256"] = result->files.at(file.name).hex();
    files.push_back(std::move(entry));
    for (const RegroupTensor& tensor : file.tensors) {
      Json own = {{"name", tensor.made.name},
                  {"type", name(tensor.type)},
                  {"shape", tensor.made.shape},
                  {"bytes", tensor.bytes},
                  {"file", file.name}};
      if (result != nullptr && result->tensors.contains(tensor.made.name)) {
        const auto& made = result->tensors.at(tensor.made.name);
        own["sha256"] = made.sha256.hex();
        own["error"] = to_json(made.error);
      }
      tensors.push_back(std::move(own));
    }
  }
  json["types"] = std::move(types);
  json["files"] = std::move(files);
  json["tensors"] = std::move(tensors);
  return json;
}

}  // namespace

int run_gguf(const fs::path& in, const fs::path& out, const ConvertOptions& options, const GgufOptions& gguf,
             const fs::path& report, ProgressMode progress, const Output& output) {
  if (report.extension() == ".html")
    throw Error::usage(fmt::format("--report {}: of GGUF there is no page", report.string()))
        .remedy("name a .json");
  const RegroupPlan plan = make_gguf_plan(in, out, options, gguf);
  if (!plan.folder) {
    for (const RegroupFile& file : plan.files) {
      std::error_code error;
      if (!options.resume && !options.overwrite && fs::exists(regrouped_path(plan, file, out), error))
        throw Error::refused("exists already").in(regrouped_path(plan, file, out)).remedy("name a new file");
    }
  }
  render_plan(plan, out, output);
  if (options.dry_run) {
    check_regroup_memory(plan, options);
    output.json(to_json(plan, out, nullptr));
    const Space space = regroup_space(plan, out);
    const bool fits = space.needed <= space.free;
    output.paint(fits ? "OK: a dry run, nothing was written" : "FAILED: it does not fit on the disk",
                 fits ? Style::green : Style::red);
    return fits ? kExitOk : kExitCheckFailed;
  }
  const RegroupResult result = regroup(plan, out, options, progress);
  output.json(to_json(plan, out, &result));
  if (!report.empty() && !result.interrupted) {
    AtomicFile file(report);
    file.write(dump_json(to_json(plan, out, &result)) + "\n");
    file.commit();
  }
  if (result.interrupted) {
    output.line("interrupted; --resume goes on from here");
    return kExitInterrupted;
  }
  render_result(plan, result, output);
  output.paint(fmt::format("OK: {}", escape_for_terminal(out.string())), Style::green);
  return kExitOk;
}

}  // namespace assay
