// The claims hold, and each planted fault brings down the claim that is to show it.
#include "refimpl/claims/rank_claims.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "refimpl/ranks/rank_group.h"
#include "refimpl/ranks/thread_transport.h"
#include "tests/refimpl/ranks/ranked.h"
#include "tests/support/support.h"

namespace assay {
namespace {

RankClaimRequest claim_request(const std::string& model, const RankGrid& grid, Precision precision) {
  RankClaimRequest request;
  request.path = test::model_folder(model);
  request.settings.grid = grid;
  request.settings.arithmetic = {precision};
  request.tokens = test::rank_texts(2).back();
  return request;
}

void expect_all_hold(const RankClaimRequest& request) {
  const RankVerdict verdict = rank_claims(request);
  EXPECT_GE(verdict.claims.size(), 3U);
  for (const Claim& claim : verdict.claims)
    EXPECT_TRUE(claim.holds()) << claim.statement << ": " << claim.error << " of " << claim.budget << ", "
                               << claim.measure;
  EXPECT_EQ(verdict.first_divergence, "");
}

TEST(RankClaims, HoldInEveryPrecision) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f64}) {
    expect_all_hold(claim_request("mistral", {.tp = 4, .pp = 2}, precision));
    expect_all_hold(claim_request("deepseek-v3", {.tp = 2, .ep = 4, .dp = 2}, precision));
  }
  expect_all_hold(claim_request("qwen3-next", {.tp = 2}, Precision::f32));
  expect_all_hold(claim_request("olmo2", {.tp = 4}, Precision::bf16));
  // What passes between stages beside the stream: keys that a layer before the border chose; several streams.
  expect_all_hold(claim_request("glm-moe-dsa", {.pp = 3}, Precision::bf16));
  expect_all_hold(claim_request("deepseek-v4", {.pp = 2, .dp = 2}, Precision::f32));
}

// Fused matrices lie in parts there, blocks of codes are cut at their borders or decoded.
TEST(RankClaims, HoldForGguf) {
  for (const char* model : {"deepseek-v3", "gpt-oss", "gpt2", "llama", "mixtral", "phi3", "qwen3-moe"}) {
    RankClaimRequest request = claim_request(model, {.tp = 2}, Precision::f32);
    request.path /= "gguf/model.gguf";
    expect_all_hold(request);
  }
}

std::string seen_of(const RankClaimRequest& request, int number) {
  for (const RankFaultVerdict& verdict : plant_rank_faults(request)) {
    if (verdict.planted->number != number) continue;
    EXPECT_TRUE(verdict.applies) << number;
    EXPECT_TRUE(verdict.caught) << number << ": " << verdict.planted->what;
    return verdict.by;
  }
  return "no such fault";
}

TEST(RankFaults, RepeatedHeadsCountedAsLocalTimesTp) {
  const std::string by = seen_of(claim_request("mistral", {.tp = 4}, Precision::f32), 42);
  EXPECT_NE(by.find("layers.0.k_proj at rank 1"), std::string::npos) << by;
}

TEST(RankFaults, LayersOfAStageCountedFromTheWrongOne) {
  const std::string by = seen_of(claim_request("deepseek-v2", {.pp = 2}, Precision::f32), 45);
  EXPECT_NE(by.find("layers.2."), std::string::npos) << by;
  EXPECT_NE(by.find("rank 1"), std::string::npos) << by;
}

TEST(RankFaults, SumsInAnotherOrderFromRunToRun) {
  seen_of(claim_request("mistral", {.tp = 4}, Precision::f32), 50);
}

TEST(RankFaults, AnIdleCopyThatStaysAway) {
  const std::string by = seen_of(claim_request("mixtral", {.ep = 2, .dp = 2}, Precision::f32), 51);
  EXPECT_NE(by.find("waited"), std::string::npos) << by;
  EXPECT_NE(by.find("for rank 1"), std::string::npos) << by;
}

// ---- groups

TEST(RankGroups, ACallLeftOutIsToldByTheNext) {
  const auto body = [](Transport& transport) {
    RankGroup group(transport, {0, 1}, 1);
    std::vector<double> one = {1};
    if (transport.rank() == 0) group.all_gather(one);
    group.broadcast(0, one);
  };
  try {
    run_on_threads(2, std::chrono::milliseconds(2'000), body);
    FAIL() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("at another call"), std::string::npos) << error.message();
  }
}

TEST(RankGroups, WhoWaitsInVainSaysForWhom) {
  try {
    run_on_threads(3, std::chrono::milliseconds(100), [](Transport& transport) {
      if (transport.rank() == 1) transport.receive(2, 1);
    });
    FAIL() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("rank 1 waited 100 ms for rank 2"), std::string::npos) << error.message();
  }
}

TEST(RankGroups, WhatOneThrewIsThrown) {
  EXPECT_THROW(run_on_threads(3, std::chrono::milliseconds(10'000),
                              [](Transport& transport) {
                                if (transport.rank() == 1) throw Error::usage("no");
                                transport.receive(1, 1);
                              }),
               Error);
}

// ---- what is refused

void expect_refused(const std::string& model, const RankGrid& grid, const std::string& words) {
  try {
    test::ranked(model, Precision::f32, grid, 1);
    FAIL() << model << " " << grid.text();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
  }
}

TEST(RankRefusals, AreOneLineWithTheReason) {
  expect_refused("mistral", {.tp = 3}, "mistral cannot be cut into tp=3");
  expect_refused("mistral", {.pp = 3}, "2 layers over 3 stages");
  expect_refused("mistral", {.ep = 2, .dp = 2}, "a model without experts has none to deal out");
  expect_refused("deepseek-v4", {.tp = 4}, "attention heads (6) must be divisible");
}

}  // namespace
}  // namespace assay
