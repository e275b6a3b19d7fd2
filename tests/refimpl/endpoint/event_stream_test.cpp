#include "refimpl/endpoint/event_stream.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "refimpl/endpoint/endpoint_url.h"
#include "refimpl/endpoint/stream_chunk.h"

namespace assay {
namespace {

using Events = std::vector<std::string>;

Events events_of(std::string_view bytes, std::size_t piece) {
  EventStream stream;
  Events all;
  for (std::size_t i = 0; i < bytes.size(); i += piece) {
    for (std::string& event : stream.push(bytes.substr(i, piece))) all.push_back(std::move(event));
  }
  return all;
}

// HTML standard §9.2.6: ends of lines of three kinds, comments, fields of other names, data of several lines.
TEST(EventStream, IsReadWhereverItIsCut) {
  const std::string bytes =
      "\xEF\xBB\xBF"
      ": a comment\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:two\r\ndata: lines \xE2\x82\xAC\r\n\r\nid: "
      "7\rdata\r\rdatum: no\n\n"
      "data:  [DONE]\n\n";
  const Events expected = {"{\"a\":1}", "two\nlines \xE2\x82\xAC", "", " [DONE]"};
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(events_of(bytes, piece), expected);
}

TEST(EventStream, KnowsWhenItIsCutOff) {
  EventStream stream;
  EXPECT_TRUE(stream.push("data: {\"a\"").empty());
  EXPECT_TRUE(stream.amid_event());
  EXPECT_EQ(stream.push(":1}\n\n").size(), 1U);
  EXPECT_FALSE(stream.amid_event());
}

TEST(EventStream, IsNotWithoutEnd) {
  EventStream stream;
  const std::string much(1 << 20, 'x');
  EXPECT_THROW(for (int i = 0; i < 65; ++i) stream.push(much), Error);
}

TEST(StreamChunk, OfCompletionsAndOfChats) {
  const StreamChunk text = parse_stream_chunk(
      R"({"choices":[{"text":" a b","token_ids":[5,6],"finish_reason":null,"logprobs":{"tokens":[" a"," b"]}}]})");
  EXPECT_TRUE(text.has_choice);
  EXPECT_EQ(text.text, " a b");
  EXPECT_EQ(text.tokens, 2U);
  EXPECT_EQ(text.pieces, (Events{" a", " b"}));
  const StreamChunk chat = parse_stream_chunk(
      R"({"choices":[{"delta":{"reasoning_content":"hm","content":"ok"},"finish_reason":"stop",
          "logprobs":{"content":[{"token":"ok","bytes":[111,107]}]}}],"usage":{"prompt_tokens":3,"completion_tokens":9}})");
  EXPECT_EQ(chat.text, "hmok");
  EXPECT_EQ(chat.tokens, 1U);
  EXPECT_EQ(chat.finish_reason, "stop");
  EXPECT_EQ(chat.usage->completion_tokens, 9U);
  const StreamChunk role = parse_stream_chunk(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
  EXPECT_TRUE(role.has_choice);
  EXPECT_TRUE(role.text.empty());
  EXPECT_FALSE(role.tokens);
  EXPECT_TRUE(parse_stream_chunk(" [DONE]").done);
  EXPECT_EQ(parse_stream_chunk(R"({"error":{"message":"full"}})").error, "full");
  EXPECT_EQ(parse_stream_chunk(R"({"object":"error","message":"late"})").error, "late");
  EXPECT_FALSE(
      parse_stream_chunk(R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}})").has_choice);
}

TEST(StreamChunk, WhatIsNoneIsRefused) {
  for (const char* bad : {"", "[]", "{", "5", "\"x\""}) EXPECT_THROW(parse_stream_chunk(bad), Error) << bad;
  EXPECT_THROW(parse_stream_chunk(std::string(100'000, '[')), Error);
  EXPECT_FALSE(
      parse_stream_chunk(R"({"choices":{},"usage":{"prompt_tokens":-1,"completion_tokens":"3"}})").usage);
}

TEST(EndpointUrl, WithAndWithoutItsRoute) {
  const EndpointUrl plain = parse_endpoint_url("http://127.0.0.1:8000/");
  EXPECT_EQ(plain.origin, "http://127.0.0.1:8000");
  EXPECT_EQ(plain.base, "");
  EXPECT_FALSE(plain.kind);
  EXPECT_EQ(parse_endpoint_url("https://host/gateway/v1").base, "/gateway");
  const EndpointUrl chat = parse_endpoint_url("https://[::1]:80/x/v1/chat/completions");
  EXPECT_EQ(chat.base, "/x");
  EXPECT_EQ(chat.kind, EndpointKind::chat);
  EXPECT_EQ(parse_endpoint_url("http://h/v1/completions").kind, EndpointKind::completions);
}

TEST(EndpointUrl, WhatIsNoneIsRefused) {
  for (const char* bad :
       {"127.0.0.1:8000", "ftp://h", "http://", "http://:80", "http://h:0", "http://h:99999", "http://h:x",
        "http://u@h", "http://h/?q", "http://h/#f", "http://h /"})
    EXPECT_THROW(parse_endpoint_url(bad), Error) << bad;
}

}  // namespace
}  // namespace assay
