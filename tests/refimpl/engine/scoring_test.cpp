// How a text is read where its logits are large, where the user stops it, and where its weights vanish.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/scoring.h"
#include "refimpl/models/mapped_file.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// Says nothing, of a large vocabulary.
class Wide final : public LanguageModel {
 public:
  std::size_t vocabulary() const override { return 151936; }
  std::size_t context() const override { return 4096; }
  std::vector<CacheWidth> cache_widths() const override { return {}; }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps&) const override {
    return ops.allocate(batch.tokens.size(), 2);
  }
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps&) const override {
    most_rows = std::max(most_rows, hidden.rows());
    return ops.allocate(hidden.rows(), vocabulary());
  }
  mutable std::size_t most_rows = 0;
};

TEST(Scoring, RowsOfLogitsComeAFewAtATime) {
  const Wide model;
  ReferenceOps ops({Precision::f32}, 1);
  const std::vector<TokenId> tokens(130, 1);
  std::size_t next = 0;
  TextEngine(model, ops).score(tokens, [&](std::size_t position, std::span<const double> row) {
    EXPECT_EQ(position, next++);
    EXPECT_EQ(row.size(), model.vocabulary());
  });
  EXPECT_EQ(next, tokens.size());
  EXPECT_LE(model.most_rows * model.vocabulary() * sizeof(double), std::size_t{64} << 20);
}

// Ctrl-C, as it comes in the middle of a prompt.
class StopsAt final : public TapListener {
 public:
  explicit StopsAt(std::string name) : name_(std::move(name)) {}
  void see(const std::string& name, const Matrix&) override {
    seen.push_back(name);
    if (name == name_) set_interrupted(true);
  }
  std::vector<std::string> seen;

 private:
  std::string name_;
};

TEST(Scoring, AStepEndsWithTheLayerInWhichTheUserStopsIt) {
  for (const char* name : {"llama", "gpt2", "deepseek-v3"}) {
    const Weights weights(test::source_dir() / "data/models" / name, 1);
    const std::unique_ptr<LanguageModel> model = make_model(weights, {});
    ReferenceOps ops({Precision::f32}, 1);
    StopsAt stop("layers.0.out");
    const std::vector<TokenId> tokens(30, 5);
    const std::vector<Generation> made =
        TextEngine(*model, ops, Taps(stop)).generate({{.prompt = tokens, .max_new_tokens = 4}});
    EXPECT_EQ(made.at(0).finish_reason, FinishReason::interrupted) << name;
    EXPECT_EQ(stop.seen.back(), "layers.0.out") << name;
    set_interrupted(false);
    StopsAt again("layers.0.out");
    std::size_t rows = 0;
    TextEngine(*model, ops, Taps(again)).score(tokens, [&](std::size_t, std::span<const double>) { ++rows; });
    EXPECT_EQ(rows, 0U) << name;
    set_interrupted(false);
  }
}

// Weights cut short under a running model, touched by one of its threads.
TEST(MappedFile, CutShortIsAnErrorAndNoSignal) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const test::TempDir dir;
  const fs::path path = dir / "model.safetensors";
  test::write_file(path, std::string(8 * page, 'w'));
  {
    const MappedFile file(path);
    EXPECT_EQ(file.bytes()[7 * page], std::byte{'w'});
    EXPECT_NO_THROW(require_mapped());
    fs::resize_file(path, 2 * page + 100);
    std::byte lost{1};
    std::thread([&] { lost = file.bytes()[5 * page]; }).join();
    EXPECT_EQ(lost, std::byte{0});
    EXPECT_EQ(file.bytes()[page], std::byte{'w'});
    try {
      require_mapped();
      ADD_FAILURE() << "taken for whole";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_NE(error.line().find("model.safetensors"), std::string::npos) << error.line();
      EXPECT_NE(error.line().find("was cut to"), std::string::npos) << error.line();
    }
  }
  EXPECT_NO_THROW(require_mapped());
}

}  // namespace
}  // namespace assay
