#include "core/model/quantized_layers.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Targets = std::vector<std::string>;

std::vector<QuantizationConfig::Group> layers_in(const std::string& text) {
  return parse_quantized_layers(ParsedJson(text), "config.json");
}

TEST(QuantizedLayers, AreGroupedByAlgorithmAndGroupSize) {
  const auto groups = layers_in(R"({
      "b": {"quant_algo": "NVFP4", "group_size": 16}, "a.x": {"group_size": 32, "quant_algo": "NVFP4"},
      "a": {"quant_algo": "NVFP4", "group_size": 16, "other": {"group_size": 3, "quant_algo": "FP8"}},
      "d": {"quant_algo": "FP8", "group_size": null}, "c": {"quant_algo": "FP8", "group_size": -1}, "e": {},
      "*.y": {"quant_algo": "FP8"}, "f": "FP8", "g": [{"quant_algo": "FP8"}], "h": null})");
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].format, "");
  EXPECT_EQ(groups[0].targets, Targets{"e"});
  EXPECT_EQ(groups[1].format, "FP8");
  EXPECT_FALSE(groups[1].group_size.has_value());
  EXPECT_EQ(groups[1].targets, (Targets{"*.y", "c", "d"}));
  EXPECT_TRUE(groups[1].modules.empty());
  EXPECT_EQ(groups[2].format, "NVFP4");
  EXPECT_EQ(groups[2].name, "NVFP4");
  EXPECT_EQ(groups[2].group_size, 16u);
  EXPECT_EQ(groups[2].targets, (Targets{"a", "b"}));
  EXPECT_EQ(groups[3].group_size, 32u);
  EXPECT_TRUE(groups[3].targets.empty());
  EXPECT_TRUE(groups[3].modules.contains("a.x"));
  EXPECT_EQ(groups[3].modules.size(), 1u);
}

TEST(QuantizedLayers, OfAModuleSaidTwiceTheLastCounts) {
  const auto groups = layers_in(
      R"({"a.1": {"quant_algo": "FP8"}, "b": {"quant_algo": "FP8"}, "a.1": {"quant_algo": "NVFP4"}})");
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].targets, Targets{"b"});
  EXPECT_FALSE(groups[0].modules.contains("a.1"));
  EXPECT_EQ(groups[1].format, "NVFP4");
  EXPECT_TRUE(groups[1].modules.contains("a.1"));
}

TEST(QuantizedLayers, TheFileSaysWhatADocumentSays) {
  test::TempDir dir;
  std::string layers = R"("y": {"quant_algo": "FP8"}, "x.5": {"quant_algo": "NVFP4", "group_size": 16})";
  for (int expert = 0; expert < 12; ++expert)
    layers +=
        fmt::format(R"(, "l.3.e.{}.up": {{"quant_algo": "{}"}})", expert, expert == 7 ? "FP8" : "NVFP4");
  const std::string text = R"({"model_type": "llama", "quantization_config": {"quant_method": "modelopt",
      "quantized_layers": {)" +
                           layers + "}}}";
  test::write_file(dir / "config.json", text);
  const auto file = ModelConfig::read(dir / "config.json").quantization()->layers;
  const auto document = ModelConfig::from_json(parse_json(text, "c"), "c").quantization()->layers;
  ASSERT_EQ(file.size(), 3u);
  ASSERT_EQ(document.size(), 3u);
  for (std::size_t i : {0, 1, 2}) {
    EXPECT_EQ(file[i].format, document[i].format);
    EXPECT_EQ(file[i].group_size, document[i].group_size);
    EXPECT_EQ(file[i].targets, document[i].targets);
    EXPECT_EQ(file[i].modules.size(), document[i].modules.size());
    for (int expert = 0; expert < 13; ++expert) {
      const std::string name = fmt::format("l.3.e.{}.up", expert);
      const bool is_here = expert < 12 && i == (expert == 7 ? 0 : 1);
      EXPECT_EQ(file[i].modules.contains(name), is_here) << i << name;
      EXPECT_EQ(document[i].modules.contains(name), is_here) << i << name;
    }
  }
  EXPECT_TRUE(file[2].modules.contains("x.5"));
}

// Of a file's modules what is said again byte for byte is not read again.
TEST(QuantizedLayers, WhatIsSaidAgainIsOfTheModuleItIsSaidOf) {
  test::TempDir dir;
  const std::string fp8 = R"({"quant_algo": "FP8"})", fp4 = R"({"quant_algo": "NVFP4", "group_size": 16})";
  const std::vector<std::pair<std::string, std::string>> said = {{"l.0", fp8},
                                                                 {"l.1", fp8},
                                                                 {"l.2", "[" + fp8 + "]"},
                                                                 {"l.3", fp8},
                                                                 {"quant_algo", fp8},
                                                                 {"l.4", "\"FP8\""},
                                                                 {"l.5", fp4},
                                                                 {"l.6", R"({"in": )" + fp4 + "}"},
                                                                 {"l.7", fp4},
                                                                 {"l.8", "[1, [2]]"},
                                                                 {"l.9", fp4},
                                                                 {"l.10", "5"},
                                                                 {"l.11", fp4},
                                                                 {"l.12", R"({"quant_algo": "FP8"  })"},
                                                                 {"l.13", "{}"},
                                                                 {"l.14", "{}"},
                                                                 {"l.15", fp8},
                                                                 {"l.16", fp8}};
  std::string layers;
  for (const auto& [module, text] : said)
    layers += fmt::format("{}\"{}\": {}", layers.empty() ? "" : ", ", module, text);
  const std::string text =
      R"({"model_type": "llama", "quantization_config": {"quant_method": "modelopt", "quantized_layers": {)" +
      layers + R"(}}, "text_config": {"quantized_layers": {"l.0": )" + fp4 + "}}}";
  test::write_file(dir / "config.json", text);
  const auto file = ModelConfig::read(dir / "config.json").quantization()->layers;
  const auto document = ModelConfig::from_json(parse_json(text, "c"), "c").quantization()->layers;
  ASSERT_EQ(file.size(), 3u);  // no word, FP8, NVFP4
  ASSERT_EQ(document.size(), 3u);
  const std::set<int> eights = {0, 1, 3, 12, 15, 16}, fours = {5, 7, 9, 11}, silent = {6, 13, 14};
  for (int layer = 0; layer < 17; ++layer) {
    const std::string name = fmt::format("l.{}", layer);
    const bool wanted[] = {silent.contains(layer), eights.contains(layer), fours.contains(layer)};
    for (std::size_t i : {0, 1, 2}) {
      EXPECT_EQ(file[i].modules.contains(name), wanted[i]) << name << file[i].format;
      EXPECT_EQ(document[i].modules.contains(name), wanted[i]) << name << document[i].format;
    }
  }
  EXPECT_EQ(file[1].targets, Targets{"quant_algo"});
}

TEST(QuantizedLayers, WhatIsNoSizeIsRefused) {
  for (const std::string bad : {"1.5", "-2", "\"16\"", "true", "[16]", "{}"}) {
    try {
      layers_in(R"({"a": {"quant_algo": "FP8", "group_size": )" + bad + "}}");
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitBadInput);
      EXPECT_NE(error.line().find("group_size is "), std::string::npos) << error.line();
    }
  }
  EXPECT_THROW(layers_in("{"), Error);
  std::string many = "{";
  for (int i = 0; i <= 1000; ++i) many += fmt::format(R"("{}": {{"group_size": {}}},)", i, i);
  EXPECT_THROW(layers_in(many + R"("z": {}})"), Error);
}

}  // namespace
}  // namespace assay
