// `compare endpoint` against a server with a known fault: found, and the first token that it touches is named. Without a fault, of
// every family of data/models in float32 and in bfloat16: no alarm (ASSAY_SEEDS of each, 1 where it is not set).
#include <bit>
#include <cstring>

#include "core/system/sanitizer.h"
#include "tests/refimpl/serve/faulty_proxy.h"

namespace assay::test {
namespace {

fs::path model_of(const std::string& name) {
  return source_dir() / "data/models" / name;
}

struct HeldAgainst {
  ProcessResult process;
  Document report;
  const Document& side(std::size_t set) const { return report["sets"][set]["against_model"]; }
  // Of the text of that index, the token that is beyond its budget first.
  std::size_t first(std::size_t set = 0) const { return side(set)["first_beyond"]["token"]; }
};
HeldAgainst held(const std::string& url, const fs::path& model, std::vector<std::string> more = {},
                 const char* precision = "f32") {
  const TempDir dir;
  std::vector<std::string> arguments = {
      "compare", "endpoint", url, "--model", model.string(),           "--precision",
      precision, "--tokens", "3", "--json",  (dir / "r.json").string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  HeldAgainst result{assay(arguments), {}};
  EXPECT_LE(result.process.exit_code, 1) << result.process.err;
  if (result.process.exit_code <= 1) result.report = Document::parse(read_file(dir / "r.json"));
  return result;
}

// The model with another config, or other weights.
class Mutant {
 public:
  Mutant(const std::string& name, const std::function<void(Document& config)>& change) {
    for (const auto& entry : fs::directory_iterator(model_of(name)))
      if (entry.path().filename() != "config.json")
        fs::create_symlink(entry.path(), dir_.path() / entry.path().filename());
    Document config = Document::parse(read_file(model_of(name) / "config.json"));
    change(config);
    write_file(dir_ / "config.json", config.dump());
  }
  const fs::path& path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

HeldAgainst held_mutant(const std::string& name, const fs::path& served, const char* precision = "f32") {
  const ServedProgram server(served, {"--token-ids-only", "--precision", precision});
  HeldAgainst result = held(url_of(server.port()), model_of(name), {"--longest", "17"}, precision);
  EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
  return result;
}

TEST(EndpointMutants, AWrongRopeTheta) {
  const Mutant mutant("llama", [](Document& config) { config["rope_theta"] = 800.0; });
  EXPECT_EQ(held_mutant("llama", mutant.path()).first(), 2U);  // where one token stands behind another
}

// Of a window of 7, position 7 is the first that no longer sees position 0: what it says is the probability of token 8.
TEST(EndpointMutants, AWindowOffByOne) {
  for (const int window : {6, 8}) {
    const Mutant mutant("mistral", [&](Document& config) { config["sliding_window"] = window; });
    EXPECT_EQ(held_mutant("mistral", mutant.path()).first(),
              static_cast<std::size_t>(std::min(window, 7) + 1))
        << window;
  }
}

TEST(EndpointMutants, ExpertsThatAreNotNormalized) {
  const Mutant mutant("qwen3-moe", [](Document& config) { config["norm_topk_prob"] = false; });
  EXPECT_EQ(held_mutant("qwen3-moe", mutant.path()).first(), 1U);
}

// Routers near a tie excuse no fault: the other choice of an expert does not say what these say.
TEST(EndpointMutants, OfMixturesInBfloat16) {
  const Mutant unnormalized("qwen3-moe", [](Document& config) { config["norm_topk_prob"] = false; });
  held_mutant("qwen3-moe", unnormalized.path(), "bf16");
  const Mutant one_expert_less("gpt-oss", [](Document& config) {
    for (const char* key : {"num_experts_per_tok", "experts_per_token"}) config[key] = 1;
  });
  held_mutant("gpt-oss", one_expert_less.path(), "bf16");
  const Mutant rope("kimi-k2", [](Document& config) { config["rope_theta"] = 10.0; });
  held_mutant("kimi-k2", rope.path(), "bf16");
}

// Nor do choices of keys near a tie: what says who attends to one more of them, or one less, no choice of seven says.
TEST(EndpointMutants, OfKeysThatAreChosen) {
  for (const int keys : {6, 8}) {
    const Mutant mutant("deepseek-v32", [&](Document& config) { config["index_topk"] = keys; });
    for (const char* precision : {"f32", "bf16"}) held_mutant("deepseek-v32", mutant.path(), precision);
  }
}

// Its plain computation chooses one of two experts that are a rounding apart, the server the other.
TEST(EndpointMutants, ARouterNearATieIsTold) {
  const ServedProgram server(model_of("gpt-oss"), {"--token-ids-only", "--precision", "bf16"});
  const HeldAgainst result = held(url_of(server.port()), model_of("gpt-oss"), {"--longest", "17"}, "bf16");
  EXPECT_EQ(result.process.exit_code, 0) << result.process.out;
  EXPECT_NE(result.process.out.find("1 router near a tie chose otherwise"), std::string::npos)
      << result.process.out;
  ASSERT_EQ(result.side(0)["other_experts"].size(), 1U);
  EXPECT_NE(
      result.side(0)["other_experts"][0].get<std::string>().find("layers.2, token 0: expert 0 in place of 1"),
      std::string::npos)
      << result.side(0)["other_experts"];
}

// Likewise of two keys.
TEST(EndpointMutants, AChoiceOfKeysNearATieIsTold) {
  const ServedProgram server(model_of("deepseek-v32"), {"--token-ids-only", "--precision", "bf16"});
  const HeldAgainst result =
      held(url_of(server.port()), model_of("deepseek-v32"), {"--seed", "2", "--longest", "17"}, "bf16");
  EXPECT_EQ(result.process.exit_code, 0) << result.process.out;
  EXPECT_NE(result.process.out.find("1 choice of keys near a tie was another"), std::string::npos)
      << result.process.out;
  ASSERT_EQ(result.side(0)["other_keys"].size(), 1U);
  EXPECT_NE(
      result.side(0)["other_keys"][0].get<std::string>().find("layers.2, token 15: key 2 in place of 1"),
      std::string::npos)
      << result.side(0)["other_keys"];
  EXPECT_TRUE(result.side(0)["other_experts"].empty());
}

// A router whose rule is the model's own.
TEST(EndpointMutants, ARouterOfDeepseekV4NearATieIsTold) {
  const ServedProgram server(model_of("deepseek-v4"), {"--token-ids-only", "--precision", "bf16"});
  const HeldAgainst result =
      held(url_of(server.port()), model_of("deepseek-v4"), {"--seed", "6", "--longest", "17"}, "bf16");
  EXPECT_EQ(result.process.exit_code, 0) << result.process.out;
  ASSERT_EQ(result.side(0)["other_experts"].size(), 2U);
  EXPECT_NE(
      result.side(0)["other_experts"][0].get<std::string>().find("layers.2, token 1: expert 5 in place of 6"),
      std::string::npos)
      << result.side(0)["other_experts"];
}

// No token is beyond its budget, wide where the plain computation turned as well: all together are, but for one choice of keys.
TEST(EndpointMutants, AChoiceThatOnlyTheRootMeanSquareShows) {
  const ServedProgram server(model_of("deepseek-v32"), {"--token-ids-only", "--precision", "bf16"});
  const HeldAgainst result =
      held(url_of(server.port()), model_of("deepseek-v32"), {"--seed", "5", "--longest", "17"}, "bf16");
  EXPECT_EQ(result.process.exit_code, 0) << result.process.out;
  ASSERT_EQ(result.side(0)["other_keys"].size(), 1U);
  EXPECT_NE(
      result.side(0)["other_keys"][0].get<std::string>().find("layers.1, token 14: key 3 in place of 10"),
      std::string::npos)
      << result.side(0)["other_keys"];
}

// One matrix of one layer, rounded to 255 steps.
TEST(EndpointMutants, OneLayerInEightBits) {
  const TempDir dir;
  fs::copy_file(model_of("llama") / "config.json", dir / "config.json");
  std::string file = read_file(model_of("llama") / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  const Document tensors = Document::parse(file.substr(8, header));
  const Document& tensor = tensors["model.layers.1.mlp.down_proj.weight"];
  ASSERT_EQ(tensor["dtype"], "BF16");
  const std::size_t from = 8 + header + tensor["data_offsets"][0].get<std::size_t>(),
                    to = 8 + header + tensor["data_offsets"][1].get<std::size_t>();
  const auto value = [&](std::size_t at) {
    std::uint16_t half = 0;
    std::memcpy(&half, &file[at], 2);
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  };
  float largest = 0;
  for (std::size_t at = from; at < to; at += 2) largest = std::max(largest, std::abs(value(at)));
  for (std::size_t at = from; at < to; at += 2) {
    const float rounded = std::round(value(at) / largest * 127) * largest / 127;
    const auto half = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
    std::memcpy(&file[at], &half, 2);
  }
  write_file(dir / "model.safetensors", file);
  EXPECT_EQ(held_mutant("llama", dir.path()).first(), 1U);
}

// The likeliest token is told with the second's probability, and the other way round.
void swap_likeliest(Document& answer, std::size_t, std::size_t) {
  Document& logprobs = answer["choices"][0]["logprobs"];
  for (std::size_t i = 0; i < logprobs["tokens"].size(); ++i) {
    Document& top = logprobs["top_logprobs"][i];
    if (!top.is_object() || top.size() < 2) continue;
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, value] : top.items()) order.emplace_back(-value.get<double>(), name);
    std::sort(order.begin(), order.end());
    std::swap(top[order[0].second], top[order[1].second]);
    logprobs["token_logprobs"][i] = top[logprobs["tokens"][i].get<std::string>()];
  }
}

TEST(EndpointMutants, TheTwoLikeliestSwapped) {
  const ServedProgram server(model_of("llama"), {"--token-ids-only"});
  const FaultyProxy proxy(server.port(), swap_likeliest);
  const HeldAgainst result = held(proxy.url(), model_of("llama"), {"--longest", "2"});
  EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
  EXPECT_EQ(result.first(), 2U);  // of two tokens drawn, neither likely: the first that it writes
}

// No other choice of an expert says what these say, either.
TEST(EndpointMutants, TheTwoLikeliestSwappedOfAMixtureInBfloat16) {
  const ServedProgram server(model_of("qwen3-moe"), {"--token-ids-only", "--precision", "bf16"});
  const FaultyProxy proxy(server.port(), swap_likeliest);
  const HeldAgainst result = held(proxy.url(), model_of("qwen3-moe"), {"--longest", "17"}, "bf16");
  EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
}

TEST(EndpointMutants, ATemperatureInTheProbabilities) {
  const ServedProgram server(model_of("llama"), {"--token-ids-only", "--max-logprobs", "96"});
  const FaultyProxy proxy(server.port(), FaultyProxy::Exchange([](const ProxiedExchange& exchange) {
                            Document asked = exchange.asked;
                            asked["logprobs"] = 96;
                            Document answer = exchange.ask(asked);
                            if (!answer.contains("choices")) return answer;
                            Document& logprobs = answer["choices"][0]["logprobs"];
                            for (std::size_t i = 0; i < logprobs["tokens"].size(); ++i) {
                              Document& top = logprobs["top_logprobs"][i];
                              if (!top.is_object()) continue;
                              double sum = 0;
                              for (const auto& [name, value] : top.items())
                                sum += std::exp(value.get<double>() / 0.9);
                              for (auto& [name, value] : top.items())
                                value = value.get<double>() / 0.9 - std::log(sum);
                              logprobs["token_logprobs"][i] = top[logprobs["tokens"][i].get<std::string>()];
                            }
                            return answer;
                          }));
  const HeldAgainst result = held(proxy.url(), model_of("llama"), {"--longest", "17"});
  EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
  EXPECT_EQ(result.first(), 1U);
  EXPECT_NE(result.process.out.find("temperature"), std::string::npos) << result.process.out;
}

// The second time a prompt comes, its first block of 16 is that of another prompt: position 16 is the first that reads it.
TEST(EndpointMutants, AStalePrefixBlock) {
  const ServedProgram server(model_of("llama"), {"--token-ids-only"});
  constexpr std::size_t kBlock = 16;
  const FaultyProxy proxy(
      server.port(), FaultyProxy::Exchange([](const ProxiedExchange& exchange) {
        Document answer = exchange.ask(exchange.asked);
        if (exchange.times != 1 || exchange.asked["prompt"].size() <= kBlock) return answer;
        Document other = exchange.asked;
        for (std::size_t i = 0; i < kBlock; ++i)
          other["prompt"][i] = (other["prompt"][i].get<int>() + 1) % 96;
        Document stale = exchange.ask(other);
        for (const char* key : {"tokens", "token_logprobs", "top_logprobs"})
          for (std::size_t i = 0; i <= kBlock; ++i)
            stale["choices"][0]["logprobs"][key][i] = answer["choices"][0]["logprobs"][key][i];
        stale["choices"][0]["prompt_token_ids"] = answer["choices"][0]["prompt_token_ids"];
        return stale;
      }));
  const HeldAgainst result = held(proxy.url(), model_of("llama"), {"--longest", "65"});
  EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
  EXPECT_EQ(result.side(0)["status"], "passed");
  EXPECT_EQ(result.first(1), kBlock + 1);
}

// ---- without a fault

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir() / "data/models"))
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class EndpointOf : public testing::TestWithParam<std::string> {};

TEST_P(EndpointOf, AFamilyRaisesNoAlarm) {
  if (kSanitized && GetParam() != "llama") GTEST_SKIP() << "one is enough here";
  const char* wanted = std::getenv("ASSAY_SEEDS");
  const int seeds = wanted != nullptr ? std::stoi(wanted) : 1;
  for (const char* precision : {"f32", "bf16"}) {
    const ServedProgram server(model_of(GetParam()), {"--token-ids-only", "--precision", precision});
    for (int seed = 0; seed < seeds; ++seed) {
      const HeldAgainst result =
          held(url_of(server.port()), model_of(GetParam()),
               {"--seed", std::to_string(seed), "--longest", wanted != nullptr ? "129" : "17"}, precision);
      EXPECT_EQ(result.process.exit_code, 0) << precision << ", seed " << seed << "\n" << result.process.out;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DataModels, EndpointOf, testing::ValuesIn(families()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace assay::test
