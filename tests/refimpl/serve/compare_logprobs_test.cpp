// Saved answers of a server held against its model: `compare logprobs --model`.
#include <cmath>
#include <functional>

#include "core/system/sanitizer.h"
#include "tests/refimpl/serve/served_program.h"

namespace assay::test {
namespace {

constexpr const char* kPrompts[] = {"The river", "Once there was a black cat", "A",
                                    "2 + 4 = 6, so now she had"};

// Echoes with ids beside them, a line each.
std::vector<Document> answers_of(const ServedProgram& server, int seed = 0) {
  std::vector<Document> answers;
  for (const char* prompt : kPrompts)
    answers.push_back(server.complete({{"prompt", prompt},
                                       {"max_tokens", 20},
                                       {"echo", true},
                                       {"logprobs", 4},
                                       {"return_token_ids", true},
                                       {"ignore_eos", true},
                                       {"seed", seed}}));
  return answers;
}

class CompareLogprobs : public testing::Test {
 protected:
  std::string save(const std::string& name, const std::vector<Document>& answers) {
    std::string lines;
    for (const Document& answer : answers) lines += answer.dump() + "\n";
    write_file(dir_ / name, lines);
    return (dir_ / name).string();
  }
  ProcessResult held(std::vector<std::string> files, const std::string& precision = "f32",
                     const fs::path& model = tinylm()) {
    std::vector<std::string> arguments = {"compare", "logprobs"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    for (const std::string& more :
         {std::string("--model"), model.string(), std::string("--precision"), precision})
      arguments.push_back(more);
    return assay(arguments);
  }
  static fs::path tinylm() { return source_dir() / "data/tinylm"; }
  // Own values of every answer, changed.
  static std::vector<Document> with_values(std::vector<Document> answers,
                                           const std::function<void(std::vector<Document>&)>& change) {
    for (Document& answer : answers) {
      Document& list = answer["choices"][0]["logprobs"]["token_logprobs"];
      std::vector<Document> values(list.begin(), list.end());
      change(values);
      list = values;
      answer["choices"][0]["logprobs"]["top_logprobs"] = nullptr;
    }
    return answers;
  }
  TempDir dir_;
};

TEST_F(CompareLogprobs, OfTheModelItselfRaiseNoAlarm) {
  for (const char* precision : {"f32", "bf16"}) {
    const ServedProgram server(tinylm(), {"--precision", precision});
    for (int seed = 0; seed < (kSanitized ? 1 : 20); ++seed) {
      const ProcessResult result = held({save("a.jsonl", answers_of(server, seed))}, precision);
      ASSERT_EQ(result.exit_code, 0) << precision << ", seed " << seed << '\n' << result.out << result.err;
    }
  }
}

TEST_F(CompareLogprobs, WhoIsWrongIsNamed) {
  const ServedProgram right(tinylm());
  fs::create_directory(dir_ / "other");
  for (const auto& entry : fs::directory_iterator(tinylm()))
    if (entry.path().filename() != "config.json")
      fs::create_symlink(entry.path(), dir_ / "other" / entry.path().filename());
  Document config = Document::parse(read_file(tinylm() / "config.json"));
  config["rope_theta"] = config["rope_theta"].get<double>() * 1.1;
  write_file(dir_ / "other/config.json", config.dump());
  const ServedProgram wrong(dir_ / "other");
  const std::string a = save("a.jsonl", answers_of(right)), b = save("b.jsonl", answers_of(wrong));
  const ProcessResult result = held({a, b});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("FAILED: B is wrong, the other is right"), std::string::npos) << result.out;
  // Nothing is rotated at position 0, and by one token hardly: the first that is beyond is the third.
  EXPECT_NE(result.out.find("the first: line 1, token 2:"), std::string::npos) << result.out;
  const ProcessResult turned = held({b, a});
  EXPECT_NE(turned.out.find("FAILED: A is wrong, the other is right"), std::string::npos) << turned.out;
  const ProcessResult alone = assay({"compare", "logprobs", a, a, "--limit", "0"});
  EXPECT_EQ(alone.exit_code, 0) << alone.out;
}

TEST_F(CompareLogprobs, ErrorsOfKnownKindsAreExplained) {
  const ServedProgram server(tinylm());
  const std::vector<Document> answers = answers_of(server);
  const ProcessResult late = held({save("late.jsonl", with_values(answers, [](std::vector<Document>& values) {
                                          values.erase(values.begin() + 1);
                                          values.push_back(-1.0);
                                        }))});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_NE(late.out.find("the lists are off by one"), std::string::npos) << late.out;
  const ProcessResult coarse =
      held({save("coarse.jsonl", with_values(answers, [](std::vector<Document>& values) {
                   for (Document& value : values)
                     if (!value.is_null())
                       value = std::ldexp(std::round(std::ldexp(value.get<double>(), 4)), -4);
                 }))});
  EXPECT_EQ(coarse.exit_code, 1) << coarse.out;
}

TEST_F(CompareLogprobs, OneTokenThatIsOffIsFound) {
  const ServedProgram server(tinylm());
  std::vector<Document> answers = answers_of(server);
  Document& value = answers[1]["choices"][0]["logprobs"]["token_logprobs"][17];
  value = value.get<double>() - 0.001;
  const ProcessResult result = held({save("a.jsonl", answers)});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("1 of "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("line 2, token 17"), std::string::npos) << result.out;
}

// One engine saved ids, the other names: the model's tokenizer says which are the same.
TEST_F(CompareLogprobs, NamesAreHeldAgainstIds) {
  const ServedProgram server(tinylm());
  std::vector<Document> named = answers_of(server);
  for (Document& answer : named)
    answer["choices"][0].erase("token_ids"), answer["choices"][0].erase("prompt_token_ids");
  std::string ids;
  for (const Document& answer : answers_of(server)) {
    const Document& choice = answer["choices"][0];
    Document line = {{"ids", choice["prompt_token_ids"]}, {"logprobs", choice["logprobs"]["token_logprobs"]}};
    for (const Document& id : choice["token_ids"]) line["ids"].push_back(id);
    ids += line.dump() + "\n";
  }
  write_file(dir_ / "ids.jsonl", ids);
  const std::string by_names = save("names.jsonl", named), by_ids = (dir_ / "ids.jsonl").string();
  const ProcessResult blind = assay({"compare", "logprobs", by_names, by_ids});
  EXPECT_EQ(blind.exit_code, 1);
  EXPECT_NE(blind.out.find("which may be the same: --model names it"), std::string::npos) << blind.out;
  for (const auto& [a, b] : {std::pair{by_names, by_ids}, {by_ids, by_names}}) {
    const ProcessResult both = held({a, b, "--json", "-"});
    EXPECT_EQ(both.exit_code, 0) << both.out << both.err;
    EXPECT_GT(Document::parse(both.out)["b_minus_a"]["tokens"].get<int>(), 80) << both.out;
  }
}

TEST_F(CompareLogprobs, WhatCannotBeHeldIsMistrusted) {
  const ServedProgram server(tinylm());
  std::vector<Document> answers = answers_of(server);
  for (Document& answer : answers) answer["choices"][0]["logprobs"] = nullptr;
  const ProcessResult none = held({save("none.jsonl", answers)});
  EXPECT_EQ(none.exit_code, 1) << none.out << none.err;
  EXPECT_NE(none.out.find("MISTRUSTED"), std::string::npos) << none.out;
  const fs::path page = dir_ / "page.html";
  const std::string a = save("a.jsonl", answers_of(server));
  EXPECT_EQ(assay({"compare", "logprobs", a, "--model", tinylm().string(), "--precision", "f32", "--html",
                   page.string()})
                .exit_code,
            0);
  EXPECT_NE(read_file(page).find("class=\"strip\""), std::string::npos);
  EXPECT_EQ(assay({"compare", "logprobs", a}).exit_code, 2);
  EXPECT_EQ(assay({"compare", "logprobs", a, a, "--limit", "nan"}).exit_code, 2);
  EXPECT_EQ(assay({"compare", "logprobs", a, a, "--precision", "f32"}).exit_code,
            2);  // of what, without a model?
  write_file(dir_ / "beyond.jsonl", R"({"ids": [0, 99999], "logprobs": [null, -1.5]})");
  const ProcessResult beyond = held({dir_ / "beyond.jsonl"});
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_NE(
      beyond.out.find("MISTRUSTED: text response 0: token 99999 is beyond the model's vocabulary of 448"),
      std::string::npos)
      << beyond.out;
  EXPECT_EQ(assay({"compare", "logprobs", a, (dir_ / "gone").string()}).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
