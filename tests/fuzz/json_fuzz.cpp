#include "core/formats/json.h"

#include <utility>

#include "core/formats/json_apart.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

constexpr std::string_view kApart = "a";

// What it is told of an object, as JSON again.
class Rewritten final : public ApartReader {
 public:
  void null() override { value("null"); }
  void boolean(bool said) override { value(said ? "true" : "false"); }
  void whole_number(std::uint64_t said) override { value(std::to_string(said)); }
  void other_number(double, std::string_view text) override { value(text); }
  void string(std::string_view said) override { value(ParsedJson(said).dump()); }
  void key(std::string_view name) override {
    value(ParsedJson(name).dump());
    text_ += ':';
    follows_ = false;
    if (depth_ == 1) behind_key_ = text_.size();
  }
  void start_object() override { start('{'); }
  void end_object() override {
    end('}');
    if (depth_ == 1) last_ = text_.substr(behind_key_);
  }
  void start_array() override { start('['); }
  void end_array() override { end(']'); }
  void repeat(std::string_view name) override {
    key(name);
    text_ += last_;
    follows_ = true;
  }
  std::string taken() override {
    follows_ = false;
    return std::exchange(text_, "");
  }

 private:
  void value(std::string_view text) {
    if (follows_) text_ += ',';
    text_ += text;
    follows_ = true;
  }
  void start(char bracket) {
    value(std::string_view(&bracket, 1));
    follows_ = false;
    ++depth_;
  }
  void end(char bracket) {
    text_ += bracket;
    follows_ = true;
    --depth_;
  }

  std::string text_, last_;
  std::size_t behind_key_ = 0;
  int depth_ = 0;
  bool follows_ = false;  // something stands before, in the same object or array
};

// Whether `apart` is `whole`, but for objects of that name, which are texts there.
bool is_the_same(const ParsedJson& whole, const ParsedJson& apart) {
  if (!whole.is_structured()) return whole == apart;
  if (whole.type() != apart.type() || whole.size() != apart.size()) return false;
  auto other = apart.begin();
  for (auto member = whole.begin(); member != whole.end(); ++member, ++other) {
    const bool named = whole.is_object() && member.key() == kApart && member->is_object();
    if (whole.is_object() && member.key() != other.key()) return false;
    if (named ? ParsedJson::parse(other->get<std::string>()) != *member : !is_the_same(*member, *other))
      return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto read = [](std::string_view json, bool duplicates) {
    return fuzz::accepted([&] { return parse_json(json, "fuzz.json", {1 << 20, 64, duplicates}); });
  };
  const auto value = read(text, false);
  const auto lenient = read(text, true);
  Rewritten rewritten;
  const auto apart = fuzz::accepted([&] {
    return parse_json_apart(kApart, rewritten, text, "fuzz.json", {1 << 20, 64, false});
  });
  if (!value) return 0;
  fuzz::require(lenient && *lenient == *value, "what has no key twice reads alike either way");
  fuzz::require(apart && is_the_same(*value, *apart), "what is read apart is what is read whole");
  fuzz::require(*value == ParsedJson::parse(text), "what is read is what nlohmann's parser reads");
  const auto again = read(value->dump(), false);
  fuzz::require(again && *again == *value, "what was read can be written and read");
  return 0;
}
