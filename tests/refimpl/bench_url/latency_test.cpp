// Figures out of records whose times are known, and what does not fit together. No clock is asked.
#include "refimpl/bench_url/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "refimpl/bench_url/answer_stream.h"
#include "refimpl/bench_url/identities.h"

namespace assay {
namespace {

// Sent at 1 s; a chunk of 1 token at 1.5, of 3 at 2.1, of 1 at 2.2; over at 2.25.
RequestRecord three_chunks(std::size_t index = 0, double later = 0) {
  return {.index = index,
          .due = 1 + later,
          .sent = 1 + later,
          .ended = 2.25 + later,
          .chunks = {{1.5 + later, 1}, {2.1 + later, 3}, {2.2 + later, 1}},
          .prompt_wanted = 7,
          .output_wanted = 5,
          .usage = UsageTold{7, 5},
          .finish_reason = "length",
          .end = RequestEnd::whole,
          .error = {}};
}

LoadRecords two_requests() {
  LoadRecords load;
  load.requests = {three_chunks(), three_chunks(1, 0.5)};
  load.changes = {{1, 1}, {1.5, 1}, {2.25, -1}, {2.75, -1}};
  load.planned = 2;
  load.concurrency = 2;
  return load;
}

TEST(Latency, OfEachKindAsItIsDefined) {
  const RequestLatency l = latency_of(three_chunks());
  EXPECT_DOUBLE_EQ(l.first_token, 0.5);
  EXPECT_DOUBLE_EQ(l.whole, 1.2);
  EXPECT_EQ(l.tokens, 5U);
  EXPECT_DOUBLE_EQ(*l.per_token, 0.7 / 4);
  ASSERT_EQ(l.chunk_gaps.size(), 2U);
  EXPECT_NEAR(l.chunk_gaps[0], 0.6, 1e-12);
  EXPECT_NEAR(l.chunk_gaps[1], 0.1, 1e-12);
  ASSERT_TRUE(l.token_gaps);
  ASSERT_EQ(l.token_gaps->size(), 4U);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR((*l.token_gaps)[i], 0.2, 1e-12);
  EXPECT_NEAR((*l.token_gaps)[3], 0.1, 1e-12);
}

TEST(Latency, OfTokensIsNotKnownWhereNobodyCountsThem) {
  RequestRecord record = three_chunks();
  record.chunks[1].tokens.reset();
  EXPECT_FALSE(latency_of(record).token_gaps);
  record.usage = UsageTold{7, 3};  // as many as chunks
  for (ChunkArrival& chunk : record.chunks) chunk.tokens.reset();
  EXPECT_EQ(latency_of(record).token_gaps->size(), 2U);
}

TEST(Latency, FiguresOfALoad) {
  const LoadRecords load = two_requests();
  const LoadFigures f = figures_of(load, latencies_of(load), {.first_token_ms = 499});
  EXPECT_DOUBLE_EQ(f.seconds, 1.75);
  EXPECT_DOUBLE_EQ(f.output_per_second, 10 / 1.75);
  EXPECT_DOUBLE_EQ(f.concurrency, 2 * 1.25 / 1.75);
  EXPECT_DOUBLE_EQ(f.e2e_concurrency, 2 * 1.2 / 1.75);
  EXPECT_EQ(f.most_in_flight, 2U);
  EXPECT_EQ(f.in_time, 0U);
  EXPECT_EQ(figures_of(load, latencies_of(load), {.first_token_ms = 501, .gap_ms = 601}).in_time, 2U);
  EXPECT_EQ(figures_of(load, latencies_of(load), {.gap_ms = 599}).in_time, 0U);
  EXPECT_EQ(figures_of(load, latencies_of(load), {.token_ms = 174}).in_time, 0U);
}

std::vector<std::string> untrue(const LoadRecords& load, const std::vector<RequestLatency>& latencies,
                                const LoadFigures& f) {
  std::vector<std::string> names;
  for (const Identity& identity : check_identities(load, latencies, f))
    if (!identity.holds) names.push_back(identity.name);
  return names;
}
std::vector<std::string> untrue(const LoadRecords& load) {
  const auto latencies = latencies_of(load);
  return untrue(load, latencies, figures_of(load, latencies, {}));
}

using Names = std::vector<std::string>;

TEST(Identities, HoldOfWhatIsRight) {
  EXPECT_EQ(untrue(two_requests()), Names{});
}

// 52 of serving.md (vllm#7242): the first token's wait among the gaps.
TEST(Identities, AFirstTokenCountedAsAGap) {
  const LoadRecords load = two_requests();
  auto latencies = latencies_of(load);
  latencies[0].chunk_gaps.push_back(latencies[0].first_token);
  EXPECT_EQ(untrue(load, latencies, figures_of(load, latencies, {})), Names{"ΣITL = E2E − TTFT"});
}

// 53 (sglang#12064, vllm#42661): gaps between chunks given as those between tokens.
TEST(Identities, GapsOfChunksToldAsThoseOfTokens) {
  const LoadRecords load = two_requests();
  auto latencies = latencies_of(load);
  latencies[1].token_gaps = latencies[1].chunk_gaps;
  EXPECT_EQ(untrue(load, latencies, figures_of(load, latencies, {})), Names{"mean ITL a token = TPOT"});
}

// 54 (vllm#15106): a chunk that names the role bears no token.
TEST(Identities, ARoleIsNoFirstToken) {
  RequestRecord record{.sent = 0, .chunks = {}, .usage = {}, .finish_reason = {}, .error = {}};
  AnswerStream stream(record);
  stream.push("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n", 0.1);
  stream.push("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", 0.9);
  stream.push("data: [DONE]\n\n", 1.0);
  stream.finish("", 1.1);
  ASSERT_EQ(record.chunks.size(), 1U);
  EXPECT_DOUBLE_EQ(latency_of(record).first_token, 0.9);
}

// 55 (sglang#39260, #30188): logprobs of other tokens than came.
TEST(Identities, LogprobsOfOtherTokens) {
  const auto differs = [](const char* second) {
    RequestRecord record{.chunks = {}, .usage = {}, .finish_reason = {}, .error = {}};
    AnswerStream stream(record);
    stream.push(R"(data: {"choices":[{"text":" a b","logprobs":{"tokens":[" a"," b"]}}]})"
                "\n\n",
                0.1);
    stream.push(std::string("data: ") + second + "\n\ndata: [DONE]\n\n", 0.2);
    stream.finish("", 0.3);
    EXPECT_EQ(record.end, RequestEnd::whole);
    return record.pieces_differ;
  };
  EXPECT_FALSE(differs(R"({"choices":[{"text":" c","logprobs":{"tokens":[" c"]}}]})"));
  EXPECT_TRUE(
      differs(R"({"choices":[{"text":" c","logprobs":{"tokens":[" a"]}}]})"));      // the first ones again
  EXPECT_TRUE(differs(R"({"choices":[{"text":" c","logprobs":{"tokens":[]}}]})"));  // sliced away
  EXPECT_FALSE(differs(R"({"choices":[{"text":" c","logprobs":{"tokens":["<|end|>"," c","<|end|>"]}}]})"));
  EXPECT_FALSE(differs(R"({"choices":[{"text":" c","logprobs":{"tokens":[" cut"]}}]})"));  // by a stop string
  LoadRecords load = two_requests();
  load.requests[0].pieces_differ = true;
  EXPECT_EQ(untrue(load), Names{"tokens that logprobs name = text that came"});
}

// 56 (vllm#56101, sglang#39826): usage counts what was thrown away.
TEST(Identities, UsageBeyondWhatCame) {
  LoadRecords load = two_requests();
  load.requests[0].usage = UsageTold{7, 6};
  EXPECT_EQ(untrue(load).front(), "mean ITL a token = TPOT");
  EXPECT_EQ(untrue(load).at(1), "usage = tokens that came");
  EXPECT_EQ(untrue(load).at(2), "tokens ≤ max_tokens; = where it ended by length");
}

// 57 (inference-perf#649): the server counts other tokens than the prompt was made of.
// A context of 10 tokens, of which prompts took 7 and 8.
TEST(Identities, AnswersThatEndAtTheContext) {
  const Names untold = {"tokens ≤ max_tokens; = where it ended by length"};
  LoadRecords load = two_requests();
  const auto end_after = [&](std::size_t which, std::size_t prompt, std::size_t made) {
    RequestRecord& r = load.requests[which];
    r.prompt_wanted = prompt;
    r.usage = UsageTold{prompt, made};
    r.chunks.resize(2);
    r.chunks[1].tokens = made - 1;
  };
  const auto at_context = [&] { return figures_of(load, latencies_of(load), {}).at_context; };
  end_after(0, 7, 3);
  EXPECT_EQ(untrue(load), untold);  // of one length, which may be any fault
  load.context = 10;
  EXPECT_TRUE(untrue(load).empty());
  EXPECT_EQ(at_context(), 1U);
  load.context = 11;  // the last token is not made by every server
  EXPECT_TRUE(untrue(load).empty());
  for (const std::size_t other : {9U, 12U, 4096U}) {
    load.context = other;
    EXPECT_EQ(untrue(load), untold) << other;
    EXPECT_EQ(at_context(), 0U);
  }
  load.context.reset();
  load.requests[1].output_wanted = 2;  // ends as asked, after 9
  end_after(1, 7, 2);
  end_after(0, 7, 3);
  EXPECT_EQ(untrue(load), untold);
  load.requests[1].output_wanted = 5;
  end_after(1, 8, 2);
  EXPECT_TRUE(untrue(load).empty());
  EXPECT_EQ(at_context(), 2U);
  end_after(1, 8, 3);  // another end
  EXPECT_EQ(untrue(load), untold);
  end_after(1, 8, 2);
  RequestRecord longer = three_chunks(2, 0.5);  // 12 tokens: no context of 10
  load.requests.push_back(longer);
  load.changes.insert(load.changes.begin() + 2, {1.5, 1});
  load.changes.push_back({2.75, -1});
  load.concurrency = 3;
  EXPECT_EQ(untrue(load), untold);
}

TEST(Identities, PromptsThatBecameOthers) {
  LoadRecords load = two_requests();
  load.requests[1].usage = UsageTold{8, 5};
  EXPECT_EQ(untrue(load), Names{"prompt tokens = those asked"});
}

TEST(Identities, RequestsThatWereLost) {
  LoadRecords load = two_requests();
  load.requests.pop_back();
  EXPECT_EQ(untrue(load).front(), "requests sent = whole + failed + cut off");
  LoadRecords crowded = two_requests();
  crowded.concurrency = 1;
  EXPECT_EQ(untrue(crowded), Names{"in flight ≤ concurrency asked"});
  LoadRecords late = two_requests();
  late.changes[2].at = 2.0;
  const auto names = untrue(late);
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0], "mean concurrency = Σ(end − sent) / duration");
}

// Three published tables of answers of 200 tokens: their mean ITL is not (E2E − TTFT) / 199, but that of chunks, of which there
// are 198.1 to 198.5 gaps for 199 of tokens.
TEST(PublishedTables, TellGapsOfChunksAndNotOfTokens) {
  for (const auto& [itl, tpot, chunks] :
       {std::tuple{232.35, 231.33, 198.1}, {182.87, 182.41, 198.5}, {239.84, 239.10, 198.4}}) {
    const double writing = tpot * 199;
    EXPECT_NEAR(writing / itl, chunks, 0.06);
    // A request of that shape: as many chunks as that, one of which bears two tokens.
    RequestRecord record = three_chunks();
    record.chunks.clear();
    for (int i = 0; i < 199; ++i) record.chunks.push_back({2 + i * writing / 198, i == 7 ? 2U : 1U});
    record.usage = UsageTold{7, 200};
    const RequestLatency l = latency_of(record);
    EXPECT_NEAR(*l.per_token, tpot, 1e-9 * tpot);
    EXPECT_EQ(l.token_gaps->size(), 199U);
    EXPECT_GT(spread_of(l.chunk_gaps).mean, tpot);
  }
}

// Tables that SGLang's bench_serving printed: requests, tokens they made, duration, concurrency, means of E2E, TTFT and ITL
// (the FA4 pull request sgl-project/sglang#9428; the cookbook's page of DeepSeek-OCR). Little's law holds of both, to the digits
// given; ΣITL = E2E − TTFT holds of the second alone: the first one's gaps are of chunks, fewer than tokens.
struct PublishedTable {
  std::size_t requests, tokens;
  double seconds, concurrency, e2e, ttft, itl;
  bool gaps_of_tokens;
};

TEST(PublishedTables, ObeyLittlesLaw) {
  for (const PublishedTable& t : {PublishedTable{64, 101, 15.30, 49.12, 11746.39, 7252.11, 8132.74, false},
                                  PublishedTable{10, 2784, 4.45, 1.00, 443.32, 21.59, 1.52, true}}) {
    // Requests of those means, which lie in the table's time.
    LoadRecords load;
    for (std::size_t i = 0; i < t.requests; ++i) {
      const double sent =
          (t.seconds - t.e2e / 1000) * static_cast<double>(i) / static_cast<double>(t.requests - 1);
      const std::size_t made = t.tokens / t.requests + (i < t.tokens % t.requests ? 1 : 0);
      RequestRecord r{.index = i,
                      .due = sent,
                      .sent = sent,
                      .ended = sent + t.e2e / 1000,
                      .chunks = {{sent + t.ttft / 1000, 1}, {sent + t.e2e / 1000, made - 1}},
                      .prompt_wanted = 1,
                      .output_wanted = made,
                      .usage = UsageTold{1, made},
                      .finish_reason = "length",
                      .end = RequestEnd::whole,
                      .error = {}};
      load.requests.push_back(std::move(r));
      load.changes.push_back({sent, 1});
      load.changes.push_back({sent + t.e2e / 1000, -1});
    }
    std::sort(load.changes.begin(), load.changes.end(),
              [](const auto& a, const auto& b) { return a.at < b.at; });
    const LoadFigures f = figures_of(load, latencies_of(load), {});
    const double digits =
        0.005 / t.seconds * t.concurrency + 0.005;  // of the duration, and of the concurrency
    EXPECT_NEAR(f.e2e_concurrency, t.concurrency, digits);
    EXPECT_NEAR(f.concurrency, t.concurrency, digits);
    const double writing = (t.e2e - t.ttft) * static_cast<double>(t.requests);
    const double of_tokens = writing / static_cast<double>(t.tokens - t.requests);
    EXPECT_EQ(std::abs(of_tokens - t.itl) < 0.005, t.gaps_of_tokens) << of_tokens;
  }
}

}  // namespace
}  // namespace assay
