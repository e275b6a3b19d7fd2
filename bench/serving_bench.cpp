// The serving engine in process, under clients that each send their next request when the last one is answered: tokens
// made a second, time to the first token, time between two. bench/serving runs it beside llama.cpp's server.
//
//   serving_bench MODEL --clients 8 --requests 3 --prompt 256 --tokens 64 --precision bf16 --kernels cpu --jobs 2
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/system/error.h"
#include "kernels/selection/select.h"
#include "refimpl/engine/serving.h"
#include "refimpl/run_model.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
struct Load {
  std::size_t clients = 1, requests = 3, prompt = 256, tokens = 64;
};

// No prompt begins as another one does.
std::vector<TokenId> prompt_of(std::size_t client, std::size_t request, std::size_t tokens) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<TokenId>(1000 + (client * 7919 + request * 104729 + i * 31) % 100000));
  return ids;
}

struct Asked {
  std::size_t client, request, made = 0;
  Clock::time_point at = Clock::now(), first = {}, last = {};
};

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

class Clients {
 public:
  Clients(ServingEngine& engine, const Load& load) : engine_(engine), load_(load) {
    engine_.listen([this](std::size_t request, std::size_t, TokenId, std::span<const double>) {
      Asked& asked = asked_.at(request);
      asked.last = Clock::now();
      if (asked.made++ == 0) asked.first = asked.last;
    });
  }

  void run() {
    const auto start = Clock::now();
    for (std::size_t c = 0; c < load_.clients; ++c) ask(c, 0);
    while (engine_.step()) take_answers();
    const double whole = seconds(Clock::now() - start);
    const auto requests = static_cast<double>(load_.clients * load_.requests);
    const auto tokens = static_cast<double>(load_.tokens);
    fmt::print(
        "{{\"tokens_per_second\": {:.3f}, \"ttft\": {:.4f}, \"most_ttft\": {:.4f}, \"itl\": {:.5f}}}\n",
        requests * tokens / whole, waited_ / requests, most_waited_, written_ / (requests * (tokens - 1)));
  }

 private:
  void ask(std::size_t client, std::size_t request) {
    ServingRequest asked;
    asked.text.prompt = prompt_of(client, request, load_.prompt);
    asked.text.max_new_tokens = load_.tokens;
    asked_.emplace(engine_.submit(asked), Asked{.client = client, .request = request});
  }
  // Those that are through: their clients ask again.
  void take_answers() {
    std::vector<Asked> done;
    std::erase_if(asked_, [&](const auto& entry) {
      const bool through = entry.second.made == load_.tokens;
      if (through) done.push_back(entry.second);
      if (through) engine_.forget(entry.first);
      return through;
    });
    for (const Asked& asked : done) {
      const double waited = seconds(asked.first - asked.at);
      waited_ += waited;
      most_waited_ = std::max(most_waited_, waited);
      written_ += seconds(asked.last - asked.first);
      if (asked.request + 1 < load_.requests) ask(asked.client, asked.request + 1);
    }
  }

  ServingEngine& engine_;
  Load load_;
  std::map<std::size_t, Asked> asked_;
  double waited_ = 0, most_waited_ = 0, written_ = 0;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  CLI::App app("The serving engine under clients");
  assay::Load load;
  assay::RunSettings settings;
  settings.kernels = "cpu";
  settings.common.jobs = 2;
  std::size_t chunk = 256;
  app.add_option("model", settings.model)->required();
  app.add_option("--clients", load.clients);
  app.add_option("--requests", load.requests);
  app.add_option("--prompt", load.prompt);
  app.add_option("--tokens", load.tokens);
  app.add_option("--precision", settings.precision);
  app.add_option("--kernels", settings.kernels);
  app.add_option("--jobs", settings.common.jobs);
  app.add_option("--chunk", chunk, "Tokens of one prompt in a step");
  CLI11_PARSE(app, argc, argv);
  try {
    settings.select = [](const std::string& selection) {
      return assay::KernelSet{selection,
                              assay::is_invariant(assay::builtin_kernels(), selection),
                              [selection](const assay::Arithmetic& arithmetic, int threads) {
                                return assay::select_kernels(assay::builtin_kernels(), selection, arithmetic,
                                                             threads);
                              },
                              {}};
    };
    assay::OpenModel open(settings.model, settings);
    const std::size_t blocks = load.clients * ((load.prompt + load.tokens) / 16 + 2);
    assay::ServingEngine engine(*open.model, *open.ops,
                                {.cache = {.blocks = blocks,
                                           .tokens_a_step = chunk + load.clients,
                                           .chunk = chunk,
                                           .prefix_cache = false}});
    assay::Clients(engine, load).run();
  } catch (const assay::Error& error) {
    fmt::print(stderr, "serving_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
