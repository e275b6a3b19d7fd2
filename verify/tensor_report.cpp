#include "verify/tensor_report.h"

#include <fmt/format.h>

#include "core/formats/json.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

Json to_json(const TensorReport& tensor) {
  Json json = {{"name", tensor.name}, {"type", name(tensor.type)}, {"shape", tensor.shape}};
  if (tensor.sha256) json["sha256"] = tensor.sha256->hex();
  if (!tensor.numbers) return json;
  const Numbers& n = *tensor.numbers;
  json["count"] = n.count;
  json["nan"] = n.nan;
  json["inf"] = n.inf;
  json["zeros"] = n.zero;
  json["subnormals"] = n.subnormal;
  json["min"] = tensor.has_finite() ? Json(n.min) : Json();
  json["max"] = tensor.has_finite() ? Json(n.max) : Json();
  json["amax"] = tensor.has_finite() ? Json(n.amax) : Json();
  return json;
}

class EntryReader {
 public:
  EntryReader(const ParsedJson& entry, const fs::path& source) : entry_(entry), source_(source) {
    if (!entry.is_object()) fail("is no object");
  }

  TensorReport read() const {
    TensorReport tensor{.name = text("name"), .sha256 = {}, .numbers = {}};
    const auto type = element_type_from_text(text("type"));
    if (!type) fail("is of an unknown type");
    tensor.type = *type;
    if (!member("shape").is_array()) fail("has a \"shape\" that is no list");
    for (const ParsedJson& dimension : member("shape"))
      tensor.shape.push_back(json_u64(dimension, "shape", source_));
    if (entry_.contains("sha256")) {
      tensor.sha256 = Digest::parse(DigestKind::sha256, text("sha256"));
      if (!tensor.sha256) fail("has a \"sha256\" that is none");
    }
    if (entry_.contains("count")) tensor.numbers = numbers();
    return tensor;
  }

 private:
  Numbers numbers() const {
    Numbers n;
    n.count = count("count");
    n.nan = count("nan");
    n.inf = count("inf");
    n.zero = count("zeros");
    n.subnormal = count("subnormals");
    if (n.nan > n.count || n.inf > n.count - n.nan) fail("has more values that are not finite than values");
    if (n.finite() == 0) return n;
    n.min = real("min");
    n.max = real("max");
    n.amax = real("amax");
    return n;
  }

  const ParsedJson& member(const char* key) const {
    const auto it = entry_.find(key);
    if (it == entry_.end()) fail(fmt::format("has no \"{}\"", key));
    return *it;
  }
  std::string text(const char* key) const { return json_string(member(key), key, source_); }
  std::uint64_t count(const char* key) const { return json_u64(member(key), key, source_); }
  double real(const char* key) const {
    if (!member(key).is_number()) fail(fmt::format("has a \"{}\" that is no number", key));
    return member(key).get<double>();
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::input(fmt::format("an entry of \"tensors\" {}", what)).in(source_);
  }

  const ParsedJson& entry_;
  const fs::path& source_;
};

}  // namespace

Json to_json(const std::vector<TensorReport>& tensors) {
  Json list = Json::array();
  for (const TensorReport& tensor : tensors) list.push_back(to_json(tensor));
  return list;
}

std::vector<TensorReport> read_tensor_reports(std::string_view json, const fs::path& source) {
  const ParsedJson entries = parse_json(json, source);
  if (!entries.is_array()) throw Error::input("its \"tensors\" is no list").in(source);
  std::vector<TensorReport> tensors;
  for (const ParsedJson& entry : entries) tensors.push_back(EntryReader(entry, source).read());
  return tensors;
}

Findings judge_numbers(const TensorReport& tensor, bool allow_nonfinite) {
  Findings findings;
  if (!tensor.numbers) return findings;
  const Numbers& n = *tensor.numbers;
  const auto add = [&](Severity severity, const char* code, std::string message) {
    findings.push_back(
        {.severity = severity, .code = code, .message = std::move(message), .tensor = tensor.name});
  };
  if (n.nan + n.inf > 0)
    add(allow_nonfinite ? Severity::warning : Severity::error, "numbers.nonfinite",
        fmt::format("holds {} NaN and {} Inf among {} values", n.nan, n.inf, n.count));
  const auto stored = parse_stored_name(tensor.name);
  const bool zero_points =
      stored && stored->part == StoredPart::zero_point;  // of symmetric weights they are 0
  if (n.count > 1 && n.zero == n.count && !zero_points)
    add(Severity::warning, "numbers.all_zero", fmt::format("all {} values are zero", n.count));
  return findings;
}

}  // namespace assay
