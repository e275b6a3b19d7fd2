#include "core/model/numbered_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

NumberedNames names_of(const std::vector<std::string>& names) {
  NumberedNames set;
  for (const std::string& name : names) set.add(name);
  set.settle();
  return set;
}

std::map<std::string, std::uint32_t> all_of(const NumberedNames& set) {
  std::map<std::string, std::uint32_t> all;
  set.for_each([&](const std::string& name, std::uint32_t value) { all[name] = value; });
  return all;
}

TEST(NumberedNames, HoldWhatWasAddedAndNothingBeside) {
  const std::vector<std::string> in = {
      "",           "head",       "7",           "a.3",     "a.3.b.10.w1", "a.3.b.2.w1",
      "a.3.b.3.w1", "a.4.b.3.w1", "a.4.b.11.w1", "1.2.3.x", "9.2.4.x",     "a.4294967295"};
  const NumberedNames set = names_of(in);
  EXPECT_EQ(set.size(), in.size());
  for (const std::string& name : in) EXPECT_TRUE(set.contains(name)) << name;
  for (const std::string name :
       {"hea",        "heads",      "8",           "a",          "a.4",        "a.03",         "a.3.b.w1",
        "a.3.b.4.w1", "a.3.b.1.w1", "a.3.b.02.w1", "a.4.b.2.w1", "a.2.b.3.w1", "a.4.b.10.w1",  "a.5.b.3.w1",
        "a.3.b.2.w2", "b.3.b.2.w1", "2.2.3.x",     "1.2.4.x",    "1.3.3.x",    "a.4294967296", "a.b",
        "."})
    EXPECT_FALSE(set.contains(name)) << name;
  for (std::size_t dots = 0; dots < 70; ++dots)
    EXPECT_EQ(set.may_have(dots), dots == 0 || dots == 1 || dots == 3 || dots == 4) << dots;
  EXPECT_TRUE(names_of({std::string(100, '.')}).may_have(100));
  EXPECT_FALSE(NumberedNames().contains(""));
  EXPECT_TRUE(NumberedNames().empty());
}

// Lists go round, and what follows is guessed from the round before: names that are no more than like the one guessed.
TEST(NumberedNames, InWhateverOrderTheyCome) {
  const std::vector<std::string> parts = {"l",  "e",  "w1", "w12",        "0",         "3",
                                          "03", "12", "3x", "4294967295", "4294967296"};
  std::mt19937 random(7);
  std::vector<std::string> names;
  while (names.size() < 3000) {
    std::string name;
    for (std::size_t left = 1 + random() % 5; left > 0; --left)
      name += (name.empty() ? "" : ".") + parts[random() % parts.size()];
    names.push_back(name);
  }
  for (std::size_t added = 0; added <= names.size(); added += 500) {
    const std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(added));
    const std::set<std::string> wanted(some.begin(), some.end());
    const NumberedNames set = names_of(some);
    EXPECT_EQ(set.size(), wanted.size());
    for (const std::string& name : names) EXPECT_EQ(set.contains(name), wanted.contains(name)) << name;
  }
}

// A map keeps what was said last of each name; in the order of letters, of numbers, or of none.
TEST(NumberedNames, KeepOfEachNameWhatAMapWould) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::string, std::uint32_t>> said;
    for (unsigned i = 0; i < 1 + random() % 150; ++i)
      said.emplace_back("l." + std::to_string(random() % 3) + ".e." + std::to_string(random() % 40),
                        random() % 8 == 0);
    const unsigned order = random() % 3;
    if (order == 0) std::stable_sort(said.begin(), said.end());
    if (order == 1)
      std::stable_sort(said.begin(), said.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    NumberedNames set;
    std::map<std::string, std::uint32_t> wanted;
    for (const auto& [name, value] : said) set.add(name, value), wanted[name] = value;
    set.settle();
    EXPECT_EQ(set.size(), wanted.size());
    std::map<std::string, std::uint32_t> told;
    set.for_each([&](const std::string& name, std::uint32_t value) {
      const std::size_t open = name.find('[');
      if (open == std::string::npos) {
        told[name] = value;
        return;
      }
      const std::size_t dash = name.find('-', open);
      for (int i = std::stoi(name.substr(open + 1)); i <= std::stoi(name.substr(dash + 1)); ++i)
        told[name.substr(0, open) + std::to_string(i)] = value;
    });
    EXPECT_EQ(told, wanted);
  }
}

TEST(NumberedNames, OfANameWithinARunThatIsSaidAgainTheLastCounts) {
  NumberedNames set;
  for (const std::uint32_t expert : {0, 1, 2, 3, 4, 5}) set.add("e." + std::to_string(expert), 7);
  set.add("e.3", 8);
  set.add("e.6", 7);
  set.settle();
  EXPECT_EQ(all_of(set), (std::map<std::string, std::uint32_t>{{"e.[0-2]", 7}, {"e.3", 8}, {"e.[4-6]", 7}}));
  EXPECT_EQ(set.size(), 7u);
}

// What is no number: with a zero before it, beyond 32 bits, with a sign.
TEST(NumberedNames, WhatLooksLikeANumberIsAName) {
  const NumberedNames set = names_of({"a.01", "a.99999999999", "a.-1", "a.1x", "a.[3]", "a.[5-2]", "a.[1-]"});
  for (const std::string name : {"a.01", "a.99999999999", "a.-1", "a.1x", "a.[3]", "a.[5-2]", "a.[1-]"})
    EXPECT_TRUE(set.contains(name)) << name;
  for (const std::string name : {"a.1", "a.02", "a.99999999998", "a.3", "a.4"})
    EXPECT_FALSE(set.contains(name)) << name;
}

TEST(NumberedNames, RunsAreToldAsOneAndTakenAsMany) {
  NumberedNames set;
  for (const std::uint32_t expert : {5, 0, 1, 2, 9, 10, 3})
    set.add("l.3.e." + std::to_string(expert) + ".w", expert == 10 ? 1 : 0);
  set.add("l.4.e.4.w");
  set.add("head", 2);
  set.settle();
  const std::map<std::string, std::uint32_t> told = {{"l.3.e.[0-3].w", 0}, {"l.3.e.5.w", 0}, {"l.3.e.9.w", 0},
                                                     {"l.3.e.10.w", 1},    {"l.4.e.4.w", 0}, {"head", 2}};
  EXPECT_EQ(all_of(set), told);
  NumberedNames again;
  for (const auto& [name, value] : told) again.add(name, value);
  again.settle();
  EXPECT_EQ(all_of(again), told);
  EXPECT_EQ(again.size(), set.size());
  EXPECT_TRUE(again.contains("l.3.e.3.w"));
  EXPECT_FALSE(again.contains("l.3.e.4.w"));
  EXPECT_FALSE(again.contains("l.4.e.0.w"));
}

TEST(NumberedNames, OfANameSaidTwiceTheLastCounts) {
  NumberedNames set;
  for (const std::uint32_t value : {1, 2, 3}) set.add("a.1", value), set.add("b", value);
  set.add("a.0", 3);
  set.settle();
  EXPECT_EQ(all_of(set), (std::map<std::string, std::uint32_t>{{"a.[0-1]", 3}, {"b", 3}}));
}

}  // namespace
}  // namespace assay
