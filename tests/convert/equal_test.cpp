// assay convert --equal: what it calls equal, and what it counts.
#include <limits>

#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void write(const fs::path& folder, const std::map<std::string, std::vector<float>>& tensors) {
  std::vector<test::TensorBytes> made;
  for (const auto& [name, values] : tensors)
    made.push_back({name, ElementType::F32, {1, values.size()}, test::float32_bytes(values)});
  test::write_checkpoint(folder, made, "");
}

int compare(const TempDir& dir, const std::vector<std::string>& options = {}, std::string* said = nullptr) {
  std::vector<std::string> command = {"convert", "--equal", dir / "a", dir / "b"};
  command.insert(command.end(), options.begin(), options.end());
  const auto result = assay(command);
  if (said != nullptr) *said = result.out + result.err;
  return result.exit_code;
}

TEST(Equal, AnInfinityEqualsNoNumberWhateverIsAllowed) {
  const TempDir dir;
  for (const float other : {1.0F, -kInfinity}) {
    write(dir / "a", {{"a.weight", {1, kInfinity}}});
    write(dir / "b", {{"a.weight", {1, other}}});
    for (const char* option : {"--rtol", "--atol", "--norm"})
      EXPECT_EQ(compare(dir, {option, "0.5"}), 1) << option << " " << other;
  }
  write(dir / "b", {{"a.weight", {1, kInfinity}}});
  EXPECT_EQ(compare(dir), 0);
  EXPECT_EQ(compare(dir, {"--norm", "0.5"}), 0);
}

// Of a complex number the first of its two values was compared, and the second written behind what there was room for.
TEST(Equal, ComplexNumbersAreTwoValuesEach) {
  const TempDir dir;
  const auto write_complex = [&](const fs::path& folder, const std::vector<float>& parts) {
    test::write_checkpoint(folder, {{"c", ElementType::C64, {parts.size() / 2}, test::float32_bytes(parts)}},
                           "");
  };
  write_complex(dir / "a", {1, 2, 3, 4});
  write_complex(dir / "b", {1, 2, 3, 5});
  std::string said;
  EXPECT_EQ(compare(dir, {}, &said), 1);
  EXPECT_NE(said.find("c: element 3: 4 against 5"), std::string::npos) << said;
  std::vector<float> many(200'000, 1);
  write_complex(dir / "a", many);
  write_complex(dir / "b", many);
  EXPECT_EQ(compare(dir, {}, &said), 0) << said;
  many.back() = 2;
  write_complex(dir / "b", many);
  EXPECT_EQ(compare(dir), 1);
  EXPECT_EQ(assay({"convert", dir / "a", dir / "out", "--to", "bf16"}).exit_code, 1) << "it stays complex";
}

TEST(Equal, EveryNameIsCountedOnce) {
  const TempDir dir;
  write(dir / "a", {{"a.weight", {1}}, {"b.weight", {1}}, {"c.weight", {1}}});
  write(dir / "b", {{"b.weight", {2}}, {"d.weight", {1}}, {"e.weight", {1}}, {"f.weight", {1}}});
  std::string said;
  EXPECT_EQ(compare(dir, {}, &said), 1);
  EXPECT_NE(said.find("DIFFERENT: 6 of 6 tensors"), std::string::npos) << said;
  for (const char* line : {"a.weight: only in the first", "c.weight: only in the first",
                           "d.weight: only in the second", "f.weight: only in the second"})
    EXPECT_NE(said.find(line), std::string::npos) << said;
}

TEST(Equal, TolerancesAreTheirFormulas) {
  const TempDir dir;
  write(dir / "a", {{"a.weight", {0, 100, 3, 4}}});
  write(dir / "b", {{"a.weight", {0.25F, 101, 3, 4}}});
  EXPECT_EQ(compare(dir), 1);
  EXPECT_EQ(compare(dir, {"--rtol", "0.02"}), 1) << "0.25 against 0 is no small part of either";
  EXPECT_EQ(compare(dir, {"--atol", "0.5"}), 1) << "1 beyond 100";
  EXPECT_EQ(compare(dir, {"--atol", "1"}), 0);
  EXPECT_EQ(compare(dir, {"--atol", "0.25", "--rtol", "0.01"}), 0);
  // The norm of the difference is 1.0308, that of the first 100.125.
  EXPECT_EQ(compare(dir, {"--norm", "0.0103"}), 0);
  EXPECT_EQ(compare(dir, {"--norm", "0.0102"}), 1);
  EXPECT_EQ(compare(dir, {"--norm", "0.1", "--rtol", "0.1"}), 2);
  for (const char* bad : {"-1", "nan", "inf"}) EXPECT_EQ(compare(dir, {"--atol", bad}), 2) << bad;
}

void write_doubles(const fs::path& folder, const std::vector<double>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  test::write_checkpoint(folder, {{"a.weight", ElementType::F64, {1, values.size()}, std::move(bytes)}}, "");
}

TEST(Equal, DoublesAreComparedByTheirValueFromEitherSide) {
  const TempDir dir;
  const auto both_ways = [&](const std::vector<std::string>& options = {}) {
    const int one = compare(dir, options);
    fs::rename(dir / "a", dir / "c");
    fs::rename(dir / "b", dir / "a");
    fs::rename(dir / "c", dir / "b");
    EXPECT_EQ(compare(dir, options), one);
    return one;
  };
  write(dir / "a", {{"a.weight", {0.1F, -0.0F, kInfinity}}});
  write_doubles(dir / "b", {0.1F, 0.0, kInfinity});
  EXPECT_EQ(both_ways(), 0) << "the same values, though stored otherwise";
  write(dir / "a", {{"a.weight", {0.1F, -0.0F, kInfinity}}});
  write_doubles(dir / "b", {0.1, 0.0, kInfinity});
  EXPECT_EQ(both_ways(), 1) << "0.1 is no float32, though it rounds to the other's";
  EXPECT_EQ(both_ways({"--rtol", "1e-7"}), 0);
  write_doubles(dir / "a", {0.5, 1e300});
  write_doubles(dir / "b", {0.5 + 1e-14, 1e300});
  EXPECT_EQ(both_ways(), 1);
  EXPECT_EQ(both_ways({"--atol", "1e-13"}), 0) << "what is allowed is allowed of doubles, too";
}

TEST(Equal, NoTensorAtAllIsEqualToNothing) {
  const TempDir dir;
  write(dir / "a", {});
  write(dir / "b", {});
  std::string said;
  EXPECT_EQ(compare(dir, {}, &said), 2);
  EXPECT_NE(said.find("there is no tensor in it"), std::string::npos) << said;
}

TEST(Equal, OptionsWithoutEffectAreRefused) {
  const TempDir dir;
  write(dir / "a", {{"a.weight", {1}}});
  write(dir / "b", {{"a.weight", {1}}});
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--include", "x"},
                                             {"--exclude", "x"},
                                             {"--only-mtp"},
                                             {"--to", "bf16"},
                                             {"--max-shard-size", "1GB"},
                                             {"--resume"},
                                             {"--no-prove"},
                                             {"--tp", "2"}}) {
    std::string said;
    EXPECT_EQ(compare(dir, options, &said), 2) << options.front();
    EXPECT_NE(said.find("does not go with --equal"), std::string::npos) << said;
  }
  EXPECT_EQ(compare(dir, {"--drop-mtp", "--rtol", "0.1"}), 0);
  EXPECT_EQ(assay({"convert", dir / "a", dir / "c", "--to", "bf16", "--rtol", "0.1"}).exit_code, 2);
}

}  // namespace
}  // namespace assay
