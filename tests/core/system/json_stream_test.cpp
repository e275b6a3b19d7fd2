#include "core/system/json_stream.h"
#include "core/system/json.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(JsonStream, WritesWhatADocumentOfItAllWouldBe) {
  for (const std::size_t count : {0u, 1u, 3u, 5000u}) {
    const auto element = [](std::size_t i) {
      return Json{{"name", "line\nbreak \xFF " + std::to_string(i)},
                  {"files", Json::array()},
                  {"inner", {{"deep", {1, 2}}, {"files", Json::array()}}}};
    };
    Json document = {{"head", {{"files", Json::array()}}},
                     {"text", "\n  \"files\": []"},
                     {"files", Json::array()},
                     {"tail", {1, 2, 3}}};
    std::string streamed;
    stream_json(document, "files", count, element, [&](std::string_view text) { streamed += text; });
    for (std::size_t i = 0; i < count; ++i) document["files"].push_back(element(i));
    EXPECT_EQ(streamed, dump_json(document) + "\n") << count;
  }
}

TEST(JsonStream, WritesElementsThatAreNoObjects) {
  Json document = {{"files", Json::array()}};
  std::string streamed;
  stream_json(
      document, "files", 2, [](std::size_t i) { return i == 0 ? Json() : Json::object(); },
      [&](std::string_view text) { streamed += text; });
  EXPECT_EQ(streamed, "{\n  \"files\": [\n    null,\n    {}\n  ]\n}\n");
}

}  // namespace
}  // namespace assay
