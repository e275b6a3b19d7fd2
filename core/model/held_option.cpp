#include "core/model/held_option.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace assay {
namespace {

const std::map<std::string, HeldNames> kEngines = {
    {"stored", HeldNames::stored}, {"vllm", HeldNames::vllm}, {"sglang", HeldNames::sglang}};
const std::map<std::string, ElementType> kTypes = {
    {"bfloat16", ElementType::BF16}, {"float16", ElementType::F16}, {"float32", ElementType::F32}};

}  // namespace

void add_held_options(CLI::App& command, HeldSettings& settings) {
  command
      .add_option_function<std::string>(
          "--engine", [&settings](const std::string& name) { settings.as.names = kEngines.at(name); },
          "Of --tensors: fused and named as the engine does (default: as stored)")
      ->check(CLI::IsMember(kEngines));
  command.add_option("--tp", settings.as.grid.tp, "Of --tensors: cut over N tensor-parallel ranks")
      ->type_name("N");
  command.add_option("--ep", settings.as.grid.ep, "Of --tensors: experts dealt out over M groups of them")
      ->type_name("M");
  command
      .add_option_function<std::string>(
          "--dtype", [&settings](const std::string& name) { settings.as.type = kTypes.at(name); },
          "Of --tensors: plain weights rounded to it, as an engine's --dtype does")
      ->check(CLI::IsMember(kTypes));
}

}  // namespace assay
