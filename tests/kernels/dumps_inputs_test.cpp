// Dumps that hold token ids: rows aligned by them, and other inputs told before any number.
#include "kernels/dumps/token_ids.h"
#include "tests/kernels/dumps_fixture.h"

namespace assay::dumps {
namespace {

Array whole(const std::vector<double>& values, std::vector<std::uint64_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  return {std::move(shape), values, ElementType::I64};
}

const std::vector<double> kIds = {5, 9, 2, 13, 4, 4, 13, 8, 30, 21, 2, 7};

Arrays with_ids(Arrays dump, const std::vector<double>& ids) {
  dump["input_ids"] = whole(ids);
  return dump;
}

// Rows of every tap in the order given; -1: a row of noise.
Arrays reordered(const Arrays& in, const std::vector<int>& order) {
  std::mt19937_64 random(99);
  Arrays out;
  for (const auto& [name, array] : in) {
    Array& rows = out[name] = made(random, order.size(), array.shape[1]);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] >= 0)
        std::copy_n(array.values.begin() + order[i] * static_cast<std::ptrdiff_t>(array.shape[1]),
                    array.shape[1], rows.values.begin() + static_cast<std::ptrdiff_t>(i * array.shape[1]));
    }
  }
  return out;
}

std::vector<int> from_to(int first, int end, std::vector<int> before = {}) {
  for (int i = first; i < end; ++i) before.push_back(i);
  return before;
}

// All numbers of layers off, as those are that saw other tokens before.
void disturb(Arrays& dump, std::size_t first_row = 0) {
  for (auto& [name, array] : dump) {
    if (name.find("layers.") == std::string::npos) continue;
    for (std::size_t i = first_row * array.shape[1]; i < array.values.size(); ++i)
      array.values[i] += 0.3 * std::sin(static_cast<double>(i * i));
  }
}

std::string notes(const DumpComparison& found) {
  std::string all;
  for (const std::string& note : found.notes) all += note + "\n";
  return all;
}

TEST_F(Dumps, EqualIdsSayNothing) {
  const Arrays ref = with_ids(made_dump(), kIds);
  const DumpComparison found = compare(ref, ref);
  EXPECT_TRUE(found.good());
  EXPECT_EQ(notes(found), "");
  EXPECT_EQ(found.tokens, kTokens);
}

TEST_F(Dumps, ABosTooManyIsToldWhereNumbersDiffer) {
  const Arrays plain = made_dump();
  std::vector<double> ids = kIds;
  ids.insert(ids.begin(), 1);
  Arrays test = with_ids(reordered(plain, from_to(0, 12, {-1})), ids);
  const DumpComparison harmless = compare(with_ids(plain, kIds), test);
  EXPECT_TRUE(harmless.good()) << notes(harmless);
  EXPECT_NE(notes(harmless).find("1 of TEST left out (padding, other sequences), by token ids"),
            std::string::npos)
      << notes(harmless);
  disturb(test);
  const DumpComparison found = compare(with_ids(plain, kIds), test);
  EXPECT_FALSE(found.good());
  EXPECT_EQ(found.inputs, "TEST has token 1 at 0, which REF lacks");
  EXPECT_EQ(found.taps.front().rows, kTokens);
  EXPECT_EQ(tap(found, "embed").status, CaseStatus::passed);
}

TEST_F(Dumps, PaddingThatAMaskStrikesOutIsNoOtherInput) {
  const Arrays plain = made_dump();
  std::vector<double> ids = kIds;
  ids.insert(ids.begin(), 3, 2);  // the padding's id is one of the text's, too
  Arrays test = with_ids(reordered(plain, from_to(0, 12, {-1, -1, -1})), ids);
  test["attention_mask"] = whole({0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 15});
  EXPECT_TRUE(compare(with_ids(plain, kIds), test).good());
  test["layers.2.out"].at(3 + 4, 5) += 9;
  const DumpComparison found = compare(with_ids(plain, kIds), test);
  EXPECT_EQ(found.inputs, "");
  ASSERT_NE(found.first_divergence(), nullptr);
  EXPECT_EQ(found.first_divergence()->name, "layers.2.out");
  EXPECT_EQ(found.first_divergence()->error.first_row, 4u);
}

TEST_F(Dumps, AnotherTokenIsToldAndWhatStandsBeforeIsCompared) {
  const Arrays ref = with_ids(made_dump(), kIds);
  Arrays test = ref;
  test["input_ids"].values[7] = 42;
  disturb(test, 7);
  DumpComparison found = compare(ref, test);
  EXPECT_FALSE(found.good());
  EXPECT_EQ(found.inputs, "token 7 is 8 in REF, 42 in TEST");
  EXPECT_EQ(found.first_divergence(), nullptr);
  EXPECT_EQ(found.taps.front().rows, 7u);
  EXPECT_EQ(found.tokens, 7u);
  // Numbers that agree do not make the inputs the same.
  found = compare(ref, with_ids(made_dump(), test.at("input_ids").values));
  EXPECT_FALSE(found.good());
  // A fault among the tokens that both have is still told.
  test["layers.0.v"].at(2, 2) += 5;
  found = compare(ref, test);
  ASSERT_NE(found.first_divergence(), nullptr);
  EXPECT_EQ(found.first_divergence()->name, "layers.0.v");
}

TEST_F(Dumps, AnotherTokenBehindPaddingIsFound) {
  const Arrays plain = made_dump();
  std::vector<double> ids = kIds;
  ids[5] = 42;
  ids.insert(ids.begin(), 2, 0);
  Arrays test = with_ids(reordered(plain, from_to(0, 12, {-1, -1})), ids);
  disturb(test, 7);
  const DumpComparison found = compare(with_ids(plain, kIds), test);
  EXPECT_EQ(found.inputs, "REF's token 5 is 4, TEST's token 7, which stands there, is 42");
  EXPECT_EQ(found.taps.front().rows, 5u);
  EXPECT_EQ(found.first_divergence(), nullptr);
}

TEST_F(Dumps, NothingInCommonIsNotCompared) {
  const Arrays ref = with_ids(made_dump(), kIds);
  std::vector<double> other;
  for (const double id : kIds) other.push_back(id + 100);
  const DumpComparison found = compare(ref, with_ids(made_dump(kTokens, 2), other));
  EXPECT_FALSE(found.good());
  EXPECT_EQ(found.inputs, "token 0 is 5 in REF, 105 in TEST");
  EXPECT_TRUE(found.taps.empty());
}

TEST_F(Dumps, PositionsThatDifferAreToldWhereNumbersDo) {
  const Arrays plain = made_dump();
  Arrays ref = with_ids(plain, kIds), test = ref;
  std::vector<double> positions(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) positions[i] = static_cast<double>(i);
  ref["positions"] = whole(positions);
  for (double& position : positions) position += 3;
  test["positions"] = whole(positions);
  EXPECT_TRUE(compare(ref, test).good());
  disturb(test);
  EXPECT_EQ(compare(ref, test).inputs, "token 0 stands at position 0 in REF, 3 in TEST");
}

// Chunks of a prompt, and the sequences of a batch in another order, each padded to one length.
TEST_F(Dumps, ChunksAndPaddedBatchesAreAlignedById) {
  const Arrays plain = made_dump();
  write_dump(folder_ / "ref.safetensors", with_ids(plain, kIds));
  const auto part = [](int first, int end) {
    return std::vector<double>(kIds.begin() + first, kIds.begin() + end);
  };
  write_dump(folder_ / "chunks" / "step_0" / "a.safetensors",
             with_ids(reordered(plain, from_to(0, 8)), part(0, 8)));
  write_dump(folder_ / "chunks" / "step_1" / "a.safetensors",
             with_ids(reordered(plain, from_to(8, 12)), part(8, 12)));
  const DumpComparison chunks = compare_with(folder_ / "chunks");
  EXPECT_TRUE(chunks.good()) << notes(chunks);
  EXPECT_EQ(chunks.tokens, kTokens);

  std::vector<double> ids = {0};  // second sequence of seven tokens first, padded by one; then the first
  for (const double id : part(5, 12)) ids.push_back(id);
  ids.insert(ids.end(), 3, 0);
  for (const double id : part(0, 5)) ids.push_back(id);
  std::vector<int> order = from_to(5, 12, {-1});
  order.insert(order.end(), 3, -1);
  Arrays batch = reordered(plain, from_to(0, 5, order));
  batch["input_ids"] = whole(ids, {2, 8});
  write_dump(folder_ / "batch.safetensors", batch);
  const DumpComparison found = compare_with(folder_ / "batch.safetensors");
  EXPECT_TRUE(found.good()) << notes(found);
  EXPECT_NE(notes(found).find("in another order; 4 of TEST left out"), std::string::npos) << notes(found);
}

// Two thousand tokens before the text: found without trying every run.
TEST(TokenIds, LongPaddingIsFoundAtOnce) {
  TokenIds ref, test;
  for (std::int64_t i = 0; i < 40000; ++i) ref.ids.push_back(i * i % 991);
  test.ids.assign(2000, 1 << 20);
  test.ids.insert(test.ids.end(), ref.ids.begin(), ref.ids.end());
  const TokenAlignment found = align_ids(ref, test);
  ASSERT_TRUE(found.map);
  EXPECT_FALSE(found.differ);
  EXPECT_EQ(found.map->pairs.front().second, 2000u);
}

}  // namespace
}  // namespace assay::dumps
