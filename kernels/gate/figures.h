// What the gate remembers beside kernels: named figures of suites that others bring (cli/gate), since what
// they run lies on the same floor as the gate or above.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/system/json.h"
#include "core/system/report.h"

namespace assay {

// How far a figure may move before it is a deviation.
enum class Drift : std::uint8_t {
  ratio,     // the largest of many errors over what is allowed: doubled or halved, where it is more than 0.05
  one_case,  // that of one small run, which vectors of another width move further: fourfold, or a fourth
  decibels,  // a signal-to-noise ratio of conversions, which are the same to the bit everywhere: 0.01
  exact,     // a word: any change
};

struct GateFigure {
  std::string name;  // "llama: largest local error, of what is allowed"
  Drift drift = Drift::ratio;
  double value = 0;
  std::string word;         // of Drift::exact
  bool holds = true;        // what is wrong in itself fails, whatever was remembered
  std::string detail = {};  // why it does not hold
  bool measured = true;     // false: it threw, and there is nothing to remember
};
// What threw where it should have been measured.
GateFigure broken_figure(std::string name, const std::exception& error);

struct GateSuite {
  std::string name;  // "models"
  std::function<std::vector<GateFigure>(const std::filesystem::path& data, int jobs)> run;
};

using FigureRecord = std::map<std::string, Json>;           // by figure: a number or a word
using FigureRecords = std::map<std::string, FigureRecord>;  // by suite
using SuiteResults = std::map<std::string, std::vector<GateFigure>>;

FigureRecords records_of(const SuiteResults& results);

struct Deviation;
struct KnownFailure;
// Of the suites that ran.
std::vector<Deviation> figure_deviations(const FigureRecords& before, const SuiteResults& now,
                                         const std::vector<KnownFailure>& ledger, const std::string& today);

}  // namespace assay
