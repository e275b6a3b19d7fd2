#include "verify/xet_check.h"

#include <fmt/format.h>

#include "core/system/text.h"

namespace assay {
namespace {

std::string_view verdict_word(XetVerdict verdict) {
  switch (verdict) {
    case XetVerdict::proven: return "proven";
    case XetVerdict::unproven: return "unproven";
    case XetVerdict::unlisted: break;
  }
  return "unlisted";
}

// Of a proven file.
std::string_view dialect(const XetFacts& facts) {
  if (facts.made->current == facts.made->older) return "both";
  return facts.listed == facts.made->current ? "current" : "older";
}

std::string computed(const XetDigests& made) {
  if (made.current == made.older) return fmt::format("computed {} by both chunkers", made.current.hex());
  return fmt::format("computed {}, by the chunker until September 2025 {}", made.current.hex(),
                     made.older.hex());
}

std::string xet_line(const FileReport& file) {
  const XetFacts& facts = file.xet();
  const std::string name = escape_for_terminal(file.name);
  switch (xet_verdict(facts)) {
    case XetVerdict::proven: {
      const std::string_view by = dialect(facts) == "both"    ? "by both chunkers"
                                  : dialect(facts) == "older" ? "by the chunker until September 2025"
                                                              : "by the chunker of today";
      return fmt::format("{}: PROVEN {}: {}", name, by, facts.listed->hex());
    }
    case XetVerdict::unproven:
      return fmt::format("{}: UNPROVEN: listed as {}, {}", name, facts.listed->hex(), computed(*facts.made));
    case XetVerdict::unlisted: break;
  }
  return fmt::format("{}: {}; nobody lists one", name, computed(*facts.made));
}

}  // namespace

XetVerdict xet_verdict(const XetFacts& facts) {
  if (!facts.listed) return XetVerdict::unlisted;
  return facts.made->include(*facts.listed) ? XetVerdict::proven : XetVerdict::unproven;
}

Digest that_of(const XetDigests& made, const std::optional<Digest>& expected) {
  return expected && *expected == made.older ? made.older : made.current;
}

void tell_of_xet(FileReport& file) {
  file.tell(std::string(file.diagnosis()) + ", or was cut into other chunks when it was uploaded",
            std::string(file.remedy()) + "; a sha256 of it would settle it: its Xet hash alone cannot");
}

XetCount count_xet(const VerifyReport& report) {
  XetCount count;
  for (const FileReport& file : report.files) {
    if (!file.xet().made) continue;
    switch (xet_verdict(file.xet())) {
      case XetVerdict::proven: ++count.proven; break;
      case XetVerdict::unproven: ++count.unproven; break;
      case XetVerdict::unlisted: ++count.unlisted; break;
    }
  }
  return count;
}

void render_xet(const VerifyReport& report, const Output& output) {
  const XetCount count = count_xet(report);
  if (!count.any()) return;
  output.line("");
  output.paint("Xet hashes:", Style::bold);
  bool beside = false;  // one is unproven that another digest decides
  const bool some_listed = count.proven + count.unproven > 0;
  for (const FileReport& file : report.files) {
    if (!file.xet().made || (some_listed && !file.xet().listed)) continue;
    output.line("  " + xet_line(file));
    beside |= xet_verdict(file.xet()) == XetVerdict::unproven && file.expected &&
              file.expected->kind != DigestKind::xet;
  }
  if (some_listed && count.unlisted > 0)
    output.line(fmt::format("  of {} more nobody lists one (--json has them)", count.unlisted));
  if (beside)
    output.line(
        "  UNPROVEN says nothing against a file: its other digest decides, and the hub's chunks may "
        "have been cut otherwise.");
}

Json xet_json(const XetFacts& facts) {
  const XetVerdict verdict = xet_verdict(facts);
  return {{"verdict", verdict_word(verdict)},
          {"dialect", verdict == XetVerdict::proven ? Json(dialect(facts)) : Json()},
          {"listed", facts.listed ? Json(facts.listed->hex()) : Json()},
          {"current", facts.made->current.hex()},
          {"older", facts.made->older.hex()}};
}

Json xet_json(const XetCount& count) {
  return {{"proven", count.proven}, {"unproven", count.unproven}, {"unlisted", count.unlisted}};
}

}  // namespace assay
