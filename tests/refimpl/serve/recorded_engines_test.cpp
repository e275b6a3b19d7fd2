// What vLLM, SGLang and llama-server really answered (data/record_engines.py), saved or asked again, held against the model that
// they served.
#include <fmt/format.h>

#include "tests/refimpl/models/made_weights.h"
#include "tests/refimpl/serve/recorded_server.h"

namespace assay::test {
namespace {

std::vector<fs::path> recordings() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "data/fixtures/engines"))
    if (entry.path().extension() == ".json" && entry.path().parent_path().filename() != "engines")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// The model as data/tiny_models/engine_models.py makes it.
void put_engine_model(const fs::path& folder, const std::string& name) {
  put_made_model(folder, read_file(source_dir() / "data/fixtures/engines" / (name + ".json")));
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(source_dir() / "data/tinylm" / file, folder / file);
}

// Where a token is no whole character its name says nothing.
bool told_by_text(const std::string& name) {
  return name.ends_with("by text");
}

// The values of what was written, as each API tells them.
Document& own_values(Document& answer) {
  if (answer.contains("meta_info")) return answer["meta_info"]["output_token_logprobs"];
  if (answer.contains("completion_probabilities")) return answer["completion_probabilities"];
  Document& logprobs = answer["choices"][0]["logprobs"];
  return logprobs.contains("content") ? logprobs["content"] : logprobs["token_logprobs"];
}

double& value_of(Document& token) {
  Document& value = token.is_object() ? token["logprob"] : token.is_array() ? token[0] : token;
  return value.get_ref<double&>();
}

constexpr int kTokens = 5;  // behind each prompt; of the first request, by which a way is looked for, fewer

int tokens_wanted(const Document& asked) {
  for (const char* key : {"max_tokens", "n_predict"})
    if (asked.contains(key)) return asked[key];
  return asked["sampling_params"]["max_new_tokens"];
}

class RecordedEngine : public testing::TestWithParam<fs::path> {
 protected:
  RecordedEngine() : recording_(Document::parse(read_file(GetParam()))) {
    fs::create_directory(model());
    put_engine_model(model(), recording_["model"]);
  }
  fs::path model() const { return dir_ / "model"; }
  std::string precision() const { return recording_["precision"]; }

  ProcessResult saved(const Document& exchange) {
    write_file(dir_ / "answer.json", exchange["answer"].dump());
    std::vector<std::string> arguments = {"compare",  "logprobs",       (dir_ / "answer.json").string(),
                                          "--model",  model().string(), "--precision",
                                          precision()};
    const Document& prompt =
        exchange["asked"].contains("prompt") ? exchange["asked"]["prompt"] : exchange["asked"]["input_ids"];
    std::string ids;
    for (const Document& id : prompt) ids += (ids.empty() ? "" : ",") + id.dump();
    arguments.insert(arguments.end(), {"--prompt-tokens", ids, "--json", (dir_ / "report.json").string()});
    return assay(arguments);
  }
  ProcessResult asked(const std::string& url) {
    std::string lines;
    for (const Document& prompt : recording_["prompts"]) lines += prompt.get<std::string>() + "\n";
    write_file(dir_ / "prompts.txt", lines);
    return assay({"compare", "endpoint", url, "--model", model().string(), "--precision", precision(),
                  "--prompts", (dir_ / "prompts.txt").string(), "--tokens", std::to_string(kTokens)});
  }
  // Saved answers whose tokens' ids are known: by themselves, or by the prompt's that were sent.
  std::vector<Document> with_ids() const {
    std::vector<Document> found;
    for (const Document& exchange : recording_["exchanges"]) {
      const std::string name = exchange["name"];
      if (exchange["status"] == 200 && exchange["answer"].is_object() && !told_by_text(name) &&
          (name.find("echo") == 0 || name.find("ids") != std::string::npos || name.find("generate") == 0 ||
           name.find("prompt_logprobs") == 0 || name == "completion" || name == "completion with halves" ||
           name == "no candidates"))
        found.push_back(exchange);
    }
    return found;
  }

  Document recording_;
  TempDir dir_;
};

TEST_P(RecordedEngine, SavedAnswersAreTheModels) {
  ASSERT_GE(with_ids().size(), 2U);
  for (const Document& exchange : with_ids()) {
    const ProcessResult result = saved(exchange);
    EXPECT_EQ(result.exit_code, 0) << exchange["name"] << '\n' << result.out << result.err;
    EXPECT_NE(result.out.find("OK: "), std::string::npos) << result.out;
    const Document report = Document::parse(read_file(dir_ / "report.json"));
    if (precision() == "f32") {
      EXPECT_EQ(report["a_against_model"]["against_truth"]["rank_flips"], 0) << exchange["name"];
    }
  }
}

// These texts have bytes that are no characters, which names of tokens do not tell: nothing is said of what cannot be known.
TEST_P(RecordedEngine, NamesThatAreNoTokensAreMistrusted) {
  for (const Document& exchange : recording_["exchanges"]) {
    if (!told_by_text(exchange["name"])) continue;
    const ProcessResult result = saved(exchange);
    EXPECT_EQ(result.exit_code, 1) << exchange["name"] << '\n' << result.out << result.err;
    EXPECT_NE(result.out.find("MISTRUSTED: text response 0: the text is retokenized differently"),
              std::string::npos)
        << result.out;
  }
}

// llama-server tells nothing of tokens that end within a character: without the ids of all, those behind are not where they seem.
TEST_P(RecordedEngine, TokensLeftOutAreNotPassedOver) {
  for (const Document& exchange : recording_["exchanges"]) {
    if (!exchange["name"].get<std::string>().ends_with("some left out")) continue;
    const ProcessResult result = saved(exchange);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find("return_tokens"), std::string::npos) << result.err;
  }
}

TEST_P(RecordedEngine, ProbabilitiesAfterSamplersAreMistrusted) {
  for (const Document& exchange : recording_["exchanges"]) {
    if (exchange["name"] != "after samplers") continue;
    const ProcessResult result = saved(exchange);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_NE(result.out.find("MISTRUSTED"), std::string::npos) << result.out;
  }
}

TEST_P(RecordedEngine, AChangedValueIsFound) {
  for (Document exchange : with_ids()) {
    Document& values = own_values(exchange["answer"]);
    const std::size_t at = values.size() - 2;
    if (exchange["name"] == "echo of the prompt alone") continue;
    double& value = value_of(values[at]);
    value -= precision() == "f32" ? 0.001 : 0.5;
    const std::string told = fmt::format("ln p {:.6g}, truth ", value);
    const ProcessResult result = saved(exchange);
    EXPECT_EQ(result.exit_code, 1) << exchange["name"] << '\n' << result.out << result.err;
    EXPECT_NE(result.out.find("FAILED: 1 of "), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(told), std::string::npos) << told << '\n' << result.out;
  }
}

TEST_P(RecordedEngine, TheServerIsTheModel) {
  const RecordedServer server(recording_);
  const ProcessResult result = asked(server.url());
  EXPECT_EQ(server.unknown(), "");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("OK: "), std::string::npos) << result.out;
}

TEST_P(RecordedEngine, AChangedValueOfTheServerIsFound) {
  std::string told;
  for (Document& exchange : recording_["exchanges"]) {
    if (exchange["name"] != "" || exchange["status"] != 200 || tokens_wanted(exchange["asked"]) != kTokens)
      continue;
    Document& values = own_values(exchange["answer"]);
    double& value = value_of(values[values.size() - 3]);
    value -= precision() == "f32" ? 0.001 : 0.5;
    told = fmt::format("ln p {:.6g}, truth ", value);
    break;
  }
  ASSERT_NE(told, "");
  const RecordedServer server(recording_);
  const ProcessResult result = asked(server.url());
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.out.find("FAILED: 1 of "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(told), std::string::npos) << told << '\n' << result.out;
}

INSTANTIATE_TEST_SUITE_P(Recorded, RecordedEngine, testing::ValuesIn(recordings()), [](const auto& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace assay::test
