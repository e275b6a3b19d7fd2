#include "convert/render_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kMovedMost = 10;

struct TypeTotal {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::map<ElementType, TypeTotal> totals_by_type(const ConversionPlan& plan) {
  std::map<ElementType, TypeTotal> totals;
  for (const OutputShard& file : plan.shards) {
    for (const OutputTensor& tensor : file.tensors) {
      TypeTotal& total = totals[tensor.type];
      ++total.tensors;
      total.elements += element_count(tensor.shape).value_or(0);
      total.bytes += tensor.bytes;
    }
  }
  return totals;
}

std::string human_bits(const TypeTotal& total) {
  if (total.elements == 0) return "";
  return fmt::format("{:.4g}", 8.0 * static_cast<double>(total.bytes) / static_cast<double>(total.elements));
}

void print(const Table& table, const Output& output) {
  std::string text = table.render();
  if (!text.empty()) text.pop_back();
  output.line(text);
}

}  // namespace

void render_gguf_plan(const ConversionPlan& plan, const fs::path& out, const Output& output) {
  const std::string names = plan.roles_from.empty() ? "names kept" : "names by " + plan.roles_from;
  output.line(fmt::format("{}: {} tensors into {} in {} file{}; {}", plan.spec.text, plan.derived.size(),
                          human_bytes(plan.file_bytes), plan.shards.size(),
                          plan.shards.size() == 1 ? "" : "s", names));
  Table table({"type", "tensors", "values", "bytes", "bits a value"},
              {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::right,
               Table::Align::right});
  for (const auto& [type, total] : totals_by_type(plan)) {
    table.add({std::string(name(type)), std::to_string(total.tensors), with_thousands(total.elements),
               human_bytes(total.bytes), human_bits(total)});
  }
  print(table, output);
  for (const std::string& note : plan.notes) output.line("note: " + escape_for_terminal(note));
  const Space space = check_space(plan, out);
  output.line(fmt::format("{} needed on the disk, {} free; at most {} of memory for one piece of work",
                          human_bytes(space.needed), human_bytes(space.free),
                          human_bytes(largest_piece(plan))));
}

void render_gguf_result(const ConversionPlan& plan, const ConvertResult& result, const Output& output) {
  if (result.interrupted) return;
  if (!result.note.empty()) output.paint("note: " + result.note, Style::yellow);
  if (result.reused > 0) output.line(fmt::format("{} tensors were finished before", result.reused));
  if (result.tensor_digests.empty()) return;  // found finished
  std::vector<const WorkError*> moved;
  for (const WorkError& error : result.errors) {
    if (error.sums.error_squares > 0) moved.push_back(&error);
  }
  if (moved.empty())
    output.line(
        fmt::format("every value of {} tensors is exactly the source's", result.tensor_digests.size()));
  std::sort(moved.begin(), moved.end(), [&](const WorkError* a, const WorkError* b) {
    return plan.name_of(a->work) < plan.name_of(b->work);
  });
  std::stable_sort(moved.begin(), moved.end(), [](const WorkError* a, const WorkError* b) {
    return a->sums.relative_frobenius() > b->sums.relative_frobenius();
  });
  if (!moved.empty()) {
    Table table({"moved most", "relative error", "SQNR dB", "largest", "1 - cosine"},
                {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::right,
                 Table::Align::right});
    for (std::size_t i = 0; i < std::min(kMovedMost, moved.size()); ++i) {
      const ErrorSums& sums = moved[i]->sums;
      table.add({escape_for_terminal(plan.name_of(moved[i]->work)),
                 fmt::format("{:.3e}", sums.relative_frobenius()), fmt::format("{:.2f}", sums.sqnr_db()),
                 fmt::format("{:.3g}", sums.largest_error), fmt::format("{:.2e}", sums.one_minus_cosine())});
    }
    print(table, output);
  }
  for (const OutputShard& file : plan.shards) {
    const auto digest = result.file_digests.find(file.name);
    if (digest != result.file_digests.end())
      output.line(fmt::format("{}  {}", digest->second.hex(), escape_for_terminal(file.name)));
  }
}

Json gguf_json(const ConversionPlan& plan, const fs::path& out, const ConvertResult* result) {
  const Space space = check_space(plan, out);
  Json json = {{"schema", "assay.convert-gguf/1"},
               {"to", plan.spec.text},
               {"roles", plan.roles_from},
               {"file_bytes", plan.file_bytes},
               {"read_bytes", plan.read_bytes},
               {"free_bytes", space.free},
               {"largest_piece_bytes", largest_piece(plan)},
               {"written", result != nullptr && !result->interrupted},
               {"notes", plan.notes}};
  if (result != nullptr && !result->note.empty()) json["notes"].push_back(result->note);
  std::map<std::uint32_t, const ErrorSums*> errors;
  if (result != nullptr) {
    for (const WorkError& error : result->errors) errors[error.work] = &error.sums;
  }
  const auto add_digest = [](Json& entry, const std::map<std::string, Digest>& digests,
                             const std::string& name) {
    if (const auto found = digests.find(name); found != digests.end()) entry["sha256"] = found->second.hex();
  };
  Json types = Json::array(), files = Json::array(), tensors = Json::array();
  for (const auto& [type, total] : totals_by_type(plan))
    types.push_back({{"type", name(type)},
                     {"tensors", total.tensors},
                     {"elements", total.elements},
                     {"bytes", total.bytes}});
  for (const OutputShard& file : plan.shards) {
    Json entry = {{"name", file.name}, {"bytes", file.bytes}};
    if (result != nullptr) add_digest(entry, result->file_digests, file.name);
    files.push_back(std::move(entry));
    for (const OutputTensor& tensor : file.tensors) {
      Json own = {{"name", tensor.name},
                  {"type", name(tensor.type)},
                  {"shape", tensor.shape},
                  {"bytes", tensor.bytes},
                  {"file", file.name}};
      if (result != nullptr) add_digest(own, result->tensor_digests, tensor.name);
      if (const auto error = errors.find(tensor.from); error != errors.end())
        own["error"] = to_json(*error->second);
      tensors.push_back(std::move(own));
    }
  }
  json["types"] = std::move(types);
  json["files"] = std::move(files);
  json["tensors"] = std::move(tensors);
  return json;
}

}  // namespace assay
