#include "verify/inspect_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kShownText = 120;        // bytes of a metadata text in the table
constexpr std::uint64_t kShownElements = 8;    // of an array
constexpr std::uint64_t kJsonElements = 1024;  // longer arrays appear in JSON by type and length only

std::string shape_text(const CheckpointTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

std::string abbreviate(std::string_view text) {
  if (text.size() <= kShownText) return escape_for_terminal(text);
  std::size_t end = kShownText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return fmt::format("{}… ({} bytes)", escape_for_terminal(text.substr(0, end)), with_thousands(text.size()));
}

std::string_view type_name(gguf::ValueType type) {
  static constexpr std::string_view kNames[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "boolean", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

bool is_fraction(gguf::ValueType type) {
  return type == gguf::ValueType::f32 || type == gguf::ValueType::f64;
}

std::string array_text(const gguf::Array& array) {
  if (array.type == gguf::ValueType::string) return fmt::format("[{} strings]", array.count);
  if (array.type == gguf::ValueType::array) return fmt::format("[{} arrays]", array.count);
  if (array.count > kShownElements) return fmt::format("[{} {}]", array.count, type_name(array.type));
  return fmt::format("[{}]", fmt::join(array.numbers(), ", "));
}

std::string value_text(const gguf::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return abbreviate(*text);
  if (const auto* array = std::get_if<gguf::Array>(&value)) return array_text(*array);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("{}", std::get<std::uint64_t>(value));
}

Json array_json(const gguf::Array& array) {
  Json json = {{"type", type_name(array.type)}, {"count", array.count}};
  if (array.count > kJsonElements || array.type == gguf::ValueType::array) return json;
  if (array.type == gguf::ValueType::string)
    json["values"] = array.strings();
  else if (is_fraction(array.type))
    json["values"] = array.numbers();
  else if (array.type != gguf::ValueType::u64)
    json["values"] = array.integers();
  return json;
}

Json value_json(const gguf::Value& value) {
  if (const auto* array = std::get_if<gguf::Array>(&value)) return array_json(*array);
  return std::visit(
      [](const auto& plain) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, gguf::Array>)
          return nullptr;
        else
          return plain;
      },
      value);
}

Json totals_json(const TensorTotals& totals) {
  return {{"tensors", totals.tensors}, {"elements", totals.elements}, {"bytes", totals.bytes}};
}

Json files_json(const Inspection& inspection) {
  Json files = Json::array();
  for (std::size_t i = 0; i < inspection.checkpoint.files.size(); ++i) {
    const CheckpointFile& file = inspection.checkpoint.files[i];
    Json entry = {{"name", file.name}, {"bytes", file.bytes}, {"totals", totals_json(inspection.by_file[i])}};
    if (inspection.checkpoint.container == Checkpoint::Container::safetensors) {
      Json metadata = Json::object();
      for (const auto& [key, value] : file.metadata) metadata[key] = value;
      entry["metadata"] = std::move(metadata);
    }
    files.push_back(std::move(entry));
  }
  return files;
}

Json tensor_json(const CheckpointTensor& tensor, const Checkpoint& checkpoint) {
  return {{"name", tensor.name},   {"type", name(tensor.type)}, {"shape", tensor.shape},
          {"bytes", tensor.bytes}, {"offset", tensor.offset},   {"file", checkpoint.files[tensor.file].name}};
}

// All but its list of tensors, which is left empty.
Json frame_json(const Inspection& inspection) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  const bool is_gguf = checkpoint.container == Checkpoint::Container::gguf;
  Json document = {{"schema", "assay.inspect/1"},
                   {"container", is_gguf ? "gguf" : "safetensors"},
                   {"root", checkpoint.root.string()},
                   {"files", files_json(inspection)}};
  if (checkpoint.gguf) {
    Json metadata = Json::object();
    for (const gguf::KeyValue& entry : checkpoint.gguf->metadata)
      metadata[entry.key] = value_json(entry.value);
    document["metadata"] = std::move(metadata);
  }
  if (checkpoint.index) {
    document["index"] = {{"tensors", checkpoint.index->weight_map.size()}};
    if (checkpoint.index->total_size) document["index"]["total_size"] = *checkpoint.index->total_size;
  }
  document["totals"] = totals_json(inspection.all);
  Json& types = document["totals"]["types"] = Json::object();
  for (const auto& [type, totals] : inspection.by_type) types[std::string(name(type))] = totals_json(totals);
  document["tensors"] = Json::array();
  document["findings"] = to_json(checkpoint.findings);
  return document;
}

}  // namespace

void TensorTotals::add(const CheckpointTensor& tensor) {
  ++tensors;
  elements += element_count(tensor.shape).value_or(0);
  bytes += tensor.bytes;
}

Inspection inspect(const Checkpoint& checkpoint, const NameFilter& filter) {
  Inspection inspection{checkpoint, {}, {}, std::vector<TensorTotals>(checkpoint.files.size()), {}};
  inspection.tensors.reserve(filter.accepts_all() ? checkpoint.tensors.size() : 0);
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (!filter.accepts(tensor.name)) continue;
    inspection.tensors.push_back(&tensor);
    inspection.by_type[tensor.type].add(tensor);
    inspection.by_file[tensor.file].add(tensor);
    inspection.all.add(tensor);
  }
  return inspection;
}

void write_tensor_table(const Inspection& inspection, const WriteText& write) {
  using enum Table::Align;
  const bool several = inspection.checkpoint.files.size() > 1;
  std::vector<std::string> file_names;
  for (const CheckpointFile& file : inspection.checkpoint.files)
    file_names.push_back(escape_for_terminal(file.name));
  const auto row_of = [&](const CheckpointTensor& tensor) {
    std::vector<std::string> row = {escape_for_terminal(tensor.name), std::string(name(tensor.type)),
                                    shape_text(tensor), std::to_string(tensor.bytes),
                                    std::to_string(tensor.offset)};
    if (several) row.push_back(file_names[tensor.file]);
    return row;
  };
  std::vector<std::string> heads = {"TENSOR", "TYPE", "SHAPE", "BYTES", "OFFSET"};
  if (several) heads.emplace_back("FILE");
  TableLines lines({left, left, left, right, right, left});
  lines.measure(heads);
  for (const CheckpointTensor* tensor : inspection.tensors) lines.measure(row_of(*tensor));
  write(lines.line(heads));
  for (const CheckpointTensor* tensor : inspection.tensors) write(lines.line(row_of(*tensor)));
}

std::string file_table(const Inspection& inspection) {
  using enum Table::Align;
  Table table({"FILE", "TENSORS", "TENSOR BYTES", "FILE BYTES"}, {left, right, right, right});
  for (std::size_t i = 0; i < inspection.by_file.size(); ++i) {
    const CheckpointFile& file = inspection.checkpoint.files[i];
    table.add({escape_for_terminal(file.name), with_thousands(inspection.by_file[i].tensors),
               with_thousands(inspection.by_file[i].bytes), with_thousands(file.bytes)});
  }
  return table.render();
}

std::string metadata_table(const Checkpoint& checkpoint) {
  using enum Table::Align;
  if (checkpoint.gguf) {
    Table table({"KEY", "TYPE", "VALUE"}, {left, left, left});
    for (const gguf::KeyValue& entry : checkpoint.gguf->metadata) {
      table.add(
          {escape_for_terminal(entry.key), std::string(type_name(entry.type)), value_text(entry.value)});
    }
    return table.render();
  }
  Table table({"FILE", "KEY", "VALUE"}, {left, left, left});
  for (const CheckpointFile& file : checkpoint.files) {
    for (const auto& [key, value] : file.metadata) {
      table.add({escape_for_terminal(file.name), escape_for_terminal(key), abbreviate(value)});
    }
  }
  return table.render();
}

std::string totals_table(const Inspection& inspection) {
  using enum Table::Align;
  Table table({"TYPE", "TENSORS", "ELEMENTS", "BYTES"}, {left, right, right, right});
  const auto add = [&](std::string_view label, const TensorTotals& totals) {
    table.add({std::string(label), with_thousands(totals.tensors), with_thousands(totals.elements),
               with_thousands(totals.bytes)});
  };
  for (const auto& [type, totals] : inspection.by_type) add(name(type), totals);
  add("all", inspection.all);
  return table.render();
}

void write_json(const Inspection& inspection, const std::string& target) {
  stream_json_to(target, frame_json(inspection), "tensors", inspection.tensors.size(),
                 [&](std::size_t i) { return tensor_json(*inspection.tensors[i], inspection.checkpoint); });
}

}  // namespace assay
