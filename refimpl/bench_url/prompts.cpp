#include "refimpl/bench_url/prompts.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/sampling/keyed_random.h"

namespace assay {
namespace {

// Blocks of traces and requests of their own: numbers of one key, which never meet.
constexpr std::uint32_t kOfBlock = 1, kOfRequest = 2;
constexpr std::uint64_t kMostOfARequest = 1ull << 32;

// Which element of the pool stands at a place of a prompt.
std::size_t drawn(const LoadPlan& plan, std::size_t index, std::size_t place, std::uint64_t seed,
                  std::size_t size) {
  const PlannedRequest& request = plan.requests[index];
  const bool shared = plan.block_tokens > 0 && place / plan.block_tokens < request.blocks.size();
  const std::uint64_t at =
      shared ? request.blocks[place / plan.block_tokens] * plan.block_tokens + place % plan.block_tokens
             : index * kMostOfARequest + place;
  const double u = keyed_uniform({.seed = seed, .sample = shared ? kOfBlock : kOfRequest}, at);
  return static_cast<std::size_t>(u * static_cast<double>(size));
}

}  // namespace

PromptSent make_prompt(const PromptPool& pool, const LoadPlan& plan, std::size_t index, std::uint64_t seed) {
  const std::size_t wanted = plan.requests[index].prompt_tokens;
  if (!pool.ids.empty()) {
    std::vector<TokenNumber> ids;
    for (std::size_t i = 0; i < wanted; ++i)
      ids.push_back(pool.ids[drawn(plan, index, i, seed, pool.ids.size())]);
    return ids;
  }
  std::string text = pool.first_word;
  for (std::size_t i = pool.overhead; i < wanted; ++i)
    text += " " + pool.words[drawn(plan, index, i, seed, pool.words.size())];
  return text;
}

void check_prompts(const PromptPool& pool, const LoadPlan& plan) {
  if (!pool.ids.empty()) return;
  for (const PlannedRequest& request : plan.requests)
    if (request.prompt_tokens < pool.overhead)
      throw Error::usage(
          fmt::format("a prompt of {} tokens: what the server puts around a text are {} already",
                      request.prompt_tokens, pool.overhead));
}

}  // namespace assay
