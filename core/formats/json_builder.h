// A document of nlohmann's library, made from the events of our reader: in a quarter of its own parser's time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/formats/json.h"
#include "core/formats/json_events.h"
#include "core/system/error.h"

namespace assay {

// Document: nlohmann::json, or ordered_json. Throws Error::input for what is no JSON, is too deep, or says a key twice
// where `limits` does not let it.
template <class Document>
class JsonBuilder {
 public:
  // All of these must outlive it.
  // `kept`: the name of members whose text is kept in place of an object (json_kept_text.h); empty: none is.
  JsonBuilder(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits,
              std::string_view kept = {})
      : text_(text), source_(source), limits_(limits), kept_(kept), reader_(text, limits.max_depth, *this) {}

  Document read() {
    reader_.read();
    return std::move(root_);
  }

  void null() { add(nullptr); }
  void boolean(bool value) { add(value); }
  void whole_number(std::uint64_t value) { add(value); }
  void other_number(double value, std::string_view text) {
    std::int64_t negative = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), negative);
    if (error == std::errc() && end == text.data() + text.size())
      add(negative);
    else
      add(value);
  }
  void string(std::string_view value) {
    if (unbuilt_ == 0) place() = std::string(value);
  }
  void start_object() {
    if (std::exchange(text_follows_, false))
      text_begins_ = reader_.position() - 1, unbuilt_ = 1;
    else if (unbuilt_ > 0)
      ++unbuilt_;
    else
      open(Document::object());
  }
  void end_object() {
    if (unbuilt_ == 0) return close_object();
    if (--unbuilt_ == 0) place() = std::string(text_.substr(text_begins_, reader_.position() - text_begins_));
  }
  void start_array() {
    text_follows_ = false;
    if (unbuilt_ == 0) open(Document::array());
  }
  void end_array() {
    if (unbuilt_ == 0) open_.pop_back();
  }
  void key(std::string_view name) {
    if (unbuilt_ > 0) return;
    text_follows_ = !kept_.empty() && name == kept_;
    auto& members = open_.back()->template get_ref<Members&>();
    if constexpr (kKeepsOrder) {
      // By the vector beneath: the ordered map looks all its keys up before it adds one.
      using Vector = typename Members::Container;
      member_ = &static_cast<Vector&>(members).emplace_back(std::string(name), nullptr).second;
    } else {
      const auto [member, is_new] = members.try_emplace(std::string(name));
      if (!is_new && !limits_.duplicate_keys) twice(name);
      member_ = &member->second;  // of a key said twice the later value counts
    }
  }
  [[noreturn]] void fail(std::string_view message) const {
    constexpr std::string_view kText = "JSON text ";
    if (message.starts_with(kText)) message.remove_prefix(kText.size());
    throw Error::input(fmt::format("is not valid JSON: {}", message)).in(source_).at(reader_.position());
  }

 private:
  using Members = typename Document::object_t;
  static constexpr bool kKeepsOrder = std::is_same_v<Document, nlohmann::ordered_json>;

  template <class Value>
  void add(Value value) {
    if (unbuilt_ == 0) place() = value;
  }
  void open(Document&& empty) {
    Document& here = place();
    here = std::move(empty);
    open_.push_back(&here);
  }
  void close_object() {
    if constexpr (kKeepsOrder) {
      std::vector<std::string_view> keys;
      for (const auto& [key, value] : open_.back()->template get_ref<Members&>()) keys.push_back(key);
      std::sort(keys.begin(), keys.end());
      if (const auto same = std::adjacent_find(keys.begin(), keys.end()); same != keys.end()) twice(*same);
    }
    open_.pop_back();
  }
  // Where the next value goes. What is open does not move: only the innermost grows.
  Document& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->template get_ref<typename Document::array_t&>().emplace_back();
  }
  [[noreturn]] void twice(std::string_view key) const {
    throw Error::input(fmt::format("JSON has the key \"{}\" twice in one object", key)).in(source_);
  }

  const std::string_view text_;
  const std::filesystem::path& source_;
  const JsonLimits& limits_;
  const std::string_view kept_;
  JsonEventReader<JsonBuilder> reader_;
  Document root_;
  std::vector<Document*> open_;
  Document* member_ = nullptr;  // of the innermost object, behind its key
  bool text_follows_ = false;   // what comes next is kept as text, if it is an object
  std::uint64_t text_begins_ = 0;
  int unbuilt_ = 0;  // objects open from the one that is kept as text
};

}  // namespace assay
