#include "refimpl/jinja/json_value.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/formats/json.h"
#include "core/system/error.h"

namespace assay::jinja {
namespace {

using Json = nlohmann::json;

class Reader : public nlohmann::json_sax<Json> {
 public:
  Value take() { return std::move(root_); }

  bool null() override { return put(Value::none()); }
  bool boolean(bool b) override { return put(Value::of_bool(b)); }
  bool number_integer(number_integer_t i) override { return put(Value::of_integer(i)); }
  bool number_unsigned(number_unsigned_t u) override { return put(wide(fmt::format("{}", u))); }
  // Whole numbers that are too large for the library come here too.
  bool number_float(number_float_t d, const string_t& written) override {
    if (written.find_first_of(".eE") == string_t::npos) return put(wide(written));
    return put(Value::of_real(d));
  }
  bool string(string_t& s) override { return put(text(s)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& name) override {
    open_.back().entries.emplace_back(text(name), Value());
    return true;
  }
  bool end_object() override {
    Value made = dict(std::move(open_.back().entries));
    open_.pop_back();
    return put(std::move(made));
  }
  bool end_array() override {
    Value made = list(std::move(open_.back().items));
    open_.pop_back();
    return put(std::move(made));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error::input(fmt::format("is not valid JSON: {}", json_error_reason(error.what())))
        .at(position > 0 ? position - 1 : 0);
  }

 private:
  struct Container {
    bool is_object;
    Dict::Entries entries;
    Values items;
  };

  bool open(bool is_object) {
    constexpr std::size_t kDeepest = 100;
    if (open_.size() >= kDeepest)
      throw Error::input(fmt::format("JSON is nested more than {} levels deep", kDeepest));
    open_.push_back({is_object, {}, {}});
    return true;
  }

  bool put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().entries.back().second = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Container> open_;
  Value root_;
};

}  // namespace

Value value_from_json(std::string_view text) {
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw Error::input("JSON holds a NUL byte").at(nul);
  Reader reader;
  Json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace assay::jinja
