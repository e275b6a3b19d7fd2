#include "refimpl/serve/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/not_empty.h"
#include "core/system/real_range.h"
#include "core/system/report.h"
#include "core/system/stop_on_request.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/models/model_notes.h"
#include "refimpl/run_model.h"
#include "refimpl/run_served.h"
#include "refimpl/serve/http_server.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kLastWords = std::chrono::seconds(2);  // for answers that tell that there is no more

struct ServeSettings {
  RunSettings run;
  HttpOptions http;
  std::string key_file, name, cache_bytes = "1GiB", body_bytes = "8MiB";
  std::size_t queue = 256;
  double seconds = 600;
  std::uint32_t grace = 10;
  bool ids_only = false;
};

// As others name it: the last part of where it lies.
std::string name_of(const std::string& model) {
  std::filesystem::path path = std::filesystem::weakly_canonical(model);
  return path.filename().string();
}

void settle(ServeSettings& s) {
  if (!s.key_file.empty()) s.http.keys = ApiKeys::read(s.key_file);
  s.http.keys.require_for(s.http.host, "--host " + s.http.host);
  s.http.body_bytes = parse_bytes(s.body_bytes);
  s.http.time = std::chrono::milliseconds(std::llround(1000 * s.seconds));
  if (s.name.empty()) s.name = name_of(s.run.model);
  if (!s.run.cache_bytes.empty() && s.run.cache_dir.empty())
    throw Error::usage("--cache-dir-bytes goes with --cache-dir");
}

ServiceOptions service_options(const ServeSettings& s, const OpenModel& open) {
  ServiceOptions options{
      .cache_bytes = parse_bytes(s.cache_bytes),
      .under_way = s.queue,
      .model_name = s.name,
      .ids_only = s.ids_only,
      .tiers = tier_options(s.run, [](const std::string& note) { write_message("note: " + note); })};
  // Other processes' blocks lie in the folder.
  if (!s.run.cache_dir.empty()) options.identity = run_identity(open, s.run);
  if (s.run.kv_cache.empty()) return options;
  options.identity += fmt::format("; cache {}", s.run.kv_cache);
  const std::shared_ptr<const CacheMethod> method = cache_method(s.run.kv_cache);
  require_servable(*method);
  require_suitable(*method, *open.model);
  if (rounds_single_rows(*method)) options.method = method;
  return options;
}

class Server {
 public:
  explicit Server(const ServeSettings& settings)
      : settings_(settings),
        open_(settings.run.model, settings.run),
        service_(open_, service_options(settings, open_)),
        http_(service_, settings.http) {
    for (const std::string& line : model_notes(open_.weights, open_.arithmetic.precision, open_.kernels.name))
      write_message("note: " + line);
  }

  int run() {
    if (interrupted()) return kExitInterrupted;
    const StopOnRequest on_request;
    http_.start();
    announce();
    while (!asked_to_stop() && !interrupted() && !service_.engine().broken())
      std::this_thread::sleep_for(kLook);
    http_.refuse_more();
    write_message(fmt::format("ending: {} answers under way", http_.answers_under_way()));
    wait_for_answers(std::chrono::seconds(settings_.grace));
    service_.engine().end();
    wait_for_answers(kLastWords);
    http_.stop();
    service_.engine().rethrow();
    tell();
    return kExitInterrupted;
  }

 private:
  void announce() const {
    const std::string& host = settings_.http.host;
    const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
    const Output output(settings_.run.common.json);
    const std::string line =
        fmt::format("serving {} on http://{}:{}", escape_for_terminal(settings_.name), shown, http_.port());
    output.text_wanted() ? output.line(line) : write_message(line);
    flush_output();
    write_message(open_.title());
  }

  void wait_for_answers(std::chrono::seconds patience) const {
    const auto until = Clock::now() + patience;
    while (http_.answers_under_way() > 0 && Clock::now() < until && !interrupted() &&
           !service_.engine().broken())
      std::this_thread::sleep_for(kLook);
  }

  void tell() {
    const ServingCounts counts = service_.engine().state().counts;
    Output(settings_.run.common.json)
        .json({{"schema", "assay.serve/1"},
               {"model", settings_.name},
               {"prompt_tokens", counts.prompt_tokens},
               {"cached_tokens", counts.hit_tokens},
               {"loaded_blocks", counts.loaded_blocks},
               {"from_memory", service_.tier_counts().from_memory},
               {"steps", counts.steps},
               {"preemptions", counts.preemptions}});
  }

  const ServeSettings& settings_;
  OpenModel open_;
  mutable TextService service_;
  HttpServer http_;
};

constexpr const char* kExamples =
    "  assay serve MODEL                          OpenAI's API on http://127.0.0.1:8000\n"
    "  assay serve MODEL --precision f64 --port 0\n"
    "  assay serve MODEL --host 0.0.0.0 --api-key-file keys\n"
    "  assay serve MODEL --cache-dir blocks --cache-memory 1GiB     known beginnings survive the server\n"
    "  curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' \\\n"
    "       -d '{\"prompt\": \"Once upon a time\", \"max_tokens\": 20, \"temperature\": 0}'\n"
    "\nExit codes: 2 wrong usage or unreadable input, 3 a fault of its own, 130 ended by a signal.";

void add_door(CLI::App& command, ServeSettings& s) {
  command.add_option("--host", s.http.host, "Where to listen (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS")
      ->check(not_empty());
  command.add_option("--port", s.http.port, "0: any that is free, as the first line says (default: 8000)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  command.add_option("--api-key-file", s.key_file, "Keys of those who may ask, one a line")
      ->type_name("FILE");
  command.add_flag("--token-ids-only", s.ids_only,
                   "Without a tokenizer: prompts are token ids, texts are read with return_token_ids");
  command.add_option("--served-name", s.name, "The model's name (default: its folder's)")
      ->type_name("NAME")
      ->check(not_empty());
}

void add_limits(CLI::App& command, ServeSettings& s) {
  command.add_option("--cache-bytes", s.cache_bytes, "Of keys and values, of all texts (default: 1GiB)")
      ->type_name("SIZE");
  command
      .add_option("--cache-dir", s.run.cache_dir,
                  "A folder that blocks go to and come back from, of later servers and `run` too")
      ->type_name("DIR")
      ->check(not_empty());
  command
      .add_option("--cache-dir-bytes", s.run.cache_bytes, "Of --cache-dir: at most so much (default: 4GiB)")
      ->type_name("SIZE");
  command
      .add_option("--cache-memory", s.run.cache_memory,
                  "At most so much of what --cache-bytes has no room for stays in memory, and goes to "
                  "--cache-dir behind the work")
      ->type_name("SIZE");
  command
      .add_option("--kv-cache", s.run.kv_cache,
                  "Keep caches smaller: int8 (as codes, where nothing goes to --cache-dir), or the model's "
                  "layers grouped (grouped:window=64); docs/caches.md")
      ->type_name("METHOD");
  command.add_option("--queue", s.queue, "Prompts computed and waiting; further ones: 429 (default: 256)")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  command.add_option("--connections", s.http.connections, "Clients served at once (default: 128)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("N");
  command.add_option("--timeout", s.seconds, "Of one answer, in seconds; longer ones: 504 (default: 600)")
      ->check(real_range(0.001, 1e6))
      ->type_name("S");
  command.add_option("--grace", s.grace, "Seconds for what is under way when a signal comes (default: 10)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("S");
  command.add_option("--body-bytes", s.body_bytes, "Of one request; larger ones: 413 (default: 8MiB)")
      ->type_name("SIZE");
  command
      .add_option("--max-logprobs", s.http.limits.log_probabilities,
                  "Likeliest tokens of a place that may be asked for (default: 20)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("K");
}

void add_arithmetic(CLI::App& command, RunSettings& s) {
  s.kernels = "cpu-invariant";
  command
      .add_option("--precision", s.precision,
                  "f64 | f32 | bf16 | fp8-block | int8 | int16 | int8-block (default: f32)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"}));
  command
      .add_option("--kernels", s.kernels,
                  "Whose arithmetic (default: cpu-invariant; a text's bits do not depend on others')")
      ->type_name("SET");
  command.add_option("--variant", s.variant, "Where references disagree, which to follow")->type_name("NAME");
}

}  // namespace

void add_serve(CLI::App& program, Action& action, const KernelSelector& select) {
  auto settings = std::make_shared<ServeSettings>();
  CLI::App& command =
      *program.add_subcommand("serve", "A model behind OpenAI's API: the same request, the same answer");
  ServeSettings& s = *settings;
  s.run.select = select;
  command
      .add_option("MODEL", s.run.model,
                  "A model's folder, one .safetensors with config.json beside it, or a .gguf")
      ->required();
  add_door(command, s);
  add_limits(command, s);
  add_arithmetic(command, s.run);
  add_isa_option(command);
  add_common_options(command, s.run.common);
  set_examples(command, kExamples);
  command.callback([settings, &action, &command] {
    const CLI::Option& isa = *command.get_option("--isa");
    settings->run.isa = isa.count() > 0 ? isa.as<std::string>() : "";
    action = [settings] {
      settle(*settings);
      return Server(*settings).run();
    };
  });
}

}  // namespace assay
