// `fingerprint` against servers that give what a test says, and against every family of data/models behind `assay serve`.
#include <atomic>
#include <functional>
#include <numeric>

#include "core/system/sanitizer.h"
#include "tests/refimpl/fingerprint/made_logits.h"
#include "tests/refimpl/serve/served_program.h"

namespace assay::test {
namespace {

enum class Gives { whole, biased, raw, no_bias, nothing };

struct Habits {
  Gives gives = Gives::whole;
  std::size_t most = 20;  // of the likeliest
  double noise = 0;
  bool ids = true;      // takes prompts of them, and names tokens by them
  bool lists = true;    // takes several prompts
  bool halves = false;  // names by texts, and one name for all tokens that are no whole character
};

// /v1/completions and /v1/chat/completions of a made-up model, in OpenAI's form.
class MadeServer {
 public:
  MadeServer(MadeModel model, Habits habits) : model_(model), habits_(habits) {
    server_.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"data":[{"id":"made"}]})", "application/json");
    });
    server_.Post("/v1/completions", [this](const httplib::Request& request, httplib::Response& response) {
      response.status = 400;
      std::string answer = R"({"error":{"message":"not taken here"}})";
      if (const auto said = completion(Document::parse(request.body))) {
        response.status = 200;
        answer = said->dump();
      }
      response.set_content(answer, "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~MadeServer() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::size_t prompts_beyond_the_vocabulary() const { return beyond_; }

 private:
  std::optional<std::uint64_t> number_of(const Document& prompt) {
    std::uint64_t number = 1;
    if (prompt.is_string()) {
      for (const char c : prompt.get<std::string>()) number = number * 131 + static_cast<unsigned char>(c);
      return number;
    }
    if (!habits_.ids) return std::nullopt;
    for (const Document& id : prompt) {
      if (id.get<std::size_t>() >= model_.vocabulary) {
        ++beyond_;
        return std::nullopt;
      }
      number = number * 1'000'003 + id.get<std::uint64_t>();
    }
    return number;
  }

  std::optional<Document> completion(const Document& asked) {
    const std::size_t top = asked.value("logprobs", std::size_t{0});
    if (habits_.gives != Gives::whole && top > habits_.most) return std::nullopt;
    if (!habits_.ids && asked.contains("return_tokens_as_token_ids")) return std::nullopt;
    const Document& prompt = asked["prompt"];
    const bool several = prompt.is_array() && !prompt.front().is_number();
    if (several && !habits_.lists) return std::nullopt;
    Document choices = Document::array(), prompts = several ? prompt : Document::array({prompt});
    for (const Document& each : prompts) {
      const auto number = number_of(each);
      if (!number) return std::nullopt;
      const auto choice = choice_of(*number, asked, std::min(top, model_.vocabulary));
      if (!choice) return std::nullopt;
      choices.push_back(*choice);
      choices.back()["index"] = choices.size() - 1;
    }
    const std::size_t length = prompt.is_string()
                                   ? 1 + std::count(prompt.get_ref<const std::string&>().begin(),
                                                    prompt.get_ref<const std::string&>().end(), ' ')
                                   : prompt.size();
    return Document{{"choices", choices}, {"usage", {{"prompt_tokens", length}, {"completion_tokens", 1}}}};
  }

  std::optional<Document> choice_of(std::uint64_t prompt, const Document& asked, std::size_t top) {
    const std::vector<double> plain = model_.logits(prompt);
    std::vector<double> lifted = plain;
    if (asked.contains("logit_bias") && habits_.gives != Gives::no_bias)
      for (const auto& [id, bias] : asked["logit_bias"].items()) {
        if (std::stoul(id) >= lifted.size()) return std::nullopt;
        lifted[std::stoul(id)] += bias.get<double>();
      }
    std::vector<double> told = log_softmax(habits_.gives == Gives::biased ? lifted : plain);
    for (double& x : told) x = std::min(0.0, x + habits_.noise * MadeModel::normal(++drawn_));
    const auto chosen =
        static_cast<std::size_t>(std::max_element(lifted.begin(), lifted.end()) - lifted.begin());
    std::vector<std::size_t> order(told.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return told[a] > told[b]; });
    Document likeliest = Document::object();
    for (std::size_t i = 0; i < top; ++i) likeliest[name(order[i])] = told[order[i]];
    likeliest[name(chosen)] = told[chosen];
    Document logprobs = nullptr;
    if (habits_.gives != Gives::nothing)
      logprobs = {{"tokens", Document::array({name(chosen)})},
                  {"token_logprobs", Document::array({told[chosen]})},
                  {"top_logprobs", Document::array({likeliest})}};
    return Document{{"text", "x"}, {"finish_reason", "length"}, {"logprobs", logprobs}};
  }

  std::string name(std::size_t id) const {
    if (habits_.halves && id % 4 == 0) return "\xEF\xBF\xBD";
    return (habits_.ids && !habits_.halves ? "token_id:" : " word") + std::to_string(id);
  }

  MadeModel model_;
  Habits habits_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::atomic<std::uint64_t> drawn_ = 1u << 30;
  std::atomic<std::size_t> beyond_ = 0;
};

struct Taken {
  ProcessResult process;
  Document report;
};
Taken taken(const std::string& url, std::vector<std::string> more = {}) {
  const TempDir dir;
  std::vector<std::string> arguments = {"fingerprint", url, "--json", (dir / "report.json").string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Taken result{assay(arguments), {}};
  if (result.process.exit_code <= 1) result.report = Document::parse(read_file(dir / "report.json"));
  return result;
}

void expect_hidden(const Taken& result, std::size_t hidden, const char* way) {
  EXPECT_EQ(result.process.exit_code, 0) << result.process.out << result.process.err;
  EXPECT_EQ(result.report["hidden_size"], hidden) << result.process.out;
  EXPECT_NE(result.report["way"].get<std::string>().find(way), std::string::npos) << result.report["way"];
}

TEST(Fingerprint, OfWholeVectors) {
  const MadeServer server({.hidden = 72, .vocabulary = 300}, {});
  const Taken result = taken(server.url());
  expect_hidden(result, 72, "whole vectors");
  EXPECT_EQ(result.report["vocabulary"], 300);
  EXPECT_EQ(server.prompts_beyond_the_vocabulary(), 0U);  // which some servers do not survive
  EXPECT_NE(result.process.out.find("FOUND: hidden size 72"), std::string::npos) << result.process.out;
  EXPECT_NE(result.process.out.find("no published config"), std::string::npos) << result.process.out;
}

// SGLang: prompts of ids, answers of names, of which those of halves of characters are all one.
TEST(Fingerprint, OfWholeVectorsByNames) {
  const MadeServer server({.hidden = 24, .vocabulary = 300}, {.halves = true});
  expect_hidden(taken(server.url()), 24, "whole vectors");
}

TEST(Fingerprint, OfListsThatBiasesLift) {
  const MadeServer server({.hidden = 16, .vocabulary = 150}, {.gives = Gives::biased, .most = 5});
  expect_hidden(taken(server.url()), 16, "logit_bias lifts");
}

// Of 123 tokens the one that is lifted first, 76, is one of those that share a name.
TEST(Fingerprint, OfListsAgainstATokenWithAName) {
  const MadeServer server({.hidden = 12, .vocabulary = 123},
                          {.gives = Gives::biased, .most = 8, .halves = true});
  expect_hidden(taken(server.url()), 12, "logit_bias lifts");
}

TEST(Fingerprint, OfTokensThatBiasesChoose) {
  const MadeServer server({.hidden = 16, .vocabulary = 150}, {.gives = Gives::raw, .most = 5});
  expect_hidden(taken(server.url()), 16, "logit_bias chooses");
}

TEST(Fingerprint, OfTextsAlone) {
  for (const Gives gives : {Gives::biased, Gives::raw}) {
    const bool one_by_one = gives == Gives::biased;
    const MadeServer server({.hidden = 12, .vocabulary = 120},
                            {.gives = gives, .ids = false, .lists = !one_by_one});
    expect_hidden(taken(server.url(), {"--most", "40"}), 12, "logit_bias");
  }
}

TEST(Fingerprint, OfALayerNormAndBehindACap) {
  const MadeServer layer_norm({.hidden = 24, .layer_norm = true, .norm_bias = true}, {});
  const Taken normed = taken(layer_norm.url());
  expect_hidden(normed, 24, "whole");
  EXPECT_NE(normed.process.out.find("a layer norm"), std::string::npos) << normed.process.out;
  const MadeServer capped({.hidden = 24, .cap = 5}, {});
  const Taken uncapped = taken(capped.url());
  expect_hidden(uncapped, 24, "whole");
  EXPECT_NEAR(uncapped.report["soft_cap"].get<double>(), 5, 1e-5);
}

TEST(Fingerprint, CannotBeToldOfNoise) {
  const MadeServer server({.hidden = 24}, {.noise = 0.3});
  const Taken result = taken(server.url());
  EXPECT_EQ(result.process.exit_code, 1) << result.process.err;
  EXPECT_NE(result.process.out.find("CANNOT TELL"), std::string::npos) << result.process.out;
  EXPECT_NE(result.process.out.find("other values"), std::string::npos) << result.process.out;
  EXPECT_TRUE(result.report["hidden_size"].is_null());
}

TEST(Fingerprint, CannotBeToldOfWhatIsNotGiven) {
  const MadeServer nothing({}, {.gives = Gives::nothing});
  const Taken silent = taken(nothing.url());
  EXPECT_EQ(silent.process.exit_code, 1) << silent.process.err;
  EXPECT_NE(silent.process.out.find("no log-probabilities"), std::string::npos) << silent.process.out;
  const MadeServer no_bias({}, {.gives = Gives::no_bias});
  const Taken stubborn = taken(no_bias.url());
  EXPECT_EQ(stubborn.process.exit_code, 1) << stubborn.process.err;
  EXPECT_NE(stubborn.process.out.find("logit_bias changes nothing"), std::string::npos)
      << stubborn.process.out;
  const MadeServer wide({.hidden = 96}, {});
  const Taken full = taken(wide.url());
  EXPECT_EQ(full.process.exit_code, 1) << full.process.err;
  EXPECT_EQ(full.report["at_least"], 95);
  const MadeServer deep({.hidden = 90, .vocabulary = 400}, {});
  const Taken cut = taken(deep.url(), {"--most", "80"});
  EXPECT_EQ(cut.process.exit_code, 1) << cut.process.err;
  EXPECT_NE(cut.process.out.find("--most 80"), std::string::npos) << cut.process.out;
  EXPECT_EQ(assay({"fingerprint", "http://127.0.0.1:9"}).exit_code, 2);
}

TEST(Fingerprint, PageAndPublishedModels) {
  const TempDir dir;
  const MadeServer server({.hidden = 24}, {});
  const Taken result = taken(server.url(), {"--html", (dir / "page.html").string()});
  ASSERT_EQ(result.process.exit_code, 0) << result.process.err;
  const std::string page = read_file(dir / "page.html");
  EXPECT_NE(page.find("Singular values"), std::string::npos);
  EXPECT_NE(page.find("the rank, 24"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

// ---- behind our own server

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir() / "data/models"))
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class FingerprintOf : public testing::TestWithParam<std::string> {};

TEST_P(FingerprintOf, AFamilyIsExact) {
  if (kSanitized && GetParam() != "gemma2") GTEST_SKIP() << "one is enough here";
  const fs::path model = source_dir() / "data/models" / GetParam();
  Document config = Document::parse(read_file(model / "config.json"));
  if (config.contains("text_config")) config = config["text_config"];
  const std::size_t hidden = config.contains("hidden_size") ? config["hidden_size"] : config["n_embd"];
  const std::size_t vocabulary = config["vocab_size"];
  const ServedProgram server(model, {"--token-ids-only", "--max-logprobs", std::to_string(vocabulary)});
  const Taken result = taken("http://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(result.report["vocabulary"], vocabulary);
  if (hidden + 1 >= vocabulary) {  // as many directions as tokens
    EXPECT_EQ(result.process.exit_code, 1) << result.process.out;
    EXPECT_EQ(result.report["at_least"], vocabulary - 1);
    return;
  }
  expect_hidden(result, hidden, "whole");
  if (config.contains("final_logit_softcapping"))
    EXPECT_NEAR(result.report["soft_cap"].get<double>(), config["final_logit_softcapping"].get<double>(),
                0.01);
  else
    EXPECT_TRUE(result.report["soft_cap"].is_null()) << result.process.out;
}

INSTANTIATE_TEST_SUITE_P(DataModels, FingerprintOf, testing::ValuesIn(families()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Fingerprint, OfOurServerByTokensThatBiasesChoose) {
  const ServedProgram server(source_dir() / "data/models/mistral", {"--token-ids-only"});
  expect_hidden(taken("http://127.0.0.1:" + std::to_string(server.port())), 40, "logit_bias chooses");
}

TEST(Fingerprint, OfOurServerInBfloat16) {
  const ServedProgram server(source_dir() / "data/models/llama",
                             {"--token-ids-only", "--max-logprobs", "96", "--precision", "bf16"});
  expect_hidden(taken("http://127.0.0.1:" + std::to_string(server.port())), 48, "whole");
}

}  // namespace
}  // namespace assay::test
