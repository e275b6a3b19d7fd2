#include "core/formats/json.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"

namespace assay {
namespace {

// Builds a document from its events, and refuses one that is too deep or says a key twice where it does so.
class Builder : public nlohmann::json_sax<ParsedJson> {
 public:
  Builder(const JsonLimits& limits, const std::filesystem::path& source) : limits_(limits), source_(source) {}

  ParsedJson take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(ParsedJson::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(ParsedJson::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<ParsedJson::object_t&>();
    const auto [member, is_new] = members.try_emplace(std::move(name));
    if (!is_new && !limits_.duplicate_keys)
      throw Error::input(fmt::format("JSON has the key \"{}\" twice in one object", member->first))
          .in(source_);
    member_ = &member->second;  // of a key said twice the later value counts
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error::input(fmt::format("is not valid JSON: {}", json_error_reason(error.what())))
        .in(source_)
        .at(position > 0 ? position - 1 : 0);
  }

 private:
  template <class Value>
  bool add(Value&& value) {
    place() = ParsedJson(std::forward<Value>(value));
    return true;
  }
  bool open(ParsedJson&& empty) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      throw Error::input(fmt::format("JSON is nested more than {} levels deep", limits_.max_depth))
          .in(source_);
    ParsedJson& here = place();
    here = std::move(empty);
    open_.push_back(&here);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // Where the next value goes. What is open does not move: only the innermost array grows.
  ParsedJson& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->get_ref<ParsedJson::array_t&>().emplace_back();
  }
  const JsonLimits& limits_;
  const std::filesystem::path& source_;
  ParsedJson root_;
  std::vector<ParsedJson*> open_;
  ParsedJson* member_ = nullptr;  // of the innermost object, behind its key
};

std::string_view type_of(const ParsedJson& value) {
  return value.type_name();
}

}  // namespace

// "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while parsing value -
// invalid literal; last read: '…'; expected end of input": the quotation may be as long as the file.
std::string_view json_error_reason(std::string_view message) {
  if (const auto bracket = message.find("] "); bracket != std::string_view::npos)
    message.remove_prefix(bracket + 2);
  if (const auto dash = message.find(" - "); dash < message.find("last read: "))
    message.remove_prefix(dash + 3);
  if (message.starts_with("parse error")) {
    if (const auto colon = message.find(": "); colon != std::string_view::npos)
      message.remove_prefix(colon + 2);
  }
  return message.substr(0, std::min(message.find("; last read: "), std::size_t{160}));
}

namespace {

// Outside strings, where no other JSON has such words. Every replacement is as long as what it replaces, so that offsets
// in messages stay those of the file.
std::string without_python_numbers(std::string_view text) {
  struct Word {
    std::string_view python, json;
  };
  constexpr Word kWords[] = {{"-Infinity", "  -1e308 "}, {"Infinity", "  1e308 "}, {"NaN", " 0 "}};
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_string && out[i] == '\\') {
      ++i;
      continue;
    }
    if (out[i] == '"') in_string = !in_string;
    if (in_string) continue;
    for (const Word& word : kWords) {
      if (std::string_view(out).substr(i).starts_with(word.python))
        out.replace(i, word.json.size(), word.json);
    }
  }
  return out;
}

}  // namespace

ParsedJson parse_json(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw Error::input(fmt::format("JSON of {} bytes; at most {} are read", text.size(), limits.max_bytes))
        .in(source);
  }
  if (text.starts_with("\xEF\xBB\xBF"))
    throw Error::input("JSON begins with a byte order mark").in(source).at(0);
  // The library takes a NUL byte for the end of its input; here it is an error like any other stray byte.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error::input("JSON holds a NUL byte").in(source).at(nul);
  }
  std::string rewritten;
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (limits.python_numbers && (has("Infinity") || has("NaN"))) {
    rewritten = without_python_numbers(text);
    text = rewritten;
  }
  Builder document(limits, source);
  ParsedJson::sax_parse(text, &document);
  return document.take();
}

ParsedJson read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_small_file(path, limits.max_bytes), path, limits);
}

std::uint64_t json_u64(const ParsedJson& value, std::string_view key, const std::filesystem::path& source) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() < 0) {
    throw Error::input(fmt::format("{} is negative", key)).in(source);
  }
  if (value.is_number_integer()) return value.get<std::uint64_t>();
  throw Error::input(fmt::format("{} is {}, not a whole number", key, type_of(value))).in(source);
}

const std::string& json_string(const ParsedJson& value, std::string_view key,
                               const std::filesystem::path& source) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  throw Error::input(fmt::format("{} is {}, not a string", key, type_of(value))).in(source);
}

}  // namespace assay
