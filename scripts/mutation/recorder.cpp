// Of every test, in $ASSAY_MUTANT_REACHED: its name, whether it passed, its processor time in milliseconds,
// the mutants that it reached; fields between tabs. What is reached before the first test is reached by all:
// its line's name is "*".
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" unsigned char* assay_mutant_reached;

namespace {

constexpr int kMostMutants = 1 << 20;

double milliseconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used = {};
    getrusage(who, &used);
    sum += 1e3 * static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-3 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  }
  return sum;
}

class Recorder : public testing::EmptyTestEventListener {
 public:
  explicit Recorder(const char* path) : out_(std::fopen(path, "w")), mine_(getpid()) {}

  void OnTestProgramStart(const testing::UnitTest&) override { line("*", "passed", 0); }
  void OnTestStart(const testing::TestInfo& test) override {
    std::memset(assay_mutant_reached, 0, kMostMutants);
    line(std::string(test.test_suite_name()) + "." + test.name(), "began", 0);
    begin_ = milliseconds();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (out_ == nullptr || getpid() != mine_) return;
    const testing::TestResult& result = *test.result();
    const char* how = result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed";
    line(std::string(test.test_suite_name()) + "." + test.name(), how, milliseconds() - begin_);
  }

 private:
  void line(const std::string& name, const char* how, double spent) {
    if (out_ == nullptr) return;
    std::fprintf(out_, "%s\t%s\t%.3f\t", name.c_str(), how, spent);
    for (int i = 1; i < kMostMutants; ++i) {
      if (assay_mutant_reached[i] != 0) std::fprintf(out_, "%d ", i);
    }
    std::fputc('\n', out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  pid_t mine_;
  double begin_ = 0;
};

const bool g_listening = [] {
  if (const char* path = std::getenv("ASSAY_MUTANT_REACHED"))
    testing::UnitTest::GetInstance()->listeners().Append(new Recorder(path));
  return true;
}();

}  // namespace
