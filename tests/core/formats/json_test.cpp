#include "core/formats/json.h"

#include "core/formats/json_apart.h"
#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "config.json", limits);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitBadInput) << error.line();
    EXPECT_EQ(error.file(), "config.json");
    return error.line();
  }
}

TEST(Json, ReadsWhatRfc8259Allows) {
  const ParsedJson value =
      parse_json(" {\"a\": [1, -2, 2.5e3, true, null, \"\\u00e9\\ud83d\\ude00\"]}\r\n", "x");
  EXPECT_EQ(value["a"][0].get<int>(), 1);
  EXPECT_EQ(value["a"][2].get<double>(), 2500);
  EXPECT_EQ(value["a"][5].get<std::string>(), "é😀");
  EXPECT_EQ(parse_json("18446744073709551615", "x").get<std::uint64_t>(), UINT64_MAX);
}

// What is read is what nlohmann's own parser reads, type by type.
void expect_as_the_library(const std::string& text) {
  const ParsedJson ours = parse_json(text, "x"), theirs = ParsedJson::parse(text);
  EXPECT_EQ(ours, theirs) << text;
  EXPECT_EQ(ours.type(), theirs.type()) << text;
  EXPECT_EQ(ours.dump(), theirs.dump()) << text;
}

TEST(Json, NumbersAreTheLibrarys) {
  for (const char* number : {"0",
                             "-0",
                             "-1",
                             "9223372036854775807",
                             "9223372036854775808",
                             "-9223372036854775808",
                             "-9223372036854775809",
                             "18446744073709551615",
                             "18446744073709551616",
                             "-0.0",
                             "0.1",
                             "1E5",
                             "1e+2",
                             "123456789012345678901234567890",
                             "1e-400",
                             "-1e-400",
                             "5e-324",
                             "2.2250738585072011e-308",
                             "1.7976931348623157e308",
                             "0.30000000000000004",
                             "9007199254740993.0",
                             "8192.0"})
    expect_as_the_library(number);
}

// Strings are skipped eight bytes at a time: each special character at each place of a word, and just behind one.
TEST(Json, StringsAreTheLibrarysWhereverTheyStop) {
  for (const std::string_view special :
       {"", "\\\"", "\\\\", "\\n", "\\u00e9", "é", "😀", " ", "\x7f", "!", "#", "]", "["}) {
    for (std::size_t before = 0; before < 18; ++before) {
      for (std::size_t after = 0; after < 18; ++after) {
        const std::string text = std::string(before, 'a') + std::string(special) + std::string(after, 'z');
        expect_as_the_library("{\"" + text + "\":[\"" + text + "\", 1]}");
      }
    }
  }
  for (std::size_t before = 0; before < 18; ++before) {
    const std::string start = "[\"" + std::string(before, 'a');
    for (const std::string_view bad : {"\x1f", "\n", "\xff", "\xc3", "\\x", "\\u12"}) {
      EXPECT_NE(refusal(start + std::string(bad) + std::string(9, 'z') + "\"]"), "") << before << bad;
    }
    EXPECT_NE(refusal(start), "");
  }
}

// Its events, a letter each.
class EventLetters final : public ApartReader {
 public:
  void null() override { events_ += 'n'; }
  void boolean(bool value) override { events_ += value ? 't' : 'f'; }
  void whole_number(std::uint64_t value) override { events_ += std::to_string(value); }
  void other_number(double, std::string_view text) override { events_ += text; }
  void string(std::string_view value) override { events_ += '"' + std::string(value); }
  void key(std::string_view name) override { events_ += std::string(name) + ':'; }
  void start_object() override { events_ += '{'; }
  void end_object() override { events_ += '}'; }
  void start_array() override { events_ += '['; }
  void end_array() override { events_ += ']'; }
  void repeat(std::string_view key) override { events_ += std::string(key) + '='; }
  std::string taken() override { return std::exchange(events_, ""); }

 private:
  std::string events_;
};

TEST(Json, AMemberMayBeReadApart) {
  EventLetters apart;
  const ParsedJson value =
      parse_json_apart("layers", apart,
                       R"({"layers": { "a": {"layers": [1, {"b": {}}, null, true, -2.5, "s"]} }, "y": 1,
          "x": [{"layers": {}}, {"layers": [{"c": 2}]}, {"layers": 3}, {"d": {"e": false}}]})",
                       "x");
  EXPECT_EQ(value["layers"], R"({a:{layers:[1{b:{}}nt-2.5"s]}})");
  EXPECT_EQ(value["y"], 1);
  EXPECT_EQ(value["x"][0]["layers"], "{}");
  EXPECT_EQ(value["x"][1]["layers"][0]["c"], 2);
  EXPECT_EQ(value["x"][2]["layers"], 3);
  EXPECT_EQ(value["x"][3]["d"]["e"], false);
  EXPECT_EQ(parse_json(R"({"layers": {"a": 1}})", "x")["layers"]["a"], 1);
  for (const std::string_view bad :
       {R"({"layers": {"a": ]}})", R"({"layers": {"a": 1})", R"({"layers": {"a": 1}]})"})
    EXPECT_THROW(parse_json_apart("layers", apart, bad, "x"), Error) << bad;
}

// Of the object itself only, byte for byte up to where the next key begins, and of objects only.
TEST(Json, WhatAMemberSaysAgainIsToldSo) {
  EventLetters apart;
  const auto events = [&](const std::string& members) {
    return parse_json_apart("l", apart, "{\"l\": {" + members + R"(, "z": 9}})", "x")["l"].get<std::string>();
  };
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": {"q": 1}, "c": {"q": 1})"), "{a:{q:1}b=c=z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": {"q":1}, "c": {"q":1}, "d": {"q": 1})"),
            "{a:{q:1}b:{q:1}c=d:{q:1}z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": {"q": 2}, "c": {"q": 1}, "d": {"q": 2}, "e": {"q": 2})"),
            "{a:{q:1}b:{q:2}c:{q:1}d:{q:2}e=z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": {"q": 1},  "c": {"q": 1}, "d": {"q": 1})"),
            "{a:{q:1}b:{q:1}c:{q:1}d=z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": [{"q": 2}], "c": [{"q": 2}], "d": {"q": 1})"),
            "{a:{q:1}b:[{q:2}]c:[{q:2}]d=z:9}");
  EXPECT_EQ(events(R"("a": {"q": {"r": 1}, "s": {"r": 1}}, "q": {"r": 1}, "b": 5, "c": {"r": 1})"),
            "{a:{q:{r:1}s:{r:1}}q:{r:1}b:5c=z:9}");
  // What stands before a key with an escape is not known to repeat; its own value may.
  EXPECT_EQ(events(R"("a": {"q": 1}, "\u0062": {"q": 1}, "\u0063": {"q": 1}, "d": {"q": 1}, "e": {"q": 1})"),
            "{a:{q:1}b:{q:1}c:{q:1}d=e=z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1}, "b": {"q": 1}, "\u0063": {"q": 1})"), "{a:{q:1}b=c=z:9}");
  EXPECT_EQ(events(R"("a": {"q": 1})"), "{a:{q:1}z:9}");  // nothing of the object before
  for (const char* bad : {R"("a": {}, "b": {}x)", R"("a": {}, "b": {})", R"("a": {}, "b": {},)"})
    EXPECT_THROW(parse_json_apart("l", apart, std::string("{\"l\": {") + bad, "x"), Error) << bad;
}

TEST(Json, PythonsNumbersAreReadWhereTheyStand) {
  const ParsedJson read = parse_json("[NaN, -Infinity ,Infinity]", "x", kPythonJson);
  EXPECT_EQ(read, ParsedJson::parse("[0, -1e308, 1e308]"));
  for (const char* bad :
       {"[Nan]", "[-NaN]", "[Infinit", "[-Infinit", "[-", "[+Infinity]", "[NaNN]", "[N", "[-Inf]"})
    EXPECT_THROW(parse_json(bad, "x", kPythonJson), Error) << bad;
}

TEST(Json, RefusesWhatRfc8259DoesNot) {
  for (const std::string_view bad : {"",
                                     " ",
                                     "{",
                                     "[1,]",
                                     "{\"a\":1,}",
                                     "nul",
                                     "01",
                                     "+1",
                                     ".5",
                                     "1.",
                                     "NaN",
                                     "Infinity",
                                     "'a'",
                                     "\"\t\"",
                                     "\"\\x\"",
                                     "\"\\ud800\"",
                                     "\"\\udc00\\ud800\"",
                                     "\"\xFF\"",
                                     "\"\xED\xA0\x80\"",
                                     "\xEF\xBB\xBF{}",
                                     "{} {}",
                                     "// c\n1",
                                     "/* */1",
                                     "1e999",
                                     "{1:2}",
                                     "[1 2]"}) {
    EXPECT_NE(refusal(bad), "") << bad;
  }
  EXPECT_NE(refusal(std::string_view("{}\0", 3)), "");
}

TEST(Json, ErrorsNameTheByte) {
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "config.json: byte 6: JSON text has an unexpected character",
                      refusal("{\"a\": x}"));
}

TEST(Json, KeysTwiceAreRefused) {
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "the key \"a\" twice", refusal(R"({"a": 1, "b": 2, "a": 3})"));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "the key \"a\" twice",
                      refusal(R"({"x": [{"a": 1, "\u0061": 2}]})"));
  EXPECT_EQ(refusal(R"([{"a": 1}, {"a": 2}])"), "");
  EXPECT_EQ(refusal(R"({"a": {"a": {"a": 1}}})"), "");
  JsonLimits lenient;
  lenient.duplicate_keys = true;
  EXPECT_EQ(parse_json(R"({"a": 1, "a": 3})", "x", lenient)["a"].get<int>(), 3);
}

TEST(Json, DepthAndSizeAreBounded) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "more than 64 levels", refusal(nested(65)));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "more than 64 levels", refusal(std::string(10'000'000, '[')));
  JsonLimits small;
  small.max_bytes = 4;
  EXPECT_EQ(refusal("[12]", small), "");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "at most 4 are read", refusal("[123]", small));
}

TEST(Json, TypedAccessNamesTheKey) {
  const auto line = [](const char* text) -> std::string {
    try {
      return std::to_string(json_u64(parse_json(text, "c"), "hidden_size", "config.json"));
    } catch (const Error& error) {
      return error.line();
    }
  };
  EXPECT_EQ(line("7168"), "7168");
  EXPECT_EQ(line("-1"), "config.json: hidden_size is negative");
  EXPECT_EQ(line("\"7168\""), "config.json: hidden_size is string, not a whole number");
  EXPECT_NE(line("7168.0").find("not a whole number"), std::string::npos);
  EXPECT_EQ(json_string(parse_json("\"llama\"", "c"), "model_type", "c"), "llama");
  EXPECT_THROW(json_string(parse_json("1", "c"), "model_type", "c"), Error);
}

}  // namespace
}  // namespace assay
