// Rows that are rounded one by one may be anybody's: texts that are served with int8 share blocks, are preempted and guessed
// ahead, and say what each says alone with the same cache.
#include <gtest/gtest.h>

#include <cmath>

#include "core/system/error.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/engine/serving.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/speculation/lookup_drafter.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

struct MethodModel {
  explicit MethodModel(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})) {}
  std::vector<TokenId> text(TokenId seed, std::size_t tokens) const {
    std::vector<TokenId> ids;
    for (TokenId i = 0; i < tokens; ++i) ids.push_back((seed + 7 * i * i + 3 * i) % model->vocabulary());
    return ids;
  }
  std::vector<TokenId> alone(const std::vector<TokenId>& prompt,
                             const std::shared_ptr<const CacheMethod>& method) const {
    TextEngine engine(*model, *ops);
    if (method) engine.keep_by(method);
    return engine.generate({{.prompt = prompt, .max_new_tokens = 12}}).front().ids;
  }
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

// The pool holds what rows are rounded to, or the codes themselves.
class ServedMethod : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(ServedMethod, SaysWhatATextSaysAlone) {
  const auto [name, coded] = GetParam();
  const MethodModel m(name);
  const auto method = cache_method("int8");
  for (const bool guessing : {false, true}) {
    ServingOptions options{.cache = {.blocks = 14, .block_tokens = 4, .chunk = 5},
                           .identity = "int8",
                           .method = method,
                           .coded_blocks = coded,
                           .poison = true};
    if (guessing) options.speculation = {.source = std::make_shared<LookupDrafts>(), .shape = {1, 1}};
    ServingEngine engine(*m.model, *m.ops, options);
    std::vector<std::vector<TokenId>> prompts = {m.text(1, 18), m.text(1, 18), m.text(5, 9)};
    prompts[1].push_back(3);  // begins as the first
    std::vector<std::size_t> numbers;
    for (const auto& prompt : prompts)
      numbers.push_back(engine.submit({.text = {.prompt = prompt, .max_new_tokens = 12}}));
    while (engine.step()) {
    }
    for (std::size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(engine.result(numbers[i]).ids, m.alone(prompts[i], method)) << "text " << i;
    const std::size_t again = engine.submit({.text = {.prompt = prompts[0], .max_new_tokens = 12}});
    while (engine.step()) {
    }
    EXPECT_EQ(engine.result(again).ids, engine.result(numbers[0]).ids);
    EXPECT_GT(engine.counts().hit_tokens, 0U);
    EXPECT_GT(engine.counts().preemptions, 0U);  // the pool holds one of them
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ServedMethod,
    testing::Combine(testing::Values("llama", "deepseek-v2", "gemma3", "gpt-oss", "jamba"), testing::Bool()),
    [](const auto& info) {
      std::string name = std::get<0>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + (std::get<1>(info.param) ? "_codes" : "_numbers");
    });

// A token's bytes are codes, and a scale a head of keys and of values.
TEST(ServedMethod, CodesTakeTheirBytes) {
  const MethodModel llama("llama"), latent("deepseek-v2");
  for (const MethodModel* m : {&llama, &latent}) {
    const std::vector<CacheWidth> widths = m->model->cache_widths();
    std::uint64_t a_token = 0;
    for (const CacheWidth& w : widths) {
      if (w.latent != 0)
        a_token += w.latent + 4 + 4 * (w.key_width - w.latent + w.value_width);
      else
        a_token += w.key_width + w.value_width + 2 * 4 * w.kv_heads;
    }
    const BlockStorage coded(*m->ops, widths, 4, 3, true), full(*m->ops, widths, 4, 3);
    EXPECT_EQ(coded.bytes(), 12 * a_token);
    EXPECT_EQ(bytes_a_token(widths, Real::f32, true), a_token);
    EXPECT_EQ(full.bytes(), 12 * bytes_a_token(widths, Real::f32, false));
    EXPECT_LT(coded.bytes(), full.bytes());
  }
}

// Codes leave a block and come back as they were.
TEST(ServedMethod, BlocksOfCodesAreSwappedAsTheyLie) {
  const MethodModel m("deepseek-v2");
  BlockStorage storage(*m.ops, m.model->cache_widths(), 2, 3, true);
  std::vector<double> rows(2 * m.model->cache_widths()[0].key_width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 0.37 * static_cast<double>(i % 11) - 1.3;
  const std::size_t places[] = {2, 3};
  storage.key_rows(0).put(places, m.ops->upload(rows, 2, rows.size() / 2));
  const std::vector<double> block = storage.read(0, 1),
                            decoded = m.ops->download(storage.key_rows(0).get(places));
  storage.write(0, 2, block);
  const std::size_t others[] = {4, 5};
  EXPECT_EQ(m.ops->download(storage.key_rows(0).get(others)), decoded);
  storage.copy(0, 2, 0);
  EXPECT_EQ(storage.read(0, 0), block);
  storage.poison(0, 0);
  EXPECT_TRUE(std::isnan(m.ops->download(storage.key_rows(0).get(std::vector<std::size_t>{0}))[0]));
}

// It is another cache: logits are those of no full one.
TEST(ServedMethod, IsNotTheFullCache) {
  const MethodModel m("llama");
  const auto logits = [&](const std::shared_ptr<const CacheMethod>& method) {
    std::vector<double> all;
    ServingEngine engine(*m.model, *m.ops, {.cache = {.blocks = 14, .block_tokens = 4}, .method = method});
    engine.listen([&](std::size_t, std::size_t, TokenId, std::span<const double> row) {
      all.insert(all.end(), row.begin(), row.end());
    });
    engine.submit({.text = {.prompt = m.text(1, 18), .max_new_tokens = 3}});
    while (engine.step()) {
    }
    return all;
  };
  EXPECT_NE(logits(cache_method("int8")), logits(nullptr));
}

TEST(ServedMethod, WhatDependsOnItsTextIsRefused) {
  for (const char* name :
       {"fp8", "int8:recent=4", "kivi2", "streaming", "h2o:budget=8", "snapkv", "pyramidkv"}) {
    EXPECT_FALSE(rounds_single_rows(*cache_method(name))) << name;
    EXPECT_THROW(require_servable(*cache_method(name)), Error) << name;
  }
  EXPECT_NO_THROW(require_servable(*cache_method("int8")));
  EXPECT_NO_THROW(require_servable(*cache_method("grouped:window=8")));
}

}  // namespace
}  // namespace assay
