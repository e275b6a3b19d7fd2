#include "refimpl/fingerprint/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "refimpl/fingerprint/report.h"

namespace assay {
namespace {

struct FingerprintSettings {
  FingerprintWishes wishes;
  std::string url, kind, key_file, html;
  CommonOptions common;
};

int run(FingerprintSettings s) {
  const Output output(s.common.json);
  check_outputs({s.html, s.common.json});
  FingerprintWishes& wishes = s.wishes;
  wishes.url = parse_endpoint_url(s.url);
  if (!s.key_file.empty()) wishes.endpoint.key = read_key(s.key_file);
  wishes.kind = wishes.url.kind.value_or(EndpointKind::completions);
  if (!s.kind.empty()) wishes.kind = s.kind == "chat" ? EndpointKind::chat : EndpointKind::completions;
  wishes.jobs = s.common.jobs;
  wishes.progress = s.common.progress;
  const Fingerprint found = take_fingerprint(wishes);
  if (found.interrupted) return kExitInterrupted;
  if (output.text_wanted()) render_text(found, output);
  if (output.json_wanted()) output.json(render_json(found));
  if (!s.html.empty()) write_whole(s.html, render_html(found));
  return found.hidden ? kExitOk : kExitCheckFailed;
}

constexpr const char* kExamples =
    "  assay fingerprint http://127.0.0.1:8000                  which hidden size is behind it?\n"
    "  assay fingerprint http://127.0.0.1:8000 --html page.html  … and the singular values that say so\n"
    "  assay fingerprint https://HOST/v1/chat/completions --api-key-file key --model NAME --most 2048\n"
    "\nExit codes: 0 found, 1 it cannot be told from what the server gives, 2 wrong usage or no server, 130 "
    "interrupted.";

}  // namespace

void add_fingerprint(CLI::App& program, Action& action) {
  auto settings = std::make_shared<FingerprintSettings>();
  FingerprintSettings& s = *settings;
  CLI::App& command = *program.add_subcommand(
      "fingerprint", "The hidden size of the model behind a server, from the rank of its logits");
  command.add_option("URL", s.url, "A server of OpenAI's API, by its address or the whole route")
      ->required()
      ->check(not_empty());
  command.add_option("--endpoint", s.kind, "completions | chat (default: as URL says, or completions)")
      ->check(CLI::IsMember({"completions", "chat"}));
  command.add_option("--model", s.wishes.model, "As the server calls it (default: the first of /v1/models)")
      ->type_name("NAME");
  command.add_option("--api-key-file", s.key_file, "The key that is sent, its first line")->type_name("FILE");
  command
      .add_option("--most", s.wishes.most,
                  "Vectors at most; a hidden size of so many and more cannot be told (default: 8192)")
      ->check(CLI::Range(32, 100'000))
      ->type_name("N");
  command.add_option("--seed", s.wishes.seed, "Of the prompts (default: 0)")->type_name("N");
  command
      .add_option("--timeout", s.wishes.endpoint.seconds,
                  "Seconds without a byte after which a request has failed (default: 600)")
      ->check(real_range(0.001, 1e6))
      ->type_name("S");
  command.add_option("--html", s.html, "Write a page with the singular values")
      ->type_name("FILE")
      ->check(not_empty());
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run(*settings); }; });
}

}  // namespace assay
