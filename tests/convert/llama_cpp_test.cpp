// llama.cpp itself loads the GGUFs and goes on from a text as the reference engine does. ASSAY_LLAMA_CPP
// names the folder of its programs; without it these tests are skipped.
#include <cstdlib>

#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

using test::kData;

const char* llama_cpp() {
  return std::getenv("ASSAY_LLAMA_CPP");
}

// Without the white space and marks of the end around it.
std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n\r\t") + 1);
  return text.substr(std::min(text.size(), text.find_first_not_of(" \n\r\t")));
}

TEST(LlamaCpp, GoesOnFromATextAsTheReferenceEngineDoes) {
  if (llama_cpp() == nullptr) GTEST_SKIP() << "SKIPPED: set ASSAY_LLAMA_CPP to llama.cpp's build/bin";
  const TempDir dir;
  const std::string prompt = "Once upon a time";
  // Of the others llama.cpp rounds activations too, so that a near tie may fall otherwise.
  for (const char* type : {"f32", "f16", "bf16", "q8_0"}) {
    SCOPED_TRACE(type);
    const fs::path gguf = dir / (std::string(type) + ".gguf");
    expect_ok(assay({"convert", kData / "tinylm", gguf, "--to", std::string("gguf:") + type}));
    const auto theirs = test::run({fs::path(llama_cpp()) / "llama-completion", "-m", gguf, "-p", prompt, "-n",
                                   "24", "--temp", "0", "-no-cnv", "-t", "1"});
    ASSERT_EQ(theirs.exit_code, 0) << theirs.err;
    const auto ours = assay({"run", gguf, "-p", prompt, "-n", "24"});
    ASSERT_EQ(ours.exit_code, 0) << ours.err;
    const std::string text = trimmed(theirs.out);
    ASSERT_TRUE(text.starts_with(prompt)) << text;
    const std::string continuation = trimmed(text.substr(prompt.size()));
    EXPECT_GT(continuation.size(), 15u) << text;  // its last words are at times not printed when it ends
    EXPECT_TRUE(trimmed(ours.out).starts_with(continuation)) << ours.out << "\nagainst " << continuation;
  }
}

// Models of random weights have no tokenizer, and so no text: they are loaded and run on random tokens.
TEST(LlamaCpp, LoadsEveryFamilyAndRunsIt) {
  if (llama_cpp() == nullptr) GTEST_SKIP() << "SKIPPED: set ASSAY_LLAMA_CPP to llama.cpp's build/bin";
  const TempDir dir;
  for (const char* model : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3-moe", "deepseek-v2",
                            "deepseek-v3", "deepseek-v3-fp8", "kimi-k2"}) {
    SCOPED_TRACE(model);
    const fs::path gguf = dir / (std::string(model) + ".gguf");
    expect_ok(assay({"convert", kData / "models" / model / "model.safetensors", gguf, "--to", "gguf:f16",
                     "--tokenizer-pre", "none"}));
    const auto run = test::run(
        {fs::path(llama_cpp()) / "llama-bench", "-m", gguf, "-p", "8", "-n", "4", "-r", "1", "-t", "1"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

}  // namespace
}  // namespace assay
