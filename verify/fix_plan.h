// What mends each fault that was found, as lines for a shell: `verify --fix-plan`.
//
// Where a file comes from is known of a clone, a hub's cache and Ollama's store. Of a manifest, or of a folder that
// somebody downloaded into, it is not: --fix-from says it. A plan touches the files that it names, and what the
// tools themselves keep of these.
#pragma once

#include <string>
#include <vector>

#include "core/system/json.h"
#include "core/system/report.h"
#include "verify/fix_source.h"
#include "verify/verify.h"

namespace assay {

struct FixStep {
  std::string file;
  std::string fault;
  std::vector<FixCommand> commands = {};      // in this order
  std::vector<FixCommand> alternatives = {};  // each in place of the last command
  std::string note = {};                      // why there are none, or what else to know
};

std::vector<FixStep> fix_plan(const VerifyReport& report, const VerifyOptions& options);
void render_fix_plan(const std::vector<FixStep>& plan, const Output& output);
Json fix_plan_json(const std::vector<FixStep>& plan);

}  // namespace assay
