#include "refimpl/bench_url/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "core/system/not_empty.h"
#include "core/system/one_of.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/bench_url/load_generator.h"
#include "refimpl/bench_url/report.h"

namespace assay {
namespace {

struct BenchSettings {
  std::string url, kind, key_file, trace, html, ids;
  ProbeWishes wishes;
  ServiceLevel level;
  std::size_t concurrency = 8, in_flight = 256, prompt_tokens = 128, output_tokens = 64;
  std::optional<std::size_t> requests;
  std::optional<double> rate;
  double time_scale = 1, seconds = 600;
  std::uint64_t seed = 0;
  std::string count_by = "auto";
  CommonOptions common;
};

constexpr std::size_t kRequests = 100;

// "300-1300"
std::pair<TokenNumber, TokenNumber> id_range(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto from = parse_u64(text.substr(0, dash));
  const auto to = dash == std::string::npos ? std::nullopt : parse_u64(text.substr(dash + 1));
  if (!from || !to || *from > *to || *to > 10'000'000)
    throw Error::usage("--token-ids " + escape_for_terminal(text) + ": not FROM-TO");
  return {static_cast<TokenNumber>(*from), static_cast<TokenNumber>(*to)};
}

LoadPlan plan_of(const BenchSettings& s) {
  if (!s.trace.empty()) return trace_plan(read_trace(s.trace), s.time_scale, s.requests);
  const LoadLengths lengths{s.requests.value_or(kRequests), s.prompt_tokens, s.output_tokens};
  return s.rate ? poisson_plan(lengths, *s.rate, s.seed) : closed_plan(lengths);
}

bool is_closed(const BenchSettings& s) {
  return s.trace.empty() && !s.rate;
}

std::string load_in_words(const BenchSettings& s) {
  const std::string lengths =
      fmt::format("{} tokens in, {} out, seed {}", s.prompt_tokens, s.output_tokens, s.seed);
  if (!s.trace.empty())
    return fmt::format("open loop from {}, times by {:g}", escape_for_terminal(s.trace), s.time_scale);
  if (s.rate)
    return fmt::format("open loop, {:g} requests a second on average (Poisson), {}", *s.rate, lengths);
  return fmt::format("closed loop of {}, {}", s.concurrency, lengths);
}

std::string prompts_in_words(const PromptPool& pool) {
  if (!pool.ids.empty()) return fmt::format("token ids, out of {}", pool.ids.size());
  return fmt::format("texts of {} words of one token each, {} tokens around them", pool.words.size(),
                     pool.overhead);
}

LoadRecords measure(const BenchSettings& s, const LoadOptions& options, const ServerTraits& server,
                    const LoadPlan& plan) {
  Progress progress(s.common.progress, "bench", plan.requests.size(), ProgressUnit::ones);
  std::size_t told = 0;
  return run_load(options, server, plan, [&](const LoadState& state) {
    progress.add(state.over - told);
    told = state.over;
    progress.item(
        fmt::format("{} in flight, {} failed, {} chunks", state.in_flight, state.failed, state.tokens));
  });
}

void settle(BenchSettings& s, LoadOptions& options) {
  options.url = parse_endpoint_url(s.url);
  options.endpoint.seconds = s.seconds;
  if (!s.key_file.empty()) options.endpoint.key = read_key(s.key_file);
  options.closed = is_closed(s);
  options.clients = options.closed ? s.concurrency : s.in_flight;
  options.seed = s.seed;
  if (!s.ids.empty()) s.wishes.ids = id_range(s.ids);
  s.wishes.kind = options.url.kind.value_or(EndpointKind::completions);
  if (!s.kind.empty()) s.wishes.kind = s.kind == "chat" ? EndpointKind::chat : EndpointKind::completions;
  s.wishes.log_probabilities = s.count_by == "logprobs";
}

int run(BenchSettings s) {
  const Output output(s.common.json);
  check_outputs({s.html, s.common.json});
  LoadOptions options;
  settle(s, options);
  const LoadPlan plan = plan_of(s);
  EndpointClient client(options.url, options.endpoint);
  const ServerTraits server = probe_server(client, s.wishes);
  check_prompts(server.pool, plan);
  LoadReport report{.url = options.url.origin + options.url.base,
                    .route = std::string(route_of(s.wishes.kind)),
                    .model = server.shape.model,
                    .load = load_in_words(s),
                    .prompts = prompts_in_words(server.pool),
                    .counted_by = server.counted_by,
                    .level = s.level,
                    .records = measure(s, options, server, plan),
                    .latencies = {},
                    .figures = {},
                    .identities = {},
                    .interrupted = interrupted()};
  report.latencies = latencies_of(report.records);
  report.figures = figures_of(report.records, report.latencies, s.level);
  report.identities = check_identities(report.records, report.latencies, report.figures);
  if (output.text_wanted()) render_text(report, output);
  if (output.json_wanted()) output.json(render_json(report));
  if (!s.html.empty()) write_whole(s.html, render_html(report));
  if (report.interrupted) return kExitInterrupted;
  return report.good() ? kExitOk : kExitCheckFailed;
}

constexpr const char* kExamples =
    "  assay bench http://127.0.0.1:8000                               a closed loop of 8, 100 requests\n"
    "  assay bench http://127.0.0.1:8000 --concurrency 64 --requests 1000 --html page.html\n"
    "  assay bench http://127.0.0.1:8000 --rate 4 --slo-ttft 500 --slo-tpot 50\n"
    "  assay bench http://127.0.0.1:8000 --trace conversation_trace.jsonl --time-scale 10\n"
    "  assay bench https://HOST/v1/chat/completions --api-key-file key --model NAME\n"
    "\nExit codes: 0 measured, 1 requests failed or the figures are mistrusted, 2 wrong usage or no server, "
    "130 "
    "interrupted.";

void add_target(CLI::App& command, BenchSettings& s) {
  command.add_option("URL", s.url, "A server of OpenAI's API, by its address or the whole route")->required();
  command.add_option("--endpoint", s.kind, "completions | chat (default: as URL says, or completions)")
      ->check(CLI::IsMember({"completions", "chat"}));
  command.add_option("--model", s.wishes.model, "As the server calls it (default: the first of /v1/models)")
      ->type_name("NAME");
  command.add_option("--api-key-file", s.key_file, "The key that is sent, its first line")->type_name("FILE");
  command
      .add_option("--timeout", s.seconds,
                  "Seconds without a byte after which a request has failed (default: 600)")
      ->check(real_range(0.001, 1e6))
      ->type_name("S");
}

void add_load(CLI::App& command, BenchSettings& s) {
  auto* concurrency =
      command
          .add_option("--concurrency", s.concurrency, "Closed loop: requests in flight at once (default: 8)")
          ->check(CLI::Range(1, 10'000))
          ->type_name("N");
  command.add_option("--requests", s.requests, "How many (default: 100; of a trace, all)")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N");
  auto* rate =
      command.add_option("--rate", s.rate, "Open loop: requests a second on average, Poisson by --seed")
          ->check(real_range(1e-6, 1e6))
          ->excludes(concurrency)
          ->type_name("R");
  auto* trace =
      command.add_option("--trace", s.trace, "Open loop as recorded: Mooncake's jsonl, Azure's csv")
          ->excludes(concurrency)
          ->excludes(rate)
          ->type_name("FILE");
  command.add_option("--time-scale", s.time_scale, "The trace's times by X (0.5: twice as fast)")
      ->check(real_range(0.0, 1e6))
      ->needs(trace)
      ->type_name("X");
  command
      .add_option("--in-flight", s.in_flight,
                  "Open loop: at most so many at once; later ones wait (default: 256)")
      ->check(CLI::Range(1, 10'000))
      ->excludes(concurrency)
      ->type_name("N");
  command.add_option("--seed", s.seed, "Of arrivals and prompts (default: 0)")->type_name("N");
}

void add_prompts(CLI::App& command, BenchSettings& s) {
  const std::map<std::string, PromptForm> forms = {
      {"auto", PromptForm::automatic}, {"ids", PromptForm::ids}, {"text", PromptForm::text}};
  command.add_option("--prompt-tokens", s.prompt_tokens, "Tokens of each prompt (default: 128)")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("N");
  command.add_option("--output-tokens", s.output_tokens, "Tokens asked of each answer (default: 64)")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("N");
  command
      .add_option("--prompt-as", s.wishes.form,
                  "auto | ids | text (default: ids where the server takes them, else texts)")
      ->transform(one_of(forms))
      ->type_name("FORM");
  command.add_option("--token-ids", s.ids, "What prompts of ids are made of (default: what /tokenize gives)")
      ->type_name("FROM-TO")
      ->check(not_empty());
  command.add_option("--temperature", s.wishes.temperature, "Of every request (default: 0)")
      ->check(real_range(0.0, 2.0));
  command
      .add_option("--count-by", s.count_by,
                  "auto | logprobs: who tells how many tokens a chunk bears (logprobs cost the server time)")
      ->check(CLI::IsMember({"auto", "logprobs"}));
}

void add_levels(CLI::App& command, BenchSettings& s) {
  const auto add = [&](const char* name, std::optional<double>& ms, const char* what) {
    command.add_option(name, ms, what)->check(positive_real())->type_name("MS");
  };
  add("--slo-ttft", s.level.first_token_ms, "Goodput: the first token within so many milliseconds");
  add("--slo-tpot", s.level.token_ms, "Goodput: TPOT at most");
  add("--slo-itl", s.level.gap_ms, "Goodput: every gap between chunks at most");
  command.add_option("--html", s.html, "Write a page of plots")->type_name("FILE")->check(not_empty());
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto settings = std::make_shared<BenchSettings>();
  CLI::App& command =
      *program.add_subcommand("bench", "The speed of any server of OpenAI's API, each figure defined");
  add_target(command, *settings);
  add_load(command, *settings);
  add_prompts(command, *settings);
  add_levels(command, *settings);
  add_common_options(command, settings->common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run(*settings); }; });
}

}  // namespace assay
