// Streams that vLLM, SGLang and llama-server really sent (data/record_engines.py), as `assay bench` counts them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "refimpl/bench_url/answer_stream.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

constexpr std::size_t kTokensAsked = 6, kPromptTokens = 6;

std::vector<nlohmann::json> recorded_streams(const char* name) {
  std::vector<nlohmann::json> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() / "data/fixtures/engines")) {
    if (entry.path().extension() != ".json") continue;
    const auto recording = nlohmann::json::parse(test::read_file(entry.path()));
    if (!recording.contains("exchanges")) continue;
    for (const auto& exchange : recording["exchanges"])
      if (exchange["name"] == name) found.push_back({recording["engine"], exchange["answer"]});
  }
  return found;
}

// Cut into pieces of some bytes, as a network may.
RequestRecord record_of(const std::string& bytes, std::size_t piece) {
  RequestRecord record{.chunks = {}, .usage = {}, .finish_reason = {}, .error = {}};
  AnswerStream stream(record);
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    EXPECT_TRUE(stream.push(bytes.substr(at, piece), static_cast<double>(at))) << record.error;
  stream.finish("", static_cast<double>(bytes.size()));
  return record;
}

TEST(RecordedStreams, TokensAreThoseOfTheUsage) {
  for (const char* name : {"a stream", "a stream of a chat"}) {
    const auto streams = recorded_streams(name);
    ASSERT_GE(streams.size(), 3U);
    for (const auto& stream : streams) {
      const std::string bytes = stream[1];
      for (const std::size_t piece : {bytes.size(), std::size_t{7}}) {
        const RequestRecord record = record_of(bytes, piece);
        EXPECT_EQ(record.end, RequestEnd::whole) << stream[0] << ", " << name << ": " << record.error;
        EXPECT_EQ(record.finish_reason, "length") << stream[0];
        EXPECT_FALSE(record.pieces_differ) << stream[0] << ", " << name;
        ASSERT_TRUE(record.usage) << stream[0];
        EXPECT_EQ(record.usage->completion_tokens, kTokensAsked) << stream[0];
        if (std::string(name) == "a stream") {
          EXPECT_EQ(record.usage->prompt_tokens, kPromptTokens);
        }
        EXPECT_EQ(record.told_by_chunks(), kTokensAsked) << stream[0] << ", " << name;
      }
    }
  }
}

}  // namespace
}  // namespace assay
