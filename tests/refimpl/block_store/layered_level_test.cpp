// Rows of blocks on disk come layer by layer, while earlier layers are computed: the bits of the plain way, nothing of what
// is damaged, and an order that is counted, not timed.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "refimpl/block_store/tiers.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"
#include "tests/support/progress.h"
#include "tests/support/support.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kLayeredBlock = 4;

using test::Progress;  // of layers whose attention was computed

class ProgressOps : public ReferenceOps {
 public:
  ProgressOps(const Arithmetic& arithmetic, Progress& progress)
      : ReferenceOps(arithmetic, 1), progress_(progress) {}
  using ReferenceOps::run;
  Matrix run(const AttentionCall& call) override {
    Matrix result = ReferenceOps::run(call);
    progress_.next();
    return result;
  }

 private:
  Progress& progress_;
};

// Rows of layer l + 1 come only when layer l was computed: whoever waits for all of them first waits in vain.
class AfterTheLayerBefore : public LayeredRows {
 public:
  AfterTheLayerBefore(std::shared_ptr<LayeredRows> rows, Progress& progress)
      : rows_(std::move(rows)), progress_(progress) {}
  std::optional<std::vector<double>> next() override {
    if (!progress_.wait_for(layer_++)) return std::nullopt;
    return rows_->next();
  }
  void over(bool whole) override { rows_->over(whole); }

 private:
  std::shared_ptr<LayeredRows> rows_;
  Progress& progress_;
  std::size_t layer_ = 0;
};

class SlowDisk : public OuterLevel {
 public:
  SlowDisk(std::unique_ptr<OuterLevel> disk, Progress& progress)
      : disk_(std::move(disk)), progress_(progress) {}
  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override {
    return disk_->has(group, wanted, with_states);
  }
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override {
    auto block = disk_->fetch(group, wanted, with_states);
    progress_.again();
    if (block && block->later) block->later = std::make_shared<AfterTheLayerBefore>(block->later, progress_);
    return block;
  }
  void keep(std::size_t group, BlockId block, const BlockContent& content) override {
    disk_->keep(group, block, content);
  }

 private:
  std::unique_ptr<OuterLevel> disk_;
  Progress& progress_;
};

struct LayeredModel {
  explicit LayeredModel(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(std::make_unique<ProgressOps>(Arithmetic{Precision::f32}, progress)),
        model(make_model(weights, {})) {}
  std::vector<TokenId> text(TokenId seed, std::size_t tokens) const {
    std::vector<TokenId> ids;
    for (TokenId i = 0; i < tokens; ++i) ids.push_back((seed + 7 * i * i + 3 * i) % model->vocabulary());
    return ids;
  }
  Progress progress;
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

struct Written {
  std::vector<TokenId> ids;
  std::vector<double> logits;
  ServingCounts counts;
  bool operator==(const Written& other) const { return ids == other.ids && logits == other.logits; }
};

Written write(const LayeredModel& m, const std::vector<TokenId>& prompt, const ServingParts& parts) {
  Written written;
  ServingEngine engine(
      *m.model, *m.ops,
      {.cache = {.blocks = 40, .block_tokens = kLayeredBlock}, .identity = "layers", .poison = true}, parts);
  engine.listen([&](std::size_t, std::size_t, TokenId id, std::span<const double> logits) {
    written.ids.push_back(id);
    written.logits.insert(written.logits.end(), logits.begin(), logits.end());
  });
  engine.submit({.text = {.prompt = prompt, .max_new_tokens = 2}});
  while (engine.step()) {
  }
  engine.keep_all();
  written.counts = engine.counts();
  return written;
}

ServingParts on_disk(const fs::path& folder, bool by_layer, std::vector<std::string>* notes = nullptr) {
  ServingParts parts;
  parts.outer = [=](Ops& ops, const BlockStorage& storage) {
    return std::make_unique<DiskLevel>(ops, storage,
                                       DiskOptions{.folder = folder,
                                                   .told =
                                                       [=](const std::string& note) {
                                                         if (notes != nullptr) notes->push_back(note);
                                                       },
                                                   .by_layer = by_layer});
  };
  return parts;
}

std::vector<fs::path> block_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class LayeredLevel : public testing::TestWithParam<const char*> {};

TEST_P(LayeredLevel, SaysWhatThePlainWaySays) {
  const LayeredModel m(GetParam());
  const test::TempDir dir;
  const std::vector<TokenId> prompt = m.text(3, 29);
  const Written alone = write(m, prompt, {});
  EXPECT_EQ(write(m, prompt, on_disk(dir / "blocks", true)), alone);
  std::size_t arrived = 0;
  for (const bool by_layer : {false, true}) {
    ServingParts parts = on_disk(dir / "blocks", by_layer);
    parts.arrived = [&](const std::vector<LayerArrival>& layers) {
      arrived += layers.size();
      for (std::size_t i = 0; i < layers.size(); ++i) {
        EXPECT_EQ(layers[i].layer, i);
        EXPECT_LE(layers[i].read_to, layers[i].there);
      }
    };
    const Written again = write(m, prompt, parts);
    EXPECT_EQ(again, alone);
    EXPECT_EQ(again.counts.prompt_tokens, 1U);
    EXPECT_EQ(again.counts.hit_tokens, 28U);
    EXPECT_EQ(arrived, by_layer ? m.model->cache_widths().size() : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LayeredLevel,
                         testing::Values("llama", "deepseek-v3", "gemma3", "mamba2", "longcat-flash",
                                         "qwen3-next", "gpt-oss"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Layer l + 1 is not even offered before layer l was computed: all that is read comes all the same.
TEST(LayerArrivals, ALayerIsComputedWhileLaterOnesAreRead) {
  LayeredModel m("llama");
  const test::TempDir dir;
  const std::vector<TokenId> prompt = m.text(3, 29);
  const Written alone = write(m, prompt, on_disk(dir / "blocks", true));
  ServingParts parts = on_disk(dir / "blocks", true);
  parts.outer = [&m, inner = parts.outer](Ops& ops, const BlockStorage& storage) {
    return std::make_unique<SlowDisk>(inner(ops, storage), m.progress);
  };
  const Written again = write(m, prompt, parts);
  EXPECT_EQ(again, alone);
  EXPECT_EQ(again.counts.prompt_tokens, 1U);
  EXPECT_EQ(again.counts.loaded_blocks, 7U);
}

// Layers before it were computed by then: the step never was, and the text begins anew.
TEST(LayerArrivals, ADamagedLayerIsComputedAnew) {
  const LayeredModel m("llama");
  const test::TempDir dir;
  const std::vector<TokenId> prompt = m.text(3, 29);
  const Written alone = write(m, prompt, on_disk(dir / "blocks", true));
  const std::vector<fs::path> files = block_files(dir / "blocks");
  ASSERT_EQ(files.size(), 7U);
  for (const std::size_t from_end : {40U, 400U, 1100U}) {  // of the last layer, of those before it
    const std::string good = test::read_file(files[2]);
    std::string bad = good;
    ASSERT_GT(bad.size(), from_end);
    bad[bad.size() - from_end] ^= 1;
    test::write_file(files[2], bad);
    std::vector<std::string> notes;
    const Written again = write(m, prompt, on_disk(dir / "blocks", true, &notes));
    EXPECT_EQ(again, alone);
    EXPECT_EQ(notes.size(), 1U);
    EXPECT_GT(again.counts.prompt_tokens, 1U);
    EXPECT_EQ(again.counts.prompt_tokens + again.counts.hit_tokens, 29U);
    EXPECT_EQ(test::read_file(files[2]), good);  // computed, and kept again
  }
}

// A sound layer of another block, or in another place, is none of this one.
TEST(LayerArrivals, LayersAreOfTheirBlockAndInTheirPlace) {
  const LayeredModel m("llama");
  const test::TempDir dir;
  const std::vector<TokenId> prompt = m.text(3, 29);
  const Written alone = write(m, prompt, on_disk(dir / "blocks", true));
  const std::vector<fs::path> files = block_files(dir / "blocks");
  const std::size_t rows = 4 * 64 * 4 + 32;  // of a layer: tokens, keys and values, float32; its digest
  const std::string one = test::read_file(files[0]), other = test::read_file(files[1]);
  ASSERT_GT(one.size(), 3 * rows);
  std::string swapped = one, foreign = one;
  const std::size_t last = one.size() - rows;
  swapped.replace(last, rows, one.substr(last - rows, rows));
  foreign.replace(last, rows, other.substr(last, rows));
  for (const std::string& bad : {swapped, foreign}) {
    test::write_file(files[0], bad);
    std::vector<std::string> notes;
    EXPECT_EQ(write(m, prompt, on_disk(dir / "blocks", true, &notes)), alone);
    EXPECT_EQ(notes.size(), 1U);
    EXPECT_EQ(test::read_file(files[0]), one);
  }
}

// What the saver cannot do is no secret: whoever ends, or keeps more, is told.
TEST(TieredLevel, ErrorsOfTheSaverAreThrown) {
  const LayeredModel m("llama");
  const test::TempDir dir;
  TieredLevel* level = nullptr;
  ServingParts parts;
  parts.outer = [&](Ops& ops, const BlockStorage& storage) {
    auto disk = std::make_unique<DiskLevel>(ops, storage, DiskOptions{.folder = dir / "blocks"});
    auto made = std::make_unique<TieredLevel>(storage, 1 << 20, std::move(disk));
    made->save_by([](DiskLevel&, const DiskLevel::Unsaved&) { throw Error::internal("the saver fell"); });
    level = made.get();
    return made;
  };
  try {
    write(m, m.text(3, 29), parts);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the saver fell"), std::string::npos) << error.what();
  }
}

// A disk with room for two blocks: what a waiting text begins with stays.
TEST(DiskLevel, SparesWhatWaits) {
  const LayeredModel m("llama");
  BlockStorage storage(*m.ops, m.model->cache_widths(), 2, 3);
  const auto content = [](TokenId id) {
    BlockContent c;
    c.parent = BlockHasher().root("a");
    c.tokens = {id, id};
    c.key = BlockHasher().next(c.parent, c.tokens);
    return c;
  };
  for (const bool waits : {false, true}) {
    const test::TempDir dir;
    const std::uint64_t bytes = DiskLevel(*m.ops, storage, {.folder = dir / "none"}).file_bytes(0, false);
    DiskLevel level(*m.ops, storage, {.folder = dir / "blocks", .most_bytes = 2 * bytes});
    const BlockKey first = content(1).key;
    level.ask([&](const BlockKey& key) { return waits && key == first; });
    for (const TokenId id : {1U, 2U, 3U}) level.keep(0, 1, content(id));
    EXPECT_EQ(level.has(0, content(1), false), waits);
    EXPECT_EQ(level.has(0, content(2), false), !waits);
    EXPECT_TRUE(level.has(0, content(3), false));
    EXPECT_EQ(level.spared(), waits ? 1U : 0U);
    EXPECT_EQ(block_files(dir / "blocks").size(), 2U);
  }
}

}  // namespace
}  // namespace assay
