#include "convert/report.h"

#include <fmt/format.h>

#include "convert/render.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"

namespace assay {

void check_report_name(const fs::path& file) {
  if (file.extension() != ".json" && file.extension() != ".html")
    throw Error::usage(fmt::format("--report {}: a name ending in .json or .html is needed", file.string()));
  // Said before hours of work rather than after them.
  std::error_code error;
  const fs::path folder = fs::absolute(file).parent_path();
  if (!fs::is_directory(folder, error)) throw Error::input("there is no such folder").in(folder);
}

void write_report(const fs::path& file, const ConversionPlan& plan, const ConvertOptions& options,
                  const fs::path& in, const fs::path& out, const ConvertResult& result) {
  AtomicFile report(file);
  report.write(file.extension() == ".html" ? conversion_page(plan, in, out, result)
                                           : dump_json(render_json(plan, options, out, &result)) + "\n");
  report.commit();
}

}  // namespace assay
