#include "paramcount/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "paramcount/engine_rules.h"
#include "paramcount/paramcount.h"
#include "paramcount/render.h"
#include "paramcount/tensor_list.h"

namespace assay {
namespace {

constexpr const char* kScalings[] = {"rope_scaling", "rope_parameters"};

struct Settings {
  CommonOptions common;
  RenderSettings render;
  Question question;
  std::string path = ".", other, format, report, page;
  bool tensors = false, rules = false;
  std::string plan, gpu_memory, block, engine = "all", weights, bandwidth, flops;
};

// "3.35TB", "989T", "989 TFLOPS": a number and a power of 1000.
double parse_rate(const std::string& option, const std::string& text) {
  if (text.empty()) return 0;
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string_view unit = trim(std::string_view(text).substr(used));
  constexpr std::string_view kPrefixes = "KMGTP";
  const auto prefix =
      unit.empty() ? std::string_view::npos : kPrefixes.find(static_cast<char>(std::toupper(unit[0])));
  const bool known = unit.empty() || prefix != std::string_view::npos;
  if (used == 0 || !(value > 0) || !std::isfinite(value) || !known)
    throw Error::usage(fmt::format("{} {}: not a rate", option, text)).remedy("write it like 3.35TB or 989T");
  return prefix == std::string_view::npos ? value : value * std::pow(1000.0, static_cast<double>(prefix + 1));
}

void parse_block(const std::string& text, WeightFormat& format) {
  if (text.empty()) return;
  const auto x = text.find('x');
  const auto rows = parse_u64(text.substr(0, x));
  const auto columns = parse_u64(x == std::string::npos ? std::string() : text.substr(x + 1));
  if (!rows || !columns || *rows == 0 || *columns == 0 || *rows > 65536 || *columns > 65536)
    throw Error::usage(fmt::format("--block {}: not a block", text)).remedy("write it like 128x128");
  // A block given for a model that is not in blocks means: if it were.
  if (format.kind != WeightFormat::Kind::blocks || format.block_rows <= 1)
    format = *weight_format("fp8-block");
  format.set_block(*rows, *columns);
}

WeightFormat chosen_format(const Settings& settings, const Model& model) {
  WeightFormat format = model.format;
  if (!settings.weights.empty()) {
    const auto named = weight_format(settings.weights);
    if (!named) {
      std::string known;
      for (const WeightFormat& f : weight_formats()) known += (known.empty() ? "" : ", ") + f.name;
      throw Error::usage(fmt::format("--weights {}: no such form", settings.weights))
          .remedy("use one of " + known);
    }
    format = *named;
  }
  parse_block(settings.block, format);
  return format;
}

// A context that the config does not promise. Where its angles are scaled, engines know better.
std::optional<std::string> beyond_the_context(const Question& question, const ModelConfig& config) {
  constexpr std::uint64_t kNotAsked = 4096;
  const ParsedJson& keys = config.text();
  const auto most = keys.find("max_position_embeddings");
  if (most == keys.end() || !most->is_number_unsigned() || question.context <= kNotAsked) return std::nullopt;
  const bool scales = std::any_of(std::begin(kScalings), std::end(kScalings), [&](const char* key) {
    const auto scaling = keys.find(key);
    return scaling != keys.end() && scaling->is_object() && scaling->contains("factor");
  });
  if (scales || question.context <= *most) return std::nullopt;
  return fmt::format(
      "--context {} is beyond max_position_embeddings {}: engines refuse it unless told otherwise",
      question.context, most->get<std::uint64_t>());
}

void read_question(Settings& settings, const Model& model) {
  Question& question = settings.question;
  question.machine = {parse_rate("--bandwidth", settings.bandwidth), parse_rate("--flops", settings.flops)};
  question.plan.format = chosen_format(settings, model);
  EngineChoice choice = parse_engines(settings.engine);
  question.plan.engines = std::move(choice.engines);
  question.plan.remarks = std::move(choice.remarks);
  if (auto remark = beyond_the_context(question, model.config))
    question.plan.remarks.push_back(std::move(*remark));
  if (!settings.gpu_memory.empty()) question.plan.gpu_memory = parse_bytes(settings.gpu_memory);
  if (settings.plan == "auto") {
    if (question.search_gpus == 0)
      throw Error::usage("--plan auto needs to know how many GPUs there are").remedy("add --gpus N");
  } else {
    if (question.search_gpus != 0) throw Error::usage("--gpus belongs to --plan auto");
    if (!settings.plan.empty()) question.layout = parse_layout(settings.plan);
  }
}

std::string format_of(const Settings& settings) {
  if (!settings.format.empty()) return settings.format;
  const fs::path extension = fs::path(settings.report).extension();
  for (const char* known : {"json", "csv", "md", "html"}) {
    if (extension == std::string(".") + known) return known;
  }
  return "table";
}

void deliver(const Settings& settings, const Output& output, const std::string& text) {
  if (settings.report.empty()) {
    std::string_view body = text;
    while (!body.empty() && body.back() == '\n') body.remove_suffix(1);
    output.line(body);
    return;
  }
  write_whole(settings.report, text);
}

int verdict_of_two(const Output& output, const Model& model, const Model& other) {
  int exit_code = kExitOk;
  for (const Model* one : {&model, &other}) {
    if (!has_errors(one->findings)) continue;
    output.paint(fmt::format("{}: the checkpoint does not hold what its config says", one->source.string()),
                 Style::red);
    exit_code = kExitCheckFailed;
  }
  return exit_code;
}

// Two models are set side by side as they are: no plan of either, and no list of tensors.
int run_diff(Settings& settings, const Output& output, const Model& model) {
  if (!settings.plan.empty() || settings.tensors || settings.question.search_gpus != 0)
    throw Error::usage("--plan, --gpus and --tensors are of one model, and two were given")
        .remedy("ask for each of them by itself");
  const Model other = load_model(settings.other, settings.common.jobs);
  const std::string format = format_of(settings);
  if (format == "csv")
    throw Error::usage("--diff cannot be written as csv").remedy("use table, md, html or json");
  if (format == "html") {
    read_question(settings, model);
    settings.question.layout.reset();
    settings.question.search_gpus = 0;
    deliver(settings, output, render_html_of_two(model, other, settings.question));
    output.json(render_diff_json(model, other));
    return verdict_of_two(output, model, other);
  }
  const Json document = render_diff_json(model, other);
  deliver(settings, output,
          format == "json" ? dump_json(document) + "\n"
                           : render_diff(model, other, settings.render, format == "md"));
  output.json(document);
  return verdict_of_two(output, model, other);
}

int run_tensors(const Settings& settings, const Output& output, const Model& model) {
  const std::string format = format_of(settings);
  if (format == "md" || format == "html")
    throw Error::usage(fmt::format("--tensors cannot be written as {}", format))
        .remedy("use table, csv or json");
  const bool as_json = format == "json";
  const Json document =
      as_json || output.json_wanted() ? render_tensor_json(model, settings.question) : Json();
  deliver(settings, output,
          as_json           ? dump_json(document) + "\n"
          : format == "csv" ? render_tensor_csv(model, settings.question)
                            : render_tensor_table(model, settings.question));
  output.json(document);
  const Answer found = answer(model, settings.question);
  const bool good = found.feasible() && !has_errors(model.findings);
  if (format == "table" && !good) output.paint(verdict_line(model, found), Style::red);
  return good ? kExitOk : kExitCheckFailed;
}

// Each engine's table, or with versions asked for, as those have them.
int run_rules(const Settings& settings, const Output& output) {
  const EngineChoice choice = parse_engines(settings.engine);
  for (const std::string& remark : choice.remarks) fmt::print(stderr, "assay: {}\n", remark);
  const bool all = settings.engine == "all";
  deliver(settings, output, render_engine_rules(all ? std::vector<EngineAt>() : choice.engines));
  return kExitOk;
}

int run_paramcount(Settings& settings) {
  if (!settings.page.empty()) {
    if (!settings.report.empty() || !settings.format.empty())
      throw Error::usage("--html FILE says format and file; --format and --report say them again");
    settings.report = settings.page;
    settings.format = "html";
  }
  const Output output(settings.common.json);
  if (settings.rules) return run_rules(settings, output);
  const Model model = load_model(settings.path, settings.common.jobs);
  if (!settings.other.empty()) return run_diff(settings, output, model);
  read_question(settings, model);
  if (model.tree.derived && !settings.plan.empty())
    throw Error::usage(
        "--plan needs to know how the model's matrices may be cut, and its architecture is described nowhere")
        .remedy("docs/families.md tells how to describe it");
  if (settings.tensors) return run_tensors(settings, output, model);
  const Answer found = answer(model, settings.question);
  const std::string format = format_of(settings);

  const bool wants_document = output.json_wanted() || format == "json";
  const Json document = wants_document ? render_json(model, settings.question, found) : Json();
  if (format == "json")
    deliver(settings, output, dump_json(document) + "\n");
  else if (format == "html")
    deliver(settings, output, render_html(model, settings.question, found));
  else if (format == "csv")
    deliver(settings, output, render_csv(model, settings.render));
  else if (format == "md")
    deliver(settings, output, render_markdown(model, settings.question, found, settings.render));
  else
    deliver(settings, output, render_table(model, settings.question, found, settings.render));

  const bool good = found.feasible() && !has_errors(model.findings);
  if (format == "table" || !settings.report.empty())
    output.paint(verdict_line(model, found), good ? Style::green : Style::red);
  output.json(document);
  return good ? kExitOk : kExitCheckFailed;
}

constexpr const char* kExamples =
    "  assay paramcount config.json --formulas             every count with its arithmetic\n"
    "  assay paramcount DIR                                config against the checkpoint's headers\n"
    "  assay paramcount . --tensors --format csv           every tensor: shape, type, bytes, part\n"
    "  assay paramcount . --html model.html                one page to explore and to share\n"
    "  assay paramcount A B --html both.html               two models side by side\n"
    "  assay paramcount . --memory --context 32768 --batch 8 --kv-dtype fp8\n"
    "  assay paramcount . --plan tp=32 --gpu-memory 48GB   will it launch, and if not, what to do\n"
    "  assay paramcount . --plan auto --gpus 32 --gpu-memory 48GB\n"
    "  assay paramcount . --plan tp=8 --engine vllm@0.33,sglang\n"
    "  assay paramcount . --plan tp=4,pp=2 --engine assay  the bytes that each rank of assay run holds\n"
    "  assay paramcount . --compute --context 8192 --bandwidth 3.35TB --flops 989T\n"
    "  assay paramcount A --diff B                         module by module\n"
    "\nExit codes: 0 all well, 1 a plan is infeasible or the checkpoint is not what its config says,\n"
    "2 wrong usage or unreadable input.";

void add_plan_options(CLI::App& command, Settings& s) {
  command.add_option("--plan", s.plan, "Check a layout (tp=16,pp=2,dp=1,ep=1), or 'auto'")
      ->type_name("LAYOUT");
  command.add_option("--gpus", s.question.search_gpus, "With --plan auto: how many")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  command.add_option("--gpu-memory", s.gpu_memory, "Of one GPU (48GB)")->type_name("BYTES");
  command
      .add_option("--gpu-utilization", s.question.plan.usable, "The part of it an engine uses (default: 0.9)")
      ->check(real_range(0.01, 1.0));
  command
      .add_option("--gpus-per-node", s.question.plan.gpus_per_node, "For TensorRT-LLM's rules (default: 8)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--block", s.block, "Quantization blocks other than the config's (64x64)")
      ->type_name("RxC");
  command
      .add_option("--weights", s.weights, "Plan and roofline with another form (bf16, fp8-block, q4_k_m, …)")
      ->type_name("FORM");
  command
      .add_option("--engine", s.engine,
                  "vllm, sglang, trtllm, each with a version (vllm@0.33), or all (default); "
                  "assay: its own ranks (run --tp)")
      ->type_name("ENGINES");
  command.add_flag("--rules", s.rules, "Print what engines ask of a plan, in Markdown");
  command.add_flag("--mtp", s.question.plan.with_mtp, "Load the multi-token prediction layer too");
}

}  // namespace

void add_paramcount(CLI::App& program, Action& action) {
  auto settings = std::make_shared<Settings>();
  CLI::App& command =
      *program.add_subcommand("paramcount", "What is it made of, exactly, and will this plan launch?");
  Settings& s = *settings;
  command.add_option("PATH", s.path, "A config.json, folder, .safetensors, .gguf or hub cache (default: .)");
  command.add_flag("--formulas", s.render.formulas, "Each count's arithmetic, with the config's numbers");
  command.add_option("--depth", s.render.depth, "Levels of modules to show (default: 3; 9: every tensor)")
      ->check(CLI::Range(1, 100));
  command.add_flag("--tensors", s.tensors,
                   "List every tensor: shape, type, bytes, part; with --plan, what a rank holds");
  command.add_option("--format", s.format, "table, json, csv, md or html (default: table, or by --report)")
      ->check(CLI::IsMember({"table", "json", "csv", "md", "html"}));
  command.add_option("-o,--report", s.report, "Write it to FILE instead of stdout")->type_name("FILE");
  command.add_option("--html", s.page, "Write one page to explore and to share, as -o FILE.html does")
      ->type_name("FILE");
  command.add_option("--diff,OTHER", s.other, "Compare with another model, module by module")
      ->type_name("OTHER");
  command.add_flag("--memory", s.render.memory, "Weights in every form, KV cache, activations");
  command.add_flag("--compute", s.render.compute, "FLOPs by module, crossings, roofline");
  command.add_option("--context", s.question.context, "Tokens of context (default: 4096)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  command.add_option("--batch", s.question.batch, "Sequences at once (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  command.add_option("--kv-dtype", s.question.kv_dtype, "bf16 (default), fp8, int8, f32, fp4")
      ->type_name("TYPE");
  command.add_option("--bandwidth", s.bandwidth, "Memory bandwidth a second, for the roofline (3.35TB)")
      ->type_name("BYTES");
  command.add_option("--flops", s.flops, "Peak FLOP a second, for the roofline (989T)")->type_name("RATE");
  add_plan_options(command, s);
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action, &command] {
    for (const char* name : {"--context", "--batch", "--kv-dtype"}) {
      settings->render.memory = settings->render.memory || command.count(name) > 0;
    }
    action = [settings] {
      Settings& chosen = *settings;
      chosen.render.compute = chosen.render.compute || !chosen.bandwidth.empty() || !chosen.flops.empty();
      return run_paramcount(chosen);
    };
  });
}

}  // namespace assay
