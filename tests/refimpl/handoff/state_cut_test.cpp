// States of recurrent layers between ranks: who has which units, and how they come together.
#include "refimpl/handoff/state_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/handoff/state_assembly.h"

namespace assay {
namespace {

// A convolution over v | k | q of four heads and twice two, of 2, 3 and 3 channels; the scan's sum of four heads, 2 rows each.
StateCut convolution() {
  StateCut cut;
  cut.whole = {3, 20};
  cut.of_columns = true;
  cut.members = {{8, 4}, {6, 2}, {6, 2}};
  cut.units = 8;
  return cut_state(cut, 1, 0);
}
StateCut scan() {
  StateCut cut;
  cut.whole = {8, 5};
  cut.members = {{8, 4}};
  cut.units = 4;
  return cut_state(cut, 1, 0);
}
std::vector<double> numbers_of(const StateCut& cut) {
  std::vector<double> numbers(cut.whole.rows * cut.whole.columns);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  return numbers;
}
// What a rank has of the whole's numbers.
std::vector<double> part_of(const StateCut& whole, const StateCut& rank) {
  std::vector<double> part;
  for (std::size_t line = 0; line < whole.lines(); ++line)
    for (const StateUnit& unit : rank.here) {
      const std::vector<double> all = take_units(whole, numbers_of(whole), unit.first, unit.count);
      const std::size_t width = unit.count * whole.step();
      part.insert(part.end(), all.begin() + static_cast<std::ptrdiff_t>(line * width),
                  all.begin() + static_cast<std::ptrdiff_t>((line + 1) * width));
    }
  return part;
}

HandoffPart part(const StateCut& from, const std::vector<double>& state, const HeadRange& heads) {
  PartHeader header;
  header.kind = PartKind::state;
  header.heads = heads;
  header.rows = from.of_columns ? from.whole.rows : heads.count;
  header.columns = from.of_columns ? heads.count : from.whole.columns;
  return part_of_numbers(header, take_units(from, state, heads.first, heads.count), NumberWidth::f64);
}

TEST(StateCut, HeadsAreDealtOutOrRepeated) {
  const StateCut rank = cut_state(convolution(), 4, 1);
  ASSERT_EQ(rank.here.size(), 3U);
  EXPECT_EQ(rank.here[0].first, 2U);   // v's second head
  EXPECT_EQ(rank.here[1].first, 8U);   // k's first one, which rank 0 has too
  EXPECT_EQ(rank.here[2].first, 14U);  // and q's
  EXPECT_TRUE(rank.here[0].sends);
  EXPECT_FALSE(rank.here[1].sends);
  EXPECT_EQ(rank.shape().columns, 8U);
  EXPECT_EQ(cut_state(scan(), 2, 1).shape().rows, 4U);
  EXPECT_THROW(cut_state(scan(), 3, 0), Error);
  StateCut channels;  // each a head of its own
  channels.whole = {5120, 16};
  channels.members = {{5120, 5120}};
  channels.units = 64;
  EXPECT_EQ(cut_state(channels, 16, 3).here.size(), 4U);
  EXPECT_THROW(cut_state(channels, 5, 0), Error);
}

TEST(StateCut, AnyRanksFeedAnyOthers) {
  for (const StateCut& whole : {convolution(), scan()}) {
    for (const std::uint64_t senders : {1U, 2U, 4U}) {
      for (const std::uint64_t takers : {1U, 2U, 4U}) {
        for (std::uint64_t t = 0; t < takers; ++t) {
          const StateCut to = cut_state(whole, takers, t);
          StateAssembly assembly(to, sizeof(double));
          std::size_t numbers = 0;
          for (std::uint64_t s = 0; s < senders; ++s) {
            const StateCut from = cut_state(whole, senders, s);
            for (const HeadRange& heads : units_for(from, to)) {
              EXPECT_NE(assembly.missing(), std::nullopt);
              assembly.take(part(from, part_of(whole, from), heads));
              numbers += heads.count;
            }
          }
          EXPECT_EQ(assembly.missing(), std::nullopt) << senders << " to " << takers;
          EXPECT_EQ(numbers, whole.of_columns ? to.shape().columns : to.shape().rows);  // each once
          std::vector<double> got(assembly.bytes().size() / sizeof(double));
          get_numbers(assembly.bytes(), NumberWidth::f64, got);
          EXPECT_EQ(got, part_of(whole, to));
        }
      }
    }
  }
}

TEST(StateAssembly, RefusesWhatIsNoRunOfUnits) {
  const StateCut whole = convolution();
  const std::vector<double> numbers = numbers_of(whole);
  StateAssembly assembly(whole, sizeof(double));
  HandoffPart sound = part(whole, numbers, {0, 4, 20});
  assembly.take(sound);
  assembly.take(sound);  // a second time the same
  const auto refused = [&](const HandoffPart& wrong, const std::string& why) {
    try {
      assembly.take(wrong);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_NE(error.line().find(why), std::string::npos) << error.line();
    }
  };
  HandoffPart other = sound;
  other.bytes[3] ^= std::byte{1};
  refused(other, "came twice, and not the same");
  other = sound;
  other.header.heads = {1, 4, 20};
  refused(other, "cut within heads");
  for (const HeadRange& heads : {HeadRange{0, 4, 8}, HeadRange{18, 4, 20}, HeadRange{0, 0, 20}}) {
    other.header.heads = heads;
    refused(other, "has another shape");
  }
  other = sound;
  other.header.number_bytes = 4;
  refused(other, "has another shape");
}

}  // namespace
}  // namespace assay
