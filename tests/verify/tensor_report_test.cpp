// What is found of tensors, as reports and state files have it: written, read again, refused where it is damaged.
#include "verify/tensor_report.h"
#include "core/system/json.h"

#include <gtest/gtest.h>

#include "core/formats/digest.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::vector<TensorReport> examples() {
  Numbers numbers;
  numbers.count = 6;
  numbers.nan = 1;
  numbers.zero = 2;
  numbers.subnormal = 1;
  numbers.min = -0.1;
  numbers.max = 3e-7;
  numbers.amax = 0.1;
  Numbers none_finite;
  none_finite.count = none_finite.inf = 2;
  const auto digest = Digest::parse(DigestKind::sha256, std::string(64, 'a'));
  return {{.name = "a\"b", .type = ElementType::BF16, .shape = {2, 3}, .sha256 = digest, .numbers = numbers},
          {.name = "scalar", .type = ElementType::F8_E8M0, .shape = {}, .sha256 = {}, .numbers = none_finite},
          {.name = "blocks", .type = ElementType::Q4_K, .shape = {256}, .sha256 = digest, .numbers = {}}};
}

TEST(TensorReports, ComeBackAsTheyWereWritten) {
  const std::vector<TensorReport> written = examples();
  const std::vector<TensorReport> read = read_tensor_reports(dump_json(to_json(written), -1), "state");
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].type, written[i].type);
    EXPECT_EQ(read[i].shape, written[i].shape);
    EXPECT_EQ(read[i].sha256, written[i].sha256);
    EXPECT_EQ(read[i].numbers, written[i].numbers);
  }
}

TEST(TensorReports, WithoutAFiniteValueHaveNoExtremes) {
  const Json json = to_json(examples());
  EXPECT_TRUE(json[1]["min"].is_null() && json[1]["max"].is_null() && json[1]["amax"].is_null());
  EXPECT_EQ(json[0]["amax"], 0.1);
  EXPECT_FALSE(json[2].contains("count"));
}

TEST(TensorReports, DamagedOnesAreRefused) {
  const std::string good =
      R"({"name": "a", "type": "F32", "shape": [2], "count": 2, "nan": 0, "inf": 0, "zeros": 0,
                               "subnormals": 0, "min": 1, "max": 2, "amax": 2})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return "[" + text.replace(at, from.size(), to) + "]";
  };
  EXPECT_NO_THROW(read_tensor_reports("[" + good + "]", "state"));
  const std::vector<std::string> damaged = {"[7]",
                                            with("\"name\"", "\"nom\""),
                                            with("\"F32\"", "\"F33\""),
                                            with("[2]", "[-2]"),
                                            with("[2]", "2"),
                                            with("\"count\": 2", "\"count\": \"2\""),
                                            with("\"nan\": 0", "\"nan\": 3"),
                                            with("\"inf\": 0", "\"inf\": 3"),
                                            with("\"min\": 1", "\"min\": null"),
                                            with("\"amax\"", "\"emax\""),
                                            with("\"shape\"", "\"sha256\": \"12\", \"shape\"")};
  for (const std::string& text : damaged) {
    try {
      read_tensor_reports(text, "state");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << text;
    }
  }
}

}  // namespace
}  // namespace assay
