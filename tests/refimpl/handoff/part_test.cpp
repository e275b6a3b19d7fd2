// Parts of a hand-off: what they say of themselves, and that nothing else than that is taken.
#include "refimpl/handoff/handoff_part.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/system/error.h"
#include "refimpl/handoff/takeover.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Bytes = std::vector<std::byte>;

HandoffPart some_part() {
  PartHeader h;
  h.identity = BlockHasher().root("weights");
  h.text = BlockHasher().next(h.identity, std::vector<TokenId>{1, 2, 3});
  h.serial = 7;
  h.kind = PartKind::values;
  h.layer = 3;
  h.first = 16;
  h.rows = 2;
  h.heads = {1, 2, 4};
  h.columns = 3;
  return part_of_numbers(h, std::vector<double>{1, -2, 0.5, 3, 4, -0.0}, NumberWidth::bf16);
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.line();
    return error.line();
  }
  return "";
}

TEST(HandoffPart, ComesBackAsItWas) {
  const HandoffPart part = some_part();
  const Bytes bytes = pack(part);
  EXPECT_EQ(bytes.size(), kPartHeaderBytes + 2 * 3 * 2 + kDigestBytes);
  const HandoffPart back = unpack(bytes);
  EXPECT_EQ(back.header, part.header);
  EXPECT_EQ(numbers_of(back), (std::vector<double>{1, -2, 0.5, 3, 4, 0}));
}

TEST(HandoffPart, EveryByteOfItCounts) {
  const Bytes bytes = pack(some_part());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    EXPECT_NE(refusal([&] { unpack(damaged); }), "") << i;
    EXPECT_NE(refusal([&] { unpack(std::span(bytes).first(i)); }), "") << i;
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal([&] { unpack(longer); }), "");
}

// What a header tells is not believed before anything is made of it.
TEST(HandoffPart, HoldsNoMoreThanItMay) {
  HandoffPart part = some_part();
  for (const std::uint64_t rows : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    Bytes bytes = pack(some_part());
    Bytes number;
    put_number(number, rows);
    std::copy(number.begin(), number.end(), bytes.begin() + 16 + 64 + 16 + 5 * 8);
    EXPECT_NE(refusal([&] { unpack(bytes); }).find("cannot be"), std::string::npos);
  }
}

TEST(HandoffPart, HeadsAreDealtOutOrReplicated) {
  EXPECT_EQ(heads_of_rank(8, 2, 1), (HeadRange{4, 4, 8}));
  EXPECT_EQ(heads_of_rank(2, 8, 3), (HeadRange{0, 1, 2}));
  EXPECT_EQ(heads_of_rank(2, 8, 4), (HeadRange{1, 1, 2}));
  EXPECT_EQ(heads_of_rank(1, 4, 3), (HeadRange{0, 1, 1}));
  EXPECT_THROW(heads_of_rank(6, 4, 0), Error);
  EXPECT_THROW(heads_of_rank(4, 4, 4), Error);
  EXPECT_EQ(take_heads(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 4, {1, 1, 2}),
            (std::vector<double>{2, 3, 6, 7}));
}

// Of a head's rows each once, from whichever rank, in any order; replicas must agree.
TEST(RowAssembly, PutsHeadsAndTokensTogether) {
  const std::vector<double> rows = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};  // [3, 4], 2 heads
  const auto part = [&](std::uint64_t first, std::uint64_t count, HeadRange heads) {
    PartHeader h;
    h.kind = PartKind::keys;
    h.first = first;
    h.rows = count;
    h.heads = heads;
    h.columns = 2 * heads.count;
    return part_of_numbers(h, take_heads(std::span(rows).subspan(4 * first, 4 * count), 4, heads),
                           NumberWidth::f32);
  };
  RowAssembly assembly(3, 4, 2);
  assembly.take(part(1, 2, {1, 1, 2}), 1);
  EXPECT_EQ(assembly.missing(), "head 0 of token 0");
  assembly.take(part(0, 3, {0, 1, 2}), 0);
  EXPECT_EQ(assembly.missing(), "head 1 of token 0");
  assembly.take(part(0, 2, {0, 2, 2}), 0);
  EXPECT_EQ(assembly.missing(), std::nullopt);
  EXPECT_EQ(assembly.numbers(), rows);
  HandoffPart other = part(0, 1, {0, 1, 2});
  other.bytes[0] ^= std::byte{1};
  EXPECT_NE(refusal([&] { assembly.take(other, 0); }).find("came twice"), std::string::npos);
  EXPECT_NE(refusal([&] {
              assembly.take(part(0, 2, {0, 2, 2}), 2);
            }).find("of a text of 3"),
            std::string::npos);
  HandoffPart foreign = part(0, 1, {0, 1, 2});
  foreign.header.heads = {0, 1, 4};
  EXPECT_NE(refusal([&] { assembly.take(foreign, 0); }).find("where the layer has 2"), std::string::npos);
}

// A whole hand-off of the tiny llama, part by part.
struct Recorded {
  explicit Recorded(const std::string& identity = "llama", TokenId first = 5)
      : weights(test::source_dir() / "data/models/llama", 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})),
        with{*model, *ops, cache_shape(*model, weights.tree()), handoff_identity(identity)} {
    PartQueue queue;
    const HandoffSent sent = hand_over(with,
                                       {.prompt = {first, 7, 11, 3},
                                        .max_new_tokens = 4,
                                        .sampling = {},
                                        .constraint = {},
                                        .watch_text = {}},
                                       {}, queue);
    for (std::uint64_t i = 0; i < sent.parts; ++i) parts.push_back(queue.next(i));
  }
  std::string taken(const std::vector<Bytes>& given) const {
    PartQueue queue;
    for (const Bytes& part : given) queue.put(0, part);
    queue.end();
    try {
      Takeover taken(with, queue);
      taken.read(16);
    } catch (const Error& error) {
      return error.line();
    }
    return "";
  }
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  HandoffModel with;
  std::vector<Bytes> parts;
};

TEST(Takeover, TakesWhatIsWhole) {
  const Recorded recorded;
  EXPECT_EQ(recorded.taken(recorded.parts), "");
}

TEST(Takeover, RefusesWhatIsCut) {
  const Recorded recorded;
  for (std::size_t i = 0; i < recorded.parts.size(); ++i) {
    std::vector<Bytes> cut = recorded.parts;
    cut.resize(i);
    EXPECT_NE(recorded.taken(cut).find("ended before its hand-off was whole"), std::string::npos) << i;
    std::vector<Bytes> without = recorded.parts;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(recorded.taken(without), "") << i;
  }
}

TEST(Takeover, RefusesAnotherOrder) {
  const Recorded recorded;
  for (std::size_t i = 1; i + 1 < recorded.parts.size(); ++i) {
    std::vector<Bytes> swapped = recorded.parts;
    std::swap(swapped[i], swapped[i + 1]);
    EXPECT_NE(recorded.taken(swapped).find("comes where part"), std::string::npos) << i;
  }
}

TEST(Takeover, RefusesWhatIsDamaged) {
  const Recorded recorded;
  for (std::size_t i = 0; i < recorded.parts.size(); ++i) {
    std::vector<Bytes> damaged = recorded.parts;
    damaged[i][damaged[i].size() / 2] ^= std::byte{4};
    EXPECT_NE(recorded.taken(damaged), "") << i;
  }
}

TEST(Takeover, RefusesWhatIsForeign) {
  const Recorded own, other_weights("other weights"), other_text("llama", 6), again;
  for (std::size_t i = 0; i < own.parts.size(); ++i) {
    const auto with_part = [&](const Recorded& from) {
      std::vector<Bytes> mixed = own.parts;
      mixed[i] = from.parts[i];
      return own.taken(mixed);
    };
    EXPECT_NE(with_part(other_weights).find("other weights, or by another arithmetic"), std::string::npos)
        << i;
    EXPECT_NE(with_part(other_text).find("another hand-off"), std::string::npos) << i;
    EXPECT_NE(with_part(again).find("another hand-off"), std::string::npos)
        << i;  // the same text, sent again
  }
}

}  // namespace
}  // namespace assay
