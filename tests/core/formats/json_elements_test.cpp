#include "core/formats/json_elements.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

struct Taken {
  std::string rest;
  std::vector<std::string> elements;
  friend bool operator==(const Taken&, const Taken&) = default;
};

Taken take(std::string_view text) {
  const SplitJson split = split_array(text, "files", 8);
  Taken taken{split.rest, {}};
  if (split.end > 0) {
    for_each_object(text.substr(split.begin, split.end - split.begin), 8,
                    [&](std::string_view element) { taken.elements.emplace_back(element); });
  }
  return taken;
}

TEST(JsonElements, AreTakenOutOfTheDocument) {
  EXPECT_EQ(take(R"({"a": 1, "files": [ {"x": [1, {}]} , {}], "b": 2})"),
            (Taken{R"({"a": 1, "files": [], "b": 2})", {R"({"x": [1, {}]})", "{}"}}));
  EXPECT_EQ(take(R"({"files":[]})"), (Taken{R"({"files":[]})", {}}));
  EXPECT_EQ(take(R"({"f\u0069les":[{"]":"["}]})"), (Taken{R"({"f\u0069les":[]})", {R"({"]":"["})"}}));
}

TEST(JsonElements, ThatAreNoObjectsAreNull) {
  EXPECT_EQ(take(R"({"files":[1,-1,"x",true,null,[{}],{}]})").elements,
            (std::vector<std::string>{"null", "null", "null", "null", "null", "null", "{}"}));
}

TEST(JsonElements, OfAnotherMemberStayInTheDocument) {
  for (const std::string_view text :
       {R"({"a":{"files":[{}]}})", R"([{"files":[{}]}])", R"({"files":{"a":[1]}})", R"({"files":null})",
        R"(["files",[{}]])", R"({"files":{},"a":[{}]})", R"("files")"})
    EXPECT_EQ(take(text), (Taken{std::string(text), {}})) << text;
  EXPECT_EQ(take(R"({"files":[{}],"files":[1]})"), (Taken{R"({"files":[],"files":[1]})", {"{}"}}))
      << "the document's reader refuses a key that comes twice";
}

TEST(JsonElements, OfWhatIsNoJsonAreRefused) {
  for (const std::string_view text :
       {"", "{", R"({"files":[{]})", R"({"files":[1,]})", "{} x", R"({"files":[[[[[[[[[]]]]]]]]]})"})
    EXPECT_THROW(take(text), Error) << text;
}

}  // namespace
}  // namespace assay
