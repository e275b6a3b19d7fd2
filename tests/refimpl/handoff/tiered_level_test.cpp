// Memory before disk behind the pool: a conversation that comes again costs what is new, wherever its blocks are by then.
#include "refimpl/block_store/tiered_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "refimpl/engine/serving.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

constexpr std::size_t kTierBlock = 4;

struct TieredModel {
  explicit TieredModel(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})) {}
  std::vector<TokenId> text(TokenId seed, std::size_t tokens) const {
    std::vector<TokenId> ids;
    for (TokenId i = 0; i < tokens; ++i) ids.push_back((seed + 7 * i * i + 3 * i) % model->vocabulary());
    return ids;
  }
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

// An engine whose pool holds hardly more than one text, before memory of so many bytes and a folder.
struct Tiers {
  Tiers(const TieredModel& m, std::uint64_t memory, const fs::path& folder, std::size_t blocks = 14) {
    ServingParts parts;
    parts.outer = [&](Ops& ops, const BlockStorage& storage) {
      auto disk = folder.empty() ? nullptr
                                 : std::make_unique<DiskLevel>(
                                       ops, storage, DiskOptions{folder, std::uint64_t{1} << 30, {}});
      auto made = std::make_unique<TieredLevel>(storage, memory, std::move(disk));
      level = made.get();
      return made;
    };
    engine = std::make_unique<ServingEngine>(
        *m.model, *m.ops,
        ServingOptions{.cache = {.blocks = blocks, .block_tokens = kTierBlock, .chunk = kTierBlock},
                       .identity = "tiers",
                       .poison = true},
        parts);
    level->ask([this](const BlockKey& key) { return waits_for(engine->scheduler(), key); });
  }
  std::vector<TokenId> write(const std::vector<TokenId>& prompt) {
    const std::size_t number = engine->submit({.text = {.prompt = prompt, .max_new_tokens = 4}});
    while (engine->step()) {
    }
    return engine->result(number).ids;
  }
  std::size_t computed() const { return engine->counts().prompt_tokens; }
  TieredLevel* level = nullptr;
  std::unique_ptr<ServingEngine> engine;
};

std::vector<TokenId> alone(const TieredModel& m, const std::vector<TokenId>& prompt) {
  return TextEngine(*m.model, *m.ops).generate({{.prompt = prompt, .max_new_tokens = 4}}).front().ids;
}

// A first visit, others that crowd it out of the pool, and a second visit with a few tokens more.
class SecondVisit : public testing::TestWithParam<const char*> {
 public:
  void visit_twice(std::uint64_t memory, const fs::path& folder,
                   const std::function<void(const Tiers&)>& look) {
    const TieredModel m(GetParam());
    Tiers tiers(m, memory, folder);
    const std::vector<TokenId> first = m.text(1, 24);
    ASSERT_EQ(tiers.write(first), alone(m, first));
    for (const TokenId other : {5U, 6U, 7U}) tiers.write(m.text(other, 24));
    std::vector<TokenId> second = first;
    for (const TokenId id : m.text(9, 7)) second.push_back(id);
    const std::size_t before = tiers.computed();
    ASSERT_EQ(tiers.write(second), alone(m, second));
    EXPECT_EQ(tiers.computed() - before, 7U);  // what is new
    look(tiers);
  }
};

TEST_P(SecondVisit, CostsWhatIsNewFromMemory) {
  visit_twice(std::uint64_t{1} << 30, {}, [](const Tiers& tiers) {
    EXPECT_GT(tiers.level->counts().from_memory, 0U);
    EXPECT_EQ(tiers.level->counts().from_disk, 0U);
  });
}

TEST_P(SecondVisit, CostsWhatIsNewFromDisk) {
  const test::TempDir dir;
  visit_twice(1, dir / "blocks", [](const Tiers& tiers) {
    EXPECT_EQ(tiers.level->counts().from_memory, 0U);
    EXPECT_GT(tiers.level->counts().from_disk, 0U);
    EXPECT_GT(tiers.level->counts().saved, 0U);
  });
}

TEST_P(SecondVisit, CostsWhatIsNewInAnotherProcess) {
  const TieredModel m(GetParam());
  const test::TempDir dir;
  const std::vector<TokenId> prompt = m.text(1, 25);
  {
    Tiers tiers(m, std::uint64_t{1} << 30, dir / "blocks");
    tiers.write(prompt);
    tiers.engine->keep_all();
  }  // what is behind the work is written by then
  Tiers tiers(m, std::uint64_t{1} << 30, dir / "blocks");
  EXPECT_EQ(tiers.write(prompt), alone(m, prompt));
  EXPECT_EQ(tiers.computed(), 1U);
  EXPECT_EQ(tiers.level->counts().from_disk, tiers.engine->counts().loaded_blocks);
}

INSTANTIATE_TEST_SUITE_P(Models, SecondVisit, testing::Values("llama", "deepseek-v3", "gemma3", "mamba2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A block of two that memory has room for: the older one goes, but not where a text waits for it.
TEST(TieredLevel, SparesWhatWaits) {
  const TieredModel m("llama");
  BlockStorage storage(*m.ops, m.model->cache_widths(), 2, 3);
  const std::uint64_t bytes = storage.read(0, 0).size() * sizeof(double);
  const auto content = [](TokenId id) {
    BlockContent c;
    c.parent = BlockHasher().root("a");
    c.tokens = {id, id};
    c.key = BlockHasher().next(c.parent, c.tokens);
    return c;
  };
  for (const bool waits : {false, true}) {
    TieredLevel level(storage, 2 * bytes, nullptr);
    const BlockKey first = content(1).key;
    level.ask([&](const BlockKey& key) { return waits && key == first; });
    for (const TokenId id : {1U, 2U, 3U}) level.keep(0, 1, content(id));
    EXPECT_EQ(level.has(0, content(1), false), waits);
    EXPECT_EQ(level.has(0, content(2), false), !waits);
    EXPECT_TRUE(level.has(0, content(3), false));
    EXPECT_EQ(level.counts().spared, waits ? 1U : 0U);
  }
}

// A key that another block has: its tokens are compared.
TEST(TieredLevel, ComparesWhatItHas) {
  const TieredModel m("llama");
  const BlockStorage storage(*m.ops, m.model->cache_widths(), 2, 3);
  TieredLevel level(storage, std::uint64_t{1} << 20, nullptr);
  BlockContent content;
  content.tokens = {1, 2};
  level.keep(0, 1, content);
  EXPECT_TRUE(level.has(0, content, false));
  content.tokens = {1, 3};
  EXPECT_FALSE(level.has(0, content, false));
  EXPECT_FALSE(level.fetch(0, content, false).has_value());
}

}  // namespace
}  // namespace assay
