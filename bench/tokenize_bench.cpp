// Speed of encoding one file, in MB of text per second of CPU time: bench/tokenize runs it beside its peer.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "core/system/error.h"
#include "core/system/file.h"
#include "refimpl/tokenizers/load.h"

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "usage: tokenize_bench MODEL TEXT-FILE\n"), 2;
  try {
    const auto tokenizer = assay::load_tokenizer(argv[1]);
    const std::string text = assay::read_small_file(argv[2], assay::kMostTextBytes);
    const std::clock_t start = std::clock();
    const auto ids = tokenizer->encode(text, {.add_special = false});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    fmt::print("assay       {} tokens, {:.2f} MB/s\n", ids.size(),
               static_cast<double>(text.size()) / seconds / 1e6);
  } catch (const assay::Error& error) {
    fmt::print(stderr, "{}\n", error.line());
    return error.exit_code();
  }
}
