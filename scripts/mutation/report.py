"""The account of a run: how many were killed, by what, and who survived."""

import json
from collections import Counter, defaultdict


def summarize(mutants, results, ledger):
    """Shares are of what was examined, without the survivors that the ledger calls equivalent, or a device's."""
    fates = Counter(results[m.key]["fate"] for m in mutants if m.key in results)
    folders = defaultdict(Counter)
    survivors = []
    for mutant in mutants:
        result = results.get(mutant.key)
        if result is None:
            continue
        folders["/".join(mutant.path.split("/")[:2])][result["fate"]] += 1
        if result["fate"] == "survived":
            listed = ledger.get(mutant.key)
            survivors.append({"key": mutant.key, "path": mutant.path, "line": mutant.line, "what": mutant.what,
                              "tests": result.get("tests", 0), "reason": listed["reason"] if listed else None})
    equivalent = sum(s["reason"] == "equivalent" for s in survivors)
    examined = fates["killed"] + fates["survived"]
    device = sum(s["reason"] == "device" for s in survivors)
    meant = examined - equivalent - device
    return {
        "schema": "assay.mutants/1", "examined": examined, "killed": fates["killed"], "survived": fates["survived"],
        "equivalent": equivalent, "shown_on_a_device": device,
        "listed_for_cost": sum(s["reason"] == "cost" for s in survivors),
        "refused": fates["refused"], "absent": fates["absent"],
        "killed_percent": 100.0 * fates["killed"] / meant if meant else 100.0,
        "folders": {name: dict(counts) for name, counts in sorted(folders.items())},
        "killers": Counter(results[m.key]["by"] for m in mutants
                           if results.get(m.key, {}).get("fate") == "killed").most_common(12),
        "survivors": survivors,
    }


def print_text(summary):
    for survivor in sorted(summary["survivors"], key=lambda s: (s["reason"] or "", s["path"], s["line"])):
        listed = survivor["reason"] or f"{survivor['tests']} tests reach it"
        print(f"survived  {survivor['path']}:{survivor['line']}  {survivor['what']}  [{survivor['key']}, {listed}]")
    for name, counts in summary["folders"].items():
        print(f"{name:20} {counts.get('killed', 0):5} killed {counts.get('survived', 0):4} survived "
              f"{counts.get('refused', 0):4} do not compile {counts.get('absent', 0):4} not in this build")
    print(f"{summary['killed']} of {summary['examined']} killed; {summary['equivalent']} survivors are equivalent, "
          f"{summary['shown_on_a_device']} show on a device alone, "
          f"{summary['listed_for_cost']} listed for their cost: {summary['killed_percent']:.1f} %")


def write_json(summary, place):
    place.write_text(json.dumps(summary, indent=1) + "\n")
