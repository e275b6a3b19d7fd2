#include "refimpl/replay/trace.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kMooncakeBlock = 512;
// Beyond any context: a line that says more is damaged.
constexpr std::uint64_t kMostTokens = 1'000'000'000;
constexpr std::size_t kMostLine = 64 << 20;

Error wrong(const std::string& file, std::size_t line, const std::string& what) {
  return Error::input(fmt::format("line {}: {}", line, what)).in(file);
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t number_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned())
    throw Error::input(fmt::format("'{}' is no whole number", key));
  const auto value = found->get<std::uint64_t>();
  if (value > kMostTokens) throw Error::input(fmt::format("'{}' is {}", key, value));
  return value;
}

TraceRequest mooncake_request(const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) throw Error::input("no JSON object");
  const auto time = object.find("timestamp");
  if (time == object.end() || !time->is_number()) throw Error::input("'timestamp' is no number");
  TraceRequest request{
      time->get<double>(), number_of(object, "input_length"), number_of(object, "output_length"), {}};
  const auto ids = object.find("hash_ids");
  if (ids == object.end() || !ids->is_array()) throw Error::input("'hash_ids' is no list");
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned()) throw Error::input("'hash_ids' holds what is no whole number");
    request.blocks.push_back(id.get<std::uint64_t>());
  }
  const std::size_t blocks = (request.input + kMooncakeBlock - 1) / kMooncakeBlock;
  if (request.input == 0 || request.blocks.size() != blocks)
    throw Error::input(fmt::format("{} hash_ids for {} tokens in blocks of {}", request.blocks.size(),
                                   request.input, kMooncakeBlock));
  return request;
}

// "2023-11-16 18:17:03.9799600": ms of the time of day, days counted from a day long past.
std::optional<double> milliseconds(const std::string& stamp) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  if (std::sscanf(stamp.c_str(), "%d-%d-%d %d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6)
    return std::nullopt;
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || !(second < 61))
    return std::nullopt;
  // Days of the proleptic Gregorian calendar, the year beginning with March.
  const int y = year - (month <= 2 ? 1 : 0), m = (month + 9) % 12;
  const double days = 365.0 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000;
}

TraceRequest azure_request(const std::string& line) {
  const auto first = line.find(','), second = line.find(',', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) throw Error::input("not three columns");
  const auto time = milliseconds(line.substr(0, first));
  const auto input = whole_number(std::string_view(line).substr(first + 1, second - first - 1));
  const auto output = whole_number(std::string_view(line).substr(second + 1));
  if (!time || !input || !output || *input == 0 || *input > kMostTokens || *output > kMostTokens)
    throw Error::input("not a time and two numbers of tokens");
  return {*time, *input, *output, {}};
}

}  // namespace

std::size_t Trace::distinct_blocks() const {
  std::unordered_set<std::uint64_t> ids;
  for (const TraceRequest& request : requests) ids.insert(request.blocks.begin(), request.blocks.end());
  return ids.size();
}

Trace read_trace(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw Error::input("cannot be read").in(file.string());
  return parse_trace(in, file.string());
}

Trace parse_trace(std::istream& in, const std::string& file) {
  Trace trace;
  std::string line;
  bool csv = false;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.size() > kMostLine) throw wrong(file, number, "longer than any request");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (number == 1 && line.starts_with("TIMESTAMP,")) {
      csv = true;
      continue;
    }
    try {
      trace.requests.push_back(csv ? azure_request(line) : mooncake_request(line));
    } catch (const Error& error) {
      throw wrong(file, number, error.message());
    }
    if (trace.requests.size() > 1 &&
        trace.requests.back().arrival < trace.requests[trace.requests.size() - 2].arrival)
      throw wrong(file, number, "earlier than the line before it");
  }
  if (in.bad()) throw Error::input("cannot be read to its end").in(file);
  if (trace.requests.empty())
    throw Error::input("no requests").in(file).remedy("give Mooncake's jsonl or Azure's csv");
  trace.block_tokens = csv ? 0 : kMooncakeBlock;
  const double begin = trace.requests.front().arrival;
  for (TraceRequest& request : trace.requests) request.arrival -= begin;
  return trace;
}

}  // namespace assay
