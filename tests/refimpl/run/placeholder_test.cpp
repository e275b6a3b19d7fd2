// Tokens that stand for images, videos and sound: refused in one line, whatever else the prompt holds.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/refimpl/models/made_weights.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

nlohmann::json small_config() {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"model_type", "qwen2"},
          {"vocab_size", 40},
          {"hidden_size", 16},
          {"intermediate_size", 12},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1}};
}

ProcessResult run_with(const nlohmann::json& more, const std::string& tokens) {
  nlohmann::json config = small_config();
  config.update(more);
  const TempDir place;
  put_made_model(place.path(), config.dump());
  return assay({"run", place.path().string(), "--tokens", tokens, "-n", "1", "--ignore-eos"});
}

TEST(Placeholders, AreRefusedByName) {
  for (const auto& [key, what] : {std::pair{"image_token_id", "image"},
                                  {"image_token_index", "image"},
                                  {"vision_start_token_id", "image"},
                                  {"video_token_id", "video"},
                                  {"audio_token_id", "audio"}}) {
    SCOPED_TRACE(key);
    const ProcessResult refused = run_with({{key, 7}}, "1,7,2");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find(key), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(std::string("stands for ") + what + " input"), std::string::npos)
        << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_EQ(run_with({{key, 7}}, "1,6,2").exit_code, 0);
  }
}

TEST(Placeholders, ThatAreNoNumbersAreNone) {
  EXPECT_EQ(run_with({{"image_token_id", nullptr}, {"video_token_id", -1}}, "1,7,2").exit_code, 0);
}

}  // namespace
}  // namespace assay::test
