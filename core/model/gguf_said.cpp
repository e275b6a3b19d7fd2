#include "core/model/gguf_said.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/formats/json.h"
#include "core/model/limits.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostValues = 4096, kMostListed = 1U << 20;

// 3 and 3.0 are one number to a config.json; float32 has its shortest decimal.
ParsedJson of_number(double number) {
  const bool whole = std::nearbyint(number) == number && std::fabs(number) < 1e15;
  if (!whole) return shortest_decimal(number);
  return number < 0 ? ParsedJson(static_cast<std::int64_t>(number))
                    : ParsedJson(static_cast<std::uint64_t>(number));
}

ParsedJson of_array(const gguf::Array& array) {
  ParsedJson list = ParsedJson::array();
  if (array.type == gguf::ValueType::string) {
    for (std::string& text : array.strings()) list.push_back(std::move(text));
    return list;
  }
  if (array.type == gguf::ValueType::array) return nullptr;
  const bool flags = array.type == gguf::ValueType::boolean;
  for (const double number : array.numbers())
    list.push_back(flags ? ParsedJson(number != 0) : of_number(number));
  return list;
}

std::optional<double> as_number(const gguf::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*n);
  if (const auto* n = std::get_if<std::int64_t>(&value)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&value)) return *x;
  return std::nullopt;
}

std::vector<double> listed_numbers(const gguf::Value& value) {
  const auto* list = std::get_if<gguf::Array>(&value);
  const bool of_numbers = list != nullptr && list->type != gguf::ValueType::string &&
                          list->type != gguf::ValueType::array && list->count <= kMostListed;
  return of_numbers ? list->numbers() : std::vector<double>();
}

}  // namespace

ParsedJson shortest_decimal(double value) {
  return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr);
}

GgufSaid::GgufSaid(const gguf::Header& header, const std::filesystem::path& source,
                   std::span<const CheckpointTensor> stored)
    : header_(header), source_(source), architecture_(header.text("general.architecture").value_or("")) {
  for (const CheckpointTensor& tensor : stored) tensors_.emplace(tensor.name, tensor);
  for (const gguf::Tensor& tensor : header.tensors)
    tensors_.emplace(tensor.name, CheckpointTensor{tensor.name, tensor.type, tensor.shape(),
                                                   header.data_offset + tensor.offset, tensor.bytes, 0});
}

const gguf::Value* GgufSaid::value(std::string_view key) const {
  const gguf::KeyValue* found = header_.find(fmt::format("{}.{}", architecture_, key));
  return found == nullptr ? nullptr : &found->value;
}

std::optional<double> GgufSaid::number(std::string_view key) const {
  const gguf::Value* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (const auto one = as_number(*found)) return one;
  const std::vector<double> all = listed_numbers(*found);
  const bool alike =
      !all.empty() && std::all_of(all.begin(), all.end(), [&](double x) { return x == all.front(); });
  return alike ? std::optional(all.front()) : std::nullopt;
}

std::uint64_t GgufSaid::count(std::string_view key, std::uint64_t otherwise) const {
  const auto found = number(key);
  const bool is_count = found && *found >= 0 && *found < 1e15 && std::nearbyint(*found) == *found;
  return is_count ? static_cast<std::uint64_t>(*found) : otherwise;
}

std::uint64_t GgufSaid::layers() const {
  const std::uint64_t layers = count("block_count");
  if (layers > kMostLayers)
    throw Error::input(fmt::format("block_count is {}: no model has so many layers", layers)).in(source_);
  return layers;
}

std::vector<double> GgufSaid::list(std::string_view key) const {
  const gguf::Value* found = value(key);
  if (found == nullptr) return {};
  if (const auto one = as_number(*found)) return std::vector<double>(layers(), *one);
  return listed_numbers(*found);
}

ParsedJson GgufSaid::json(std::string_view key) const {
  const gguf::Value* found = value(key);
  if (found == nullptr) return nullptr;
  if (const auto* flag = std::get_if<bool>(found)) return *flag;
  if (const auto* text = std::get_if<std::string>(found)) return *text;
  if (const auto* array = std::get_if<gguf::Array>(found)) return of_array(*array);
  if (const auto* real = std::get_if<double>(found)) return shortest_decimal(*real);
  return of_number(as_number(*found).value_or(0));
}

bool GgufSaid::any_tensor(std::string_view ending) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& tensor) {
    const std::string& name = tensor.first;
    const bool ends = name.ends_with(ending);
    return ends && (name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.');
  });
}

std::vector<std::uint64_t> GgufSaid::shape(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::vector<std::uint64_t>() : found->second.shape;
}

std::vector<float> GgufSaid::values(std::string_view name) const {
  const auto found = tensors_.find(name);
  const bool is_here =
      found != tensors_.end() && found->second.type == ElementType::F32 && found->second.file == 0;
  if (!is_here) return {};
  const std::uint64_t bytes = found->second.bytes;
  if (bytes > kMostValues * sizeof(float) || bytes % sizeof(float) != 0)
    throw Error::input("is no short list of numbers").in(source_).tensor(std::string(name));
  std::vector<float> values(bytes / sizeof(float));
  File::open(source_).read_exactly(found->second.offset, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace assay
