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
#include "core/formats/json_apart.h"
#include "core/formats/json_events.h"
#include "core/system/error.h"

namespace assay {

// Document: nlohmann::json, or ordered_json. Throws Error::input for what is no JSON, is too deep, or says a key twice
// where `limits` does not let it.
template <class Document>
class JsonBuilder {
 public:
  // All of these must outlive it.
  // `apart`: who reads members of that name where they are objects (json_apart.h); nullptr: nobody.
  JsonBuilder(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits,
              std::string_view name_apart = {}, ApartReader* apart = nullptr)
      : text_(text),
        source_(source),
        limits_(limits),
        name_apart_(name_apart),
        apart_(apart),
        reader_(text, limits.max_depth, *this) {}

  Document read() {
    reader_.read();
    return std::move(root_);
  }

  bool python_numbers() const { return limits_.python_numbers; }
  void null() {
    if (is_apart()) return apart_->null();
    place() = nullptr;
  }
  void boolean(bool value) {
    if (is_apart()) return apart_->boolean(value);
    place() = value;
  }
  void whole_number(std::uint64_t value) {
    if (is_apart()) return apart_->whole_number(value);
    place() = value;
  }
  void other_number(double value, std::string_view text) {
    if (is_apart()) return apart_->other_number(value, text);
    std::int64_t negative = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), negative);
    if (error == std::errc() && end == text.data() + text.size())
      place() = negative;
    else
      place() = value;
  }
  void string(std::string_view value) {
    if (is_apart()) return apart_->string(value);
    place() = std::string(value);
  }
  void start_object() {
    if (!is_apart() && !std::exchange(apart_follows_, false)) return open(Document::object());
    ++open_apart_;
    apart_->start_object();
  }
  void end_object() {
    apart_follows_ = false;
    if (!is_apart()) return close_object();
    apart_->end_object();
    if (--open_apart_ > 1) return;
    object_ended_ = open_apart_ == 1;
    again_ = {};
    if (object_ended_) return;
    place() = apart_->taken();
  }
  void start_array() {
    if (is_apart()) {
      ++open_apart_;
      return apart_->start_array();
    }
    apart_follows_ = false;
    open(Document::array());
  }
  void end_array() {
    if (is_apart()) {
      --open_apart_;
      return apart_->end_array();
    }
    open_.pop_back();
  }
  void key(std::string_view name) {
    if (open_apart_ == 1) behind_key_ = reader_.position();
    if (is_apart()) return apart_->key(name);
    apart_follows_ = apart_ != nullptr && name == name_apart_;
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
  // Of an object that is read apart thousands of members may say the same.
  std::string_view repeated_value(std::string_view key) {
    if (open_apart_ != 1) return {};
    if (std::exchange(object_ended_, false)) {
      const std::size_t begin = reader_.position() - 1 - key.size();
      if (key.data() == text_.data() + begin) again_ = text_.substr(behind_key_, begin - behind_key_);
    }
    return again_;
  }
  void repeat(std::string_view key) { apart_->repeat(key); }
  [[noreturn]] void fail(const std::string& message) const {
    throw Error::input(message).in(source_).at(reader_.position());
  }

 private:
  using Members = typename Document::object_t;
  static constexpr bool kKeepsOrder = std::is_same_v<Document, nlohmann::ordered_json>;

  bool is_apart() const { return open_apart_ > 0; }
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
  const std::string_view name_apart_;
  ApartReader* const apart_;
  JsonEventReader<JsonBuilder> reader_;
  Document root_;
  std::vector<Document*> open_;
  Document* member_ = nullptr;  // of the innermost object, behind its key
  bool apart_follows_ = false;  // what comes next is read apart, if it is an object
  int open_apart_ = 0;          // objects and arrays, from the object that is read apart
  std::size_t behind_key_ = 0;  // the latest of the object that is read apart
  bool object_ended_ = false;   // the value of that key, just now
  std::string_view again_;      // from behind such a key, over its value, an object, to where the next begins
};

}  // namespace assay
