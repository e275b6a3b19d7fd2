// `compare endpoint` against servers that are right, that serve another model, and that say other things the second time or in
// company.
#include "core/system/sanitizer.h"
#include "tests/refimpl/serve/faulty_proxy.h"

namespace assay::test {
namespace {

fs::path tinylm() {
  return source_dir() / "data/tinylm";
}

ProcessResult held(const std::string& url, std::vector<std::string> more = {},
                   const char* precision = "f32") {
  std::vector<std::string> arguments = {
      "compare", "endpoint", url, "--model",   tinylm().string(),       "--precision",
      precision, "--tokens", "6", "--longest", kSanitized ? "17" : "65"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return assay(arguments);
}

// The fourth token from the end, by a thousandth.
void spoil(Document& answer) {
  Document& values = answer["choices"][0]["logprobs"]["token_logprobs"];
  const std::size_t at = values.size() - std::min<std::size_t>(4, values.size() - 1);
  values[at] = values[at].get<double>() - 0.001;
}

TEST(CompareEndpoint, OfTheModelItselfIsRight) {
  for (const char* precision : {"f32", "bf16"}) {
    const ServedProgram server(tinylm(), {"--precision", precision});
    const ProcessResult result = held(url_of(server.port()), {"--seed", "7"}, precision);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("asked again 0 apart, all at once 0"), std::string::npos) << result.out;
  }
}

TEST(CompareEndpoint, JunitHasATestForEachPromptAndWayOfAsking) {
  const TempDir dir;
  const std::string file = (dir / "endpoint.xml").string();
  const ServedProgram server(tinylm());
  const FaultyProxy stale(server.port(), [](Document& answer, std::size_t times, std::size_t) {
    if (times == 1) spoil(answer);
  });
  EXPECT_EQ(held(stale.url(), {"--junit", file}).exit_code, 1);
  const std::string xml = read_file(file);
  const auto holds = [&](const std::string& text) {
    EXPECT_NE(xml.find(text), std::string::npos) << text << "\n" << xml;
  };
  holds("<testsuite name=\"assay compare endpoint\"");
  holds("<testcase classname=\"one by one\" name=\"short\">\n    </testcase>");
  holds(
      "<testcase classname=\"asked again\" name=\"short\">\n      <failure type=\"failed\" message=\"short, "
      "token ");
  holds("<testcase classname=\"compare endpoint\" name=\"verdict\">\n      <failure type=\"failed\"");
  EXPECT_EQ(xml.find("failures=\"0\""), std::string::npos);
  const FaultyProxy silent(server.port(), [](Document& answer, std::size_t, std::size_t) {
    answer["choices"][0]["logprobs"] = nullptr;
  });
  EXPECT_EQ(held(silent.url(), {"--junit", file}).exit_code, 1);
  EXPECT_NE(read_file(file).find("tests=\"1\" failures=\"0\" errors=\"1\""), std::string::npos)
      << read_file(file);
}

TEST(CompareEndpoint, OfAnotherModelIsFoundWhereItBegins) {
  const TempDir dir;
  for (const auto& entry : fs::directory_iterator(tinylm()))
    if (entry.path().filename() != "config.json")
      fs::create_symlink(entry.path(), dir.path() / entry.path().filename());
  Document config = Document::parse(read_file(tinylm() / "config.json"));
  config["rope_theta"] = config["rope_theta"].get<double>() * 1.5;
  write_file(dir / "config.json", config.dump());
  const ServedProgram server(dir.path());
  const ProcessResult result = held(url_of(server.port()), {"--json", (dir / "report.json").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("FAILED: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("the first: text short, token 2:"), std::string::npos) << result.out;
  const Document report = Document::parse(read_file(dir / "report.json"));
  EXPECT_EQ(report["sets"][0]["against_model"]["status"], "failed");
}

TEST(CompareEndpoint, SumsInEightBitsAreFound) {
  const ServedProgram server(tinylm(), {"--precision", "int8"});
  EXPECT_EQ(held(url_of(server.port())).exit_code, 1);
}

TEST(CompareEndpoint, WhatIsWrongTheSecondTimeIsToldApart) {
  const ServedProgram server(tinylm());
  const FaultyProxy stale(server.port(), [](Document& answer, std::size_t times, std::size_t) {
    if (times == 1) spoil(answer);
  });
  const TempDir dir;
  const ProcessResult result = held(stale.url(), {"--html", (dir / "page.html").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("asked again; right the first time"), std::string::npos) << result.out;
  const std::string page = read_file(dir / "page.html");
  EXPECT_NE(page.find("<p class=\"bad\">FAILED: "), std::string::npos);
  EXPECT_NE(page.find("<h2>asked again: error by budget</h2>"), std::string::npos);
}

// Of twenty tokens and more the eleventh is told without its value.
TEST(CompareEndpoint, ValuesThatDoNotComeAreMistrusted) {
  const ServedProgram server(tinylm());
  const FaultyProxy holes(server.port(), [](Document& answer, std::size_t, std::size_t) {
    Document& values = answer["choices"][0]["logprobs"]["token_logprobs"];
    if (values.size() > 20) values[10] = nullptr;
  });
  const TempDir dir;
  const ProcessResult result = held(holes.url(), {"--json", (dir / "report.json").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("log-probabilities did not come"), std::string::npos) << result.out;
  const Document report = Document::parse(read_file(dir / "report.json"));
  EXPECT_EQ(report["status"], "mistrusted");
  EXPECT_GT(report["missing"], 0);
  EXPECT_GT(report["sets"][0]["against_model"]["against_truth"]["kl_tokens"],
            0);  // candidates come by their ids
}

// A server of what it writes alone, as most of OpenAI's kind are.
TEST(CompareEndpoint, ACacheThatCannotBeExcludedIsMistrusted) {
  const ServedProgram server(tinylm());
  struct Kind {
    bool takes_salts, tells_cached;
    int exit_code;
    const char* said;
  };
  for (const Kind& kind : {Kind{false, false, 1, "may have come out of a cache"},
                           Kind{false, true, 0, "OK: "}, Kind{true, false, 0, "with a cache_salt"}}) {
    const FaultyProxy generating(server.port(), FaultyProxy::Exchange([&](const ProxiedExchange& exchange) {
                                   const Document& asked = exchange.asked;
                                   if (asked.contains("echo") || asked.contains("prompt_logprobs") ||
                                       (asked.contains("cache_salt") && !kind.takes_salts))
                                     return Document{{"error", {{"message", "no such field"}}}};
                                   Document answer = exchange.ask(asked);
                                   answer["usage"].erase("prompt_tokens_details");
                                   if (kind.tells_cached)
                                     answer["usage"]["prompt_tokens_details"] = {{"cached_tokens", 0}};
                                   return answer;
                                 }));
    const ProcessResult result = held(generating.url());
    EXPECT_EQ(result.exit_code, kind.exit_code) << result.out << result.err;
    EXPECT_NE(result.out.find(kind.said), std::string::npos) << result.out;
  }
}

TEST(CompareEndpoint, WhatCompanyChangesIsToldApart) {
  const ServedProgram server(tinylm());
  const FaultyProxy crowded(server.port(), [](Document& answer, std::size_t, std::size_t inside) {
    if (inside > 2) spoil(answer);
  });
  const ProcessResult result = held(crowded.url());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("all at once; right one by one"), std::string::npos) << result.out;
}

TEST(CompareEndpoint, OtherTokensOfThePromptAreMistrusted) {
  const ServedProgram server(tinylm());
  const FaultyProxy other(server.port(), [](Document& answer, std::size_t, std::size_t) {
    Document& ids = answer["choices"][0]["prompt_token_ids"];
    if (ids.is_array() && ids.size() > 1) ids[1] = ids[1].get<int>() + 1;
  });
  const ProcessResult result = held(other.url());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("MISTRUSTED: the server made other tokens of the prompt"), std::string::npos)
      << result.out << result.err;
}

TEST(CompareEndpoint, NoProbabilitiesNoServer) {
  const ServedProgram server(tinylm());
  const FaultyProxy silent(server.port(), [](Document& answer, std::size_t, std::size_t) {
    answer["choices"][0]["logprobs"] = nullptr;
  });
  const ProcessResult nothing = held(silent.url());
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_NE(nothing.out.find("MISTRUSTED: "), std::string::npos) << nothing.out << nothing.err;
  const ProcessResult nobody = held("http://127.0.0.1:9");
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_NE(nobody.err.find("does not answer"), std::string::npos);
  const TempDir dir;
  write_file(dir / "keys", "first-of-the-keys\n");
  const ServedProgram locked(tinylm(), {"--api-key-file", (dir / "keys").string()});
  const ProcessResult without = held(url_of(locked.port()));
  EXPECT_EQ(without.exit_code, 2) << without.out;
  EXPECT_NE(without.err.find("--api-key-file"), std::string::npos) << without.err;
}

// Neither is a verdict on the model: a name that the server does not have, and a key that it wants, are wrong usage everywhere.
TEST(Endpoints, AModelThatIsNotServedAndAMissingKeyAreWrongUsage) {
  const ServedProgram server(tinylm());
  const TempDir dir;
  write_file(dir / "keys", "first-of-the-keys\n");
  const ServedProgram locked(tinylm(), {"--api-key-file", (dir / "keys").string()});
  const std::string model = tinylm().string();
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"compare", "endpoint", "--model", model, "--served-as", "other"},
           {"fingerprint", "--model", "other"},
           {"bench", "--model", "other", "--prompt-as", "text"}}) {
    std::vector<std::string> asked = command;
    asked.push_back(url_of(server.port()));
    const ProcessResult other = assay(asked);
    EXPECT_EQ(other.exit_code, 2) << command[0] << other.out;
    EXPECT_NE(other.err.find("the server has no model \"other\"; it names \"tinylm\""), std::string::npos)
        << other.err;
    asked.back() = url_of(locked.port());
    const ProcessResult without = assay(asked);
    EXPECT_EQ(without.exit_code, 2) << command[0] << without.out;
    EXPECT_NE(without.err.find("--api-key-file"), std::string::npos) << without.err;
  }
}

TEST(CompareEndpoint, PromptsOfAFile) {
  const ServedProgram server(tinylm());
  const TempDir dir;
  write_file(dir / "prompts.txt", "The river\n\nOnce there was\n");
  const ProcessResult result = held(url_of(server.port()), {"--prompts", (dir / "prompts.txt").string(),
                                                            "--html", (dir / "p.html").string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("2 prompts"), std::string::npos);
  const std::string page = read_file(dir / "p.html");
  EXPECT_NE(page.find("line 3"), std::string::npos);
  EXPECT_NE(page.find(">he</span>"), std::string::npos);  // tokens were sent by their ids
  EXPECT_NE(page.find("token 1: ln p"), std::string::npos);
}

}  // namespace
}  // namespace assay::test
