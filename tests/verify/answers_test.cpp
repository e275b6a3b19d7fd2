// The table of docs/verify.md, "What is answered", walked: each row is built and the program is asked.
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/git.h"
#include "tests/support/paths.h"
#include "tests/support/small_model.h"
#include "tests/verify/hub_layouts.h"

namespace assay::test {
namespace {

using nlohmann::json;

// What the program is asked, once everything lies there.
struct Question {
  fs::path path;
  std::vector<std::string> options = {};
};

struct Answer {
  std::string verdict;  // "none": an error, and no verdict
  int exit_code = 0;
  int exit_code_required = 0;  // with --require-digests
};

using Key = std::pair<std::string, std::string>;  // the kind of PATH, and what happened to it

void flip(const fs::path& path, std::uint64_t from_end = 100) {
  fs::permissions(path, fs::perms::owner_all);
  std::string bytes = read_file(path);
  char& byte = bytes[bytes.size() - std::min<std::uint64_t>(from_end, bytes.size() / 2)];
  byte = static_cast<char>(byte ^ 1);
  write_file(path, bytes);
}

void cut(const fs::path& path) {
  fs::permissions(path, fs::perms::owner_all);
  fs::resize_file(path, fs::file_size(path) / 2);
}

struct Clone {
  explicit Clone(const fs::path& folder) : model(write_small_model(folder)), repository(folder) {
    commit_with_pointers(folder);
  }
  fs::path weight(int i) const { return model.folder / model.shards[static_cast<std::size_t>(i)]; }
  fs::path object(const std::string& revision) const {
    const std::string id = repository.git({"rev-parse", revision});
    return model.folder / ".git/objects" / id.substr(0, 2) / id.substr(2);
  }
  fs::path pack() const {
    repository.git({"gc", "-q", "--prune=now"});
    for (const auto& entry : fs::directory_iterator(model.folder / ".git/objects/pack")) {
      if (entry.path().extension() == ".pack") return entry.path();
    }
    throw std::runtime_error("git gc made no pack");
  }
  SmallModel model;
  GitRepository repository;
};

// A clone of which `happen` has befallen something.
std::function<Question(const fs::path&)> clone(std::function<void(const Clone&)> happen) {
  return [happen](const fs::path& dir) {
    const Clone made(dir / "clone");
    happen(made);
    return Question{made.model.folder};
  };
}

void check_out_with_crlf(const Clone& clone) {
  clone.repository.git({"config", "core.autocrlf", "true"});
  fs::remove(clone.model.folder / "config.json");
  clone.repository.git({"checkout", "-q", "--", "config.json"});
}

// `git worktree add`, filled as git-lfs would, copied with `cp -r`; the copy is damaged.
Question copied_work_tree(const fs::path& dir) {
  const Clone made(dir / "clone");
  made.repository.git({"worktree", "add", "-q", "--detach", (dir / "linked").string()});
  for (int i = 0; i < 3; ++i) fs::copy(made.weight(i), dir / "linked", fs::copy_options::overwrite_existing);
  fs::copy(dir / "linked", dir / "copy", fs::copy_options::recursive);
  flip(dir / "copy" / made.model.shards[0]);
  return {dir / "copy"};
}

Question other_work_tree(const fs::path& dir) {
  const Clone made(dir / "clone");
  write_small_model(dir / "good");
  made.repository.git({"config", "core.worktree", (dir / "good").string()});
  flip(made.weight(0));
  return {made.model.folder};
}

// A project that keeps code in git and was told to ignore its weights.
GitRepository project(const fs::path& folder) {
  const GitRepository repository(folder);
  repository.write(".gitignore", "*.safetensors\n.cache/\n");
  repository.git({"add", "."});
  repository.git({"commit", "-q", "-m", "code"});
  return repository;
}

Question ignored_weights(const fs::path& dir) {
  write_small_model(dir / "project/model");
  project(dir / "project");
  return {dir / "project/model"};
}

// The hub's metadata knows the ignored weights; git knows one file that may hold weights.
Question ignored_weights_of_a_download(const fs::path& dir, bool damaged) {
  const SmallModel model = write_small_model(dir / "project");
  write_download_metadata(model.folder, {});
  write_file(model.folder / "training_args.bin", "arguments");
  project(model.folder);
  if (damaged) flip(model.folder / model.shards[1]);
  return {model.folder};
}

Question some_weights_committed(const fs::path& dir) {
  const Clone made(dir / "clone");
  made.repository.git({"rm", "-q", "--cached", made.model.shards[2]});
  made.repository.git({"commit", "-q", "-m", "fewer"});
  return {made.model.folder};
}

using CacheChange = std::function<void(const CacheLayout&, const SmallModel&)>;

// A Hugging Face cache with a listing of the whole commit, of which README.md and a pickle were not asked
// for.
std::function<Question(const fs::path&)> cache(CacheChange happen) {
  return [happen](const fs::path& dir) {
    const SmallModel model = write_small_model(dir / "source");
    const CacheLayout made = write_hub_cache(dir / "hub", model.folder, kNotDownloaded);
    happen(made, model);
    return Question{made.snapshot};
  };
}

std::function<Question(const fs::path&)> blobs(CacheChange happen) {
  return [happen](const fs::path& dir) {
    return Question{cache(happen)(dir).path.parent_path().parent_path() / "blobs"};
  };
}

std::function<Question(const fs::path&)> download(std::function<void(const SmallModel&)> happen) {
  return [happen](const fs::path& dir) {
    const SmallModel model = write_small_model(dir / "local");
    write_download_metadata(model.folder, kNotDownloaded);
    happen(model);
    return Question{model.folder};
  };
}

fs::path metadata(const SmallModel& model, const std::string& name) {
  return model.folder / ".cache/huggingface/download" / (name + ".metadata");
}
fs::path local_tree(const SmallModel& model) {
  return model.folder / ".cache/huggingface/trees" / (kLayoutCommit + ".json");
}

// `text` makes the source out of sha256sum's answer for the model.
std::function<Question(const fs::path&)> manifest(std::function<std::string(const std::string&)> text,
                                                  std::function<void(const SmallModel&)> happen = {}) {
  return [=](const fs::path& dir) {
    const SmallModel model = write_small_model(dir / "model");
    const std::string sums = run({"sh", "-c", "sha256sum -- *"}, {.directory = model.folder}).out;
    write_file(dir / "source", text(sums));
    if (happen) happen(model);
    return Question{model.folder, {"--manifest", (dir / "source").string()}};
  };
}
std::function<Question(const fs::path&)> manifest_text(const std::string& text) {
  return manifest([text](const std::string&) { return text; });
}
std::string same(const std::string& sums) {
  return sums;
}

std::function<Question(const fs::path&)> plain(std::function<void(const SmallModel&)> happen,
                                               std::vector<std::string> options = {}) {
  return [=](const fs::path& dir) {
    const SmallModel model = write_small_model(dir / "model");
    happen(model);
    return Question{model.folder, options};
  };
}

std::function<Question(const fs::path&)> one_file(
    std::function<std::vector<std::string>(const fs::path&)> options) {
  return [=](const fs::path& dir) {
    const SmallModel model = write_small_model(dir / "model");
    const fs::path file = model.folder / model.shards[0];
    return Question{file, options(file)};
  };
}

const std::string kIndex = "model.safetensors.index.json";

const std::map<Key, std::function<Question(const fs::path&)>>& cases() {
  static const std::map<Key, std::function<Question(const fs::path&)>> all = {
      {{"git clone", "whole"}, clone([](const Clone&) {})},
      {{"git clone", "a weight is damaged"}, clone([](const Clone& c) { flip(c.weight(1)); })},
      {{"git clone", "a text is missing"},
       clone([](const Clone& c) { fs::remove(c.model.folder / "config.json"); })},
      {{"git clone", "a text was checked out with other line ends (`core.autocrlf`)"},
       clone([](const Clone& c) { check_out_with_crlf(c); })},
      {{"git clone", "the same, and a byte of that text is damaged"}, clone([](const Clone& c) {
         check_out_with_crlf(c);
         flip(c.model.folder / "config.json", 5);
       })},
      {{"git clone", "a work tree was copied, and a weight of the copy is damaged"}, copied_work_tree},
      {{"git clone", "`core.worktree` names another folder, and a weight here is damaged"}, other_work_tree},
      {{"git clone", "`.git/HEAD` is gone"},
       clone([](const Clone& c) { fs::remove(c.model.folder / ".git/HEAD"); })},
      {{"git clone", "`.git` is empty"}, clone([](const Clone& c) {
         fs::remove_all(c.model.folder / ".git");
         fs::create_directory(c.model.folder / ".git");
       })},
      {{"git clone", "`.git` leads to a repository that is not there"}, clone([](const Clone& c) {
         fs::remove_all(c.model.folder / ".git");
         write_file(c.model.folder / ".git", "gitdir: /nowhere/worktrees/x\n");
       })},
      {{"git clone", "a pack is truncated"}, clone([](const Clone& c) { cut(c.pack()); })},
      {{"git clone", "a pack is deleted"}, clone([](const Clone& c) { fs::remove(c.pack()); })},
      {{"git clone", "the commit's tree is damaged"},
       clone([](const Clone& c) { flip(c.object("HEAD^{tree}"), 8); })},
      {{"git clone", "a pointer's object is damaged or missing"},
       clone([](const Clone& c) { fs::remove(c.object("HEAD:" + c.model.shards[0])); })},
      {{"git clone", "no commit yet"},
       [](const fs::path& dir) {
         const SmallModel model = write_small_model(dir / "model");
         run({"git", "init", "-q", model.folder.string()});
         return Question{model.folder};
       }},
      {{"git clone", "SHA-256 object ids"},
       [](const fs::path& dir) {
         const SmallModel model = write_small_model(dir / "model");
         run({"git", "init", "-q", "--object-format=sha256", model.folder.string()});
         return Question{model.folder};
       }},
      {{"git clone", "`--rev` names nothing, or is empty"},
       [](const fs::path& dir) {
         return Question{Clone(dir / "clone").model.folder, {"--rev", ""}};
       }},
      {{"git clone", "bare, or its `.git` itself, without `--root`"},
       [](const fs::path& dir) { return Question{Clone(dir / "clone").model.folder / ".git"}; }},
      {{"git clone", "the commit holds some of the weights"}, some_weights_committed},
      {{"git project", "its commit holds no weights"}, ignored_weights},
      {{"git project", "weights ignored by git, with a download's metadata"},
       [](const fs::path& dir) { return ignored_weights_of_a_download(dir, false); }},
      {{"git project", "the same, and a weight is damaged"},
       [](const fs::path& dir) { return ignored_weights_of_a_download(dir, true); }},

      {{"Hugging Face cache", "whole, or downloaded by patterns"},
       cache([](const CacheLayout&, const SmallModel&) {})},
      {{"Hugging Face cache", "a weight is damaged"}, cache([](const CacheLayout& c, const SmallModel& m) {
         flip(fs::canonical(c.snapshot / m.shards[0]));
       })},
      {{"Hugging Face cache", "a shard of the set, their index or config.json was not downloaded"},
       cache([](const CacheLayout& c, const SmallModel& m) { fs::remove(c.snapshot / m.shards[1]); })},
      {{"Hugging Face cache", "a blob is gone"}, cache([](const CacheLayout& c, const SmallModel& m) {
         fs::remove(fs::canonical(c.snapshot / m.shards[1]));
       })},
      {{"Hugging Face cache", "its folder `blobs`"}, blobs([](const CacheLayout&, const SmallModel&) {})},
      {{"Hugging Face cache", "its folder `blobs`, and a blob is damaged"},
       blobs(
           [](const CacheLayout& c, const SmallModel& m) { flip(fs::canonical(c.snapshot / m.shards[0])); })},
      {{"Hugging Face cache", "`trees/<commit>.json` is truncated or lists nothing"},
       cache([](const CacheLayout& c, const SmallModel&) { cut(c.tree); })},
      {{"Hugging Face cache", "no `trees/<commit>.json`: blobs' names alone"},
       cache([](const CacheLayout& c, const SmallModel&) { fs::remove(c.tree); })},
      {{"Hugging Face cache", "no `trees/<commit>.json`, and the index or config.json is not there"},
       cache([](const CacheLayout& c, const SmallModel&) {
         fs::remove(c.tree);
         fs::remove(c.snapshot / kIndex);
       })},
      {{"Hugging Face cache", "real files, and no `trees/<commit>.json`"},
       cache([](const CacheLayout& c, const SmallModel& m) {
         fs::remove(c.tree);
         for (const auto& entry : fs::directory_iterator(m.folder)) {
           fs::remove(c.snapshot / entry.path().filename());
           fs::copy(entry.path(), c.snapshot);
         }
       })},
      {{"Hugging Face cache", "a snapshot without files"}, cache([](const CacheLayout& c, const SmallModel&) {
         fs::remove(c.tree);
         fs::remove_all(c.snapshot);
         fs::create_directory(c.snapshot);
       })},

      {{"`--local-dir` download", "whole, or downloaded by patterns"}, download([](const SmallModel&) {})},
      {{"`--local-dir` download", "a weight is damaged"},
       download([](const SmallModel& m) { flip(m.folder / m.shards[0]); })},
      {{"`--local-dir` download", "a shard of the set was not downloaded"}, download([](const SmallModel& m) {
         fs::remove(m.folder / m.shards[1]);
         fs::remove(metadata(m, m.shards[1]));
       })},
      {{"`--local-dir` download", "the metadata of a weight is malformed, and no listing"},
       download([](const SmallModel& m) {
         fs::remove(local_tree(m));
         cut(metadata(m, m.shards[1]));
       })},
      {{"`--local-dir` download", "a weight has no metadata, and no listing"},
       download([](const SmallModel& m) {
         fs::remove(local_tree(m));
         fs::remove(metadata(m, m.shards[1]));
       })},
      {{"`--local-dir` download", "the metadata of all files is gone"}, download([](const SmallModel& m) {
         fs::remove_all(m.folder / ".cache/huggingface/download");
         fs::create_directory(m.folder / ".cache/huggingface/download");
       })},
      {{"`--local-dir` download", "`trees/<commit>.json` is truncated or lists nothing"},
       download([](const SmallModel& m) { cut(local_tree(m)); })},

      {{"folder with `--manifest`", "whole"}, manifest(same)},
      {{"folder with `--manifest`", "a weight is damaged"},
       manifest(same, [](const SmallModel& m) { flip(m.folder / m.shards[0]); })},
      {{"folder with `--manifest`", "a file that it lists is missing"},
       manifest(same, [](const SmallModel& m) { fs::remove(m.folder / "config.json"); })},
      {{"folder with `--manifest`", "it lists some of the weights"}, manifest([](const std::string& sums) {
         const auto line = sums.find("model-00002");
         return std::string(sums).erase(line - 66, sums.find('\n', line) - line + 67);
       })},
      {{"folder with `--manifest`", "the file is empty"}, manifest_text("")},
      {{"folder with `--manifest`", "a listing of nothing: `[]`, `{\"siblings\": []}`"},
       manifest_text("{\"siblings\": []}")},
      {{"folder with `--manifest`", "a listing without digests for its weights"},
       manifest_text(R"({"siblings": [{"rfilename": "model-00001-of-00003.safetensors"}]})")},
      {{"folder with `--manifest`", "`--manifest \"\"`"},
       plain([](const SmallModel&) {}, {"--manifest", ""})},

      {{"folder", "nobody says anything"}, plain([](const SmallModel&) {})},
      {{"folder", "a header is malformed, or the index names a shard that is not there"},
       plain([](const SmallModel& m) { fs::remove(m.folder / m.shards[0]); })},
      {{"folder", "empty"}, plain([](const SmallModel& m) {
         fs::remove_all(m.folder);
         fs::create_directory(m.folder);
       })},
      {{"folder", "not there"}, plain([](const SmallModel& m) { fs::remove_all(m.folder); })},

      {{"file", "`--sha256` is its digest"}, one_file([](const fs::path& f) {
         return std::vector<std::string>{"--sha256", sha256_by_openssl(f)};
       })},
      {{"file", "`--sha256` is another"}, one_file([](const fs::path&) {
         return std::vector<std::string>{"--sha256", std::string(64, 'a')};
       })},
      {{"file", "`--sha256` is empty or no digest"}, one_file([](const fs::path&) {
         return std::vector<std::string>{"--sha256", ""};
       })},
      {{"file", "nobody says anything"},
       one_file([](const fs::path&) { return std::vector<std::string>{}; })},
  };
  return all;
}

std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> result;
  std::size_t at = row.find('|');
  for (std::size_t next; (next = row.find('|', at + 1)) != row.npos; at = next) {
    const std::string cell = row.substr(at + 1, next - at - 1);
    const auto begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    result.push_back(begin == cell.npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return result;
}

// Rows of the table under "## What is answered".
std::map<Key, Answer> documented() {
  std::ifstream file(source_dir() / "docs/verify.md");
  std::map<Key, Answer> table;
  std::string line;
  while (std::getline(file, line) && line != "## What is answered") {
  }
  while (std::getline(file, line) && !line.starts_with("## ")) {
    const auto row = cells(line);
    if (row.size() != 5 || row[0] == "PATH" || row[0].starts_with("---")) continue;
    table[{row[0], row[1]}] = {row[2], std::stoi(row[3]), std::stoi(row[4])};
  }
  return table;
}

TEST(Answers, EveryRowOfTheTableIsBuiltAndEveryCaseIsARow) {
  const auto table = documented();
  for (const auto& [key, ignored] : table)
    EXPECT_TRUE(cases().contains(key)) << "no case for: " << key.first << " | " << key.second;
  for (const auto& [key, ignored] : cases())
    EXPECT_TRUE(table.contains(key)) << "no row for: " << key.first << " | " << key.second;
  EXPECT_GE(table.size(), 45u);
}

class AnswerOf : public ::testing::TestWithParam<Key> {};

TEST_P(AnswerOf, IsTheOneDocumented) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  ASSAY_PROGRAM_OR_SKIP("sha256sum");
  const auto table = documented();
  ASSERT_TRUE(table.contains(GetParam()));
  const Answer& answer = table.at(GetParam());
  const TempDir dir;
  const Question question = cases().at(GetParam())(dir.path());
  std::vector<std::string> arguments = {"verify", question.path.string(), "--json", "-"};
  arguments.insert(arguments.end(), question.options.begin(), question.options.end());
  const ProcessResult result = assay(arguments);
  EXPECT_EQ(result.exit_code, answer.exit_code) << result.out << result.err;
  if (answer.verdict == "none") {
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  } else {
    const json report = json::parse(result.out);
    EXPECT_EQ(report.at("verdict"), answer.verdict) << result.out;
    // Every verdict names the folder that was read, and it is PATH's.
    const fs::path folder = fs::is_directory(question.path) ? question.path : question.path.parent_path();
    EXPECT_EQ(report.at("source").at("root"), fs::canonical(folder).string());
    const std::string line = report.at("verdict_line");
    EXPECT_NE(line.find("in " + fs::canonical(folder).string()), line.npos) << line;
    EXPECT_NE(line.find("vouched for: "), line.npos) << line;
  }
  arguments.push_back("--require-digests");
  EXPECT_EQ(assay(arguments).exit_code, answer.exit_code_required);
}

std::vector<Key> keys() {
  std::vector<Key> all;
  for (const auto& [key, ignored] : cases()) all.push_back(key);
  return all;
}

std::string test_name(const ::testing::TestParamInfo<Key>& info) {
  std::string name;
  for (const char c : info.param.first + "_" + info.param.second) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, AnswerOf, ::testing::ValuesIn(keys()), test_name);

}  // namespace
}  // namespace assay::test
