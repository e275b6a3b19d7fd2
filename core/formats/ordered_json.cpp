#include "core/formats/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

// nlohmann's ordered map looks all its keys up before it adds one: a million members would take hours. Members are
// added to the vector beneath; keys said twice are found when the object ends.
class OrderedBuilder : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedBuilder(const JsonLimits& limits, const std::filesystem::path& source)
      : limits_(limits), source_(source) {}
  OrderedJson take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(OrderedJson::object()); }
  bool start_array(std::size_t) override { return open(OrderedJson::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : members()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      throw Error::input(fmt::format("JSON has the key \"{}\" twice in one object", *twice)).in(source_);
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    members().emplace_back(std::move(name), nullptr);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error::input(fmt::format("is not valid JSON: {}", json_error_reason(error.what())))
        .in(source_)
        .at(position > 0 ? position - 1 : 0);
  }

 private:
  using Members = OrderedJson::object_t::Container;
  Members& members() { return open_.back()->get_ref<OrderedJson::object_t&>(); }
  template <class Value>
  bool add(Value&& value) {
    place() = OrderedJson(std::forward<Value>(value));
    return true;
  }
  bool open(OrderedJson&& empty) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      throw Error::input(fmt::format("JSON is nested more than {} levels deep", limits_.max_depth))
          .in(source_);
    OrderedJson& here = place();
    here = std::move(empty);
    open_.push_back(&here);
    return true;
  }
  // What is open does not move: only the innermost grows.
  OrderedJson& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return members().back().second;
    return open_.back()->get_ref<OrderedJson::array_t&>().emplace_back();
  }

  const JsonLimits& limits_;
  const std::filesystem::path& source_;
  OrderedJson root_;
  std::vector<OrderedJson*> open_;
};

// -Infinity outside strings becomes a number as long; NaN is no probability.
std::string without_infinities(std::string_view text, const std::filesystem::path& source) {
  constexpr std::string_view kPython = "-Infinity", kJson = "  -1e308 ";
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_string && out[i] == '\\') {
      ++i;
      continue;
    }
    if (out[i] == '"') in_string = !in_string;
    if (in_string) continue;
    const std::string_view rest = std::string_view(out).substr(i);
    if (rest.starts_with("NaN")) throw Error::input("holds a NaN, which is no probability").in(source).at(i);
    if (rest.starts_with(kPython)) out.replace(i, kJson.size(), kJson);
  }
  return out;
}

}  // namespace

OrderedJson parse_ordered_json(std::string_view text, const std::filesystem::path& source,
                               const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw Error::input(fmt::format("JSON of {} bytes; at most {} are read", text.size(), limits.max_bytes))
        .in(source);
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw Error::input("JSON holds a NUL byte").in(source).at(nul);
  std::string rewritten;
  if (text.find("-Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos) {
    rewritten = without_infinities(text, source);
    text = rewritten;
  }
  OrderedBuilder document(limits, source);
  OrderedJson::sax_parse(text, &document);
  return document.take();
}

}  // namespace assay
