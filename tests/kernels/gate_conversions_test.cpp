// What the gate converts is converted: K-quants fill their blocks.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/gate/suites.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

TEST(GateConversions, OfTheWideTwinHaveKQuants) {
  const std::vector<GateFigure> figures = gate_conversions(test::source_dir() / "data", 2);
  const auto word = [&](const std::string& spec) {
    const auto it = std::find_if(figures.begin(), figures.end(), [&](const GateFigure& f) {
      return f.name == "wide-bf16 to " + spec + ": tensors";
    });
    return it == figures.end() ? "" : it->word;
  };
  // llama.cpp's mixes: of two layers half the values and downs, and the output, in Q6_K.
  EXPECT_EQ(word("gguf:q6_k"), "5 F32, 16 Q6_K");
  EXPECT_NE(word("gguf:q4_k_m").find(" Q4_K, "), std::string::npos) << word("gguf:q4_k_m");
  EXPECT_NE(word("gguf:q4_k_m").find(" Q6_K"), std::string::npos) << word("gguf:q4_k_m");
  EXPECT_NE(word("gguf:q2_k").find(" Q2_K"), std::string::npos) << word("gguf:q2_k");
}

}  // namespace
}  // namespace assay
