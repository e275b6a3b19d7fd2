// Code in model folders: found in what Python and NumPy wrote (data/make_code_fixtures.py), and not in what
// merely looks like it.
#include "verify/code_files.h"

#include <unistd.h>

#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/pickle.h"
#include "verify/remote_code.h"

namespace assay {
namespace {

std::vector<std::string> codes(const Findings& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.push_back(finding.code);
  return list;
}

TEST(CodeFiles, PicklesOfEveryProtocolAndObjectArraysAreNamed) {
  std::size_t named = 0, plain = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/code")) {
    const std::string name = entry.path().filename().string();
    const std::vector<std::string> found = codes(find_code(name, entry.path(), false));
    const bool code = name.starts_with("code_");
    EXPECT_EQ(found, code ? std::vector<std::string>{"code.pickle"} : std::vector<std::string>{}) << name;
    ++(code ? named : plain);
  }
  EXPECT_GE(named, 12u);
  EXPECT_GE(plain, 6u);
}

TEST(Pickle, CutsAndChangesAreSound) {
  const std::string whole = test::read_file(test::source_dir() / "data/fixtures/code/code_pickle0.bin");
  const auto looks = [](const std::string& text, bool all) {
    return looks_like_pickle(std::as_bytes(std::span(text)), all);
  };
  EXPECT_TRUE(looks(whole, true));
  EXPECT_TRUE(looks(whole.substr(0, 40), false)) << "more of it follows";
  EXPECT_FALSE(looks(whole.substr(0, 40), true)) << "nothing follows";
  EXPECT_FALSE(looks("", true));
  EXPECT_FALSE(looks(".", true));
  EXPECT_FALSE(looks("R.", true)) << "calls what is not there";
  EXPECT_FALSE(looks("(.", true));
  EXPECT_TRUE(looks("cos\nsystem\n(S'id'\ntR.", true));
}

TEST(CodeFiles, EveryConfigMayAskForPython) {
  const test::TempDir dir;
  test::write_file(dir / "a.json", R"({"auto_map": {"AutoTokenizer": ["tok.Slow", null]}})");
  EXPECT_TRUE(read_remote_code("tokenizer_config.json", dir / "a.json").asked);
  EXPECT_TRUE(read_remote_code("tokenizer_config.json", dir / "a.json").findings.empty());
  test::write_file(dir / "b.json", R"({"custom_pipelines": {"x": {"impl": "pipe.X", "pt": ["AutoModel"]}}})");
  EXPECT_TRUE(read_remote_code("config.json", dir / "b.json").asked);
  test::write_file(dir / "c.json",
                   R"({"auto_map": {"AutoModel": "org/code--m.M", "AutoConfig": "org/code--c.C"}})");
  const RemoteCode elsewhere = read_remote_code("config.json", dir / "c.json");
  EXPECT_TRUE(elsewhere.asked);
  EXPECT_EQ(codes(elsewhere.findings), std::vector<std::string>{"code.remote_repository"});
  EXPECT_NE(elsewhere.findings[0].message.find("org/code"), std::string::npos);
  test::write_file(dir / "d.json", R"({"model_type": "llama"})");
  EXPECT_FALSE(read_remote_code("config.json", dir / "d.json").asked);
}

// modules.json as sentence-transformers writes it, and with classes of others.
TEST(CodeFiles, ModulesThatAreNotSentenceTransformersOwn) {
  const test::TempDir dir;
  const auto read = [&](const std::string& name, const std::string& text) {
    test::write_file(dir / "f.json", text);
    return read_remote_code(name, dir / "f.json");
  };
  const std::string own =
      R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  EXPECT_FALSE(read("modules.json", own).asked);
  EXPECT_TRUE(read("modules.json", own).findings.empty());
  const RemoteCode beside =
      read("modules.json", R"([{"idx": 0, "name": "0", "path": "", "type": "custom_st.Transformer"}])");
  EXPECT_TRUE(beside.asked);
  EXPECT_EQ(codes(beside.findings), std::vector<std::string>{"code.custom_class"});
  EXPECT_NE(beside.findings[0].message.find("custom_st.Transformer"), std::string::npos);
  const RemoteCode other = read("modules.json", R"([{"path": "", "type": "org/code--st.Transformer"}])");
  EXPECT_EQ(codes(other.findings), std::vector<std::string>{"code.remote_repository"});
  EXPECT_EQ(codes(read("modules.json", R"([{"type": "sentence_transformers_evil.X"}])").findings),
            std::vector<std::string>{"code.custom_class"});
  for (const char* text : {"{}", "[]", "[1, null, {\"type\": 3}]", "not JSON"}) {
    EXPECT_TRUE(read("modules.json", text).findings.empty()) << text;
  }

  // What the modules' own configs have imported: an activation of Dense, the modules of a router.
  const auto found = [&](const std::string& text) {
    return codes(read("2_Dense/config.json", text).findings);
  };
  const std::vector<std::string> custom = {"code.custom_class"}, none;
  EXPECT_EQ(found(R"({"activation_function": "torch.nn.modules.activation.Tanh"})"), none);
  EXPECT_EQ(found(R"({"activation_function": "gelu_new"})"), none);
  EXPECT_EQ(found(R"({"activation_function": "subprocess.Popen"})"), custom);
  EXPECT_EQ(found(R"({"sentence_transformers": {"activation_fn": "mine.Act"}})"), custom);
  EXPECT_EQ(found(R"({"types": {"a": "sentence_transformers.models.Dense"}, "structure": {}})"), none);
  EXPECT_EQ(found(R"({"types": {"a": "mine.Dense"}, "structure": {}})"), custom);
  EXPECT_EQ(found(R"({"tokenizer_class": "LlamaTokenizer"})"), none);
  EXPECT_EQ(found(R"({"tokenizer_class": "mine.Tokenizer"})"), custom);
}

// model_index.json as diffusers writes it, and with a pipeline and a component of its own.
TEST(CodeFiles, PipelinesAndComponentsThatAreNotDiffusersOwn) {
  const test::TempDir dir;
  const auto read = [&](const std::string& text) {
    test::write_file(dir / "f.json", text);
    return read_remote_code("sd/model_index.json", dir / "f.json");
  };
  const RemoteCode own = read(R"({"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.30.0",
      "unet": ["diffusers", "UNet2DConditionModel"], "text_encoder": ["transformers", "CLIPTextModel"],
      "safety_checker": [null, null], "x": ["stable_diffusion", "StableDiffusionSafetyChecker"],
      "y": ["onnxruntime.training", "ORTModule"]})");
  EXPECT_FALSE(own.asked);
  EXPECT_TRUE(own.findings.empty());
  const RemoteCode pipeline = read(R"({"_class_name": ["my_pipeline", "MyPipeline"]})");
  EXPECT_TRUE(pipeline.asked);
  EXPECT_EQ(codes(pipeline.findings), std::vector<std::string>{"code.custom_class"});
  EXPECT_TRUE(read(R"({"unet": ["mine", "Unet"]})").python.contains("sd/unet/mine.py"));
  EXPECT_EQ(codes(read(R"({"unet": ["diffusers_modules.local.mine", "Unet"]})").findings),
            std::vector<std::string>{"code.custom_class"});
}

TEST(CodeFiles, PythonOfModulesAndComponentsIsSeenByVerify) {
  const test::TempDir dir;
  test::write_file(dir / "st/modules.json",
                   R"([{"idx": 0, "name": "0", "path": "", "type": "mine.Module"}])");
  test::write_file(dir / "st/mine.py", "print('hi')");
  const std::string modules = test::assay({"verify", (dir / "st").string()}).out;
  EXPECT_NE(modules.find("mine.py: is Python"), std::string::npos) << modules;
  EXPECT_NE(modules.find("modules.json: has sentence-transformers import mine.Module"), std::string::npos);
  test::write_file(dir / "sd/model_index.json",
                   R"({"_class_name": "P", "unet": ["mine", "U"], "vae": ["diffusers", "V"]})");
  test::write_file(dir / "sd/unet/mine.py", "print('hi')");
  test::write_file(dir / "sd/vae/notes.py", "print('hi')");
  const std::string pipeline = test::assay({"verify", (dir / "sd").string()}).out;
  EXPECT_NE(pipeline.find("unet/mine.py: is Python"), std::string::npos) << pipeline;
  EXPECT_EQ(pipeline.find("notes.py: is Python"), std::string::npos) << "nothing names it";
}

// Small files are looked into while they are hashed; where they are not, all the same.
TEST(CodeFiles, CodeInSmallFilesIsNamedHoweverTheyAreRead) {
  const test::TempDir dir;
  const std::string pickle("\x80\x04\x95\x05\0\0\0\0\0\0\0]\x94.", 14);
  test::write_file(dir / "m/data.dat", pickle);
  test::write_file(dir / "m/notes.dat", "nothing of the kind");
  test::write_file(dir / "SUMS", test::run({"sh", "-c", "sha256sum *"}, {.directory = dir / "m"}).out);
  const std::vector<std::string> verify = {"verify", (dir / "m").string()};
  const std::vector<std::string> sums = {"--manifest", (dir / "SUMS").string()};
  const std::vector<std::string> state = {"--state", (dir / "state").string()};
  ::usleep(50'000);  // files touched this very moment are never trusted
  const auto expect_named = [&](const std::vector<std::vector<std::string>>& options) {
    std::vector<std::string> arguments = verify;
    for (const auto& some : options) arguments.insert(arguments.end(), some.begin(), some.end());
    const std::string out = test::assay(arguments).out;
    EXPECT_NE(out.find("data.dat: contains a pickle"), std::string::npos) << out;
    EXPECT_EQ(out.find("notes.dat: contains"), std::string::npos) << out;
  };
  expect_named({});
  expect_named({sums});
  expect_named({sums, {"--quick"}});
  expect_named({sums, state});
  expect_named({sums, state});
}

TEST(CodeFiles, AutoMapOfATokenizerIsSeenByVerify) {
  const test::TempDir dir;
  test::write_file(dir / "config.json", "{}");
  test::write_file(dir / "tokenizer_config.json", R"({"auto_map": {"AutoTokenizer": ["tok.Slow", null]}})");
  test::write_file(dir / "tok.py", "print('hi')");
  EXPECT_NE(test::assay({"verify", dir.path().string()}).out.find("tok.py: is Python"), std::string::npos);
  EXPECT_NE(test::assay({"verify", dir.path().string(), "--include", "py$"}).out.find("tok.py: is Python"),
            std::string::npos);
}

}  // namespace
}  // namespace assay
