"""Compiles mutated sources beside a finished build, and links the tests with them.

Nothing of the build is touched or compiled again: a mutated object stands before the archive that holds the original, and
the linker takes what it finds first. What the compiler refuses is dropped, by the line it complains of.
"""

import json
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .cpp import Source
from .schema import Schema

HEADER = """#pragma once
extern "C" { extern int assay_mutant_active; extern unsigned char* assay_mutant_reached; }
// Of values the compiler works out itself there is only the original.
constexpr bool assay_mutant(int number) {
  if (__builtin_is_constant_evaluated()) return false;
  if (__builtin_expect(assay_mutant_reached != nullptr, 0)) assay_mutant_reached[number] = 1;
  return assay_mutant_active == number;
}
inline bool assay_mutant_now(int number) { return assay_mutant(number); }
"""
# AVX2 and the portable loops only: four copies of every vector loop take twice as long to compile.
TARGETS = "-DASSAY_FEW_SIMD_TARGETS -DHWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL|HWY_SSE4|HWY_AVX3)"
COMPLAINT = re.compile(r"^(\S+?):(\d+):\d+: (error|note|warning|fatal error|  required from)")
MOST_ROUNDS = 12


class BuildError(Exception):
    pass


class Build:
    def __init__(self, root, release, work, jobs):
        self.root, self.release, self.work, self.jobs = root, release, work, jobs
        self.overlay = work / "overlay"
        commands = json.loads((release / "compile_commands.json").read_text())
        self._compile, self._unit = {}, {}
        for entry in commands:
            words = shlex.split(entry["command"])
            while words and not re.search(r"(g\+\+|c\+\+|clang\+\+)(-\d+)?$", words[0]):
                words.pop(0)
            if not words:
                continue
            place = words[words.index("-o") + 1]
            self._compile[place] = (words, Path(entry["file"]))
            self._unit.setdefault(str(Path(entry["file"]).resolve()), []).append(place)
        self._deps = None

    # ------------------------------------------------------------------------------------------ which objects

    def objects_of(self, path):
        """The objects that are compiled from a source, or from units that include it."""
        whole = str((self.root / path).resolve())
        if whole in self._unit:
            return self._unit[whole]
        if self._deps is None:
            self._deps = defaultdict(set)
            text = subprocess.run(["ninja", "-C", str(self.release), "-t", "deps"], capture_output=True, text=True).stdout
            place = None
            for line in text.splitlines():
                if line.startswith("    "):
                    self._deps[str((self.release / line.strip()).resolve())].add(place)
                elif ": #deps" in line:
                    place = line.split(": #deps")[0]
        return sorted(o for o in self._deps.get(whole, ()) if o in self._compile)

    def link_command(self, program):
        target = {"assay": "cli/assay"}.get(program, f"tests/{program}")
        lines = subprocess.run(["ninja", "-C", str(self.release), "-t", "commands", target], capture_output=True,
                               text=True, check=True).stdout.splitlines()
        line = next(one for one in reversed(lines) if f" -o {target} " in one)
        words = shlex.split(line.split("&&")[1])
        return words, target

    @staticmethod
    def archive_of(place):
        folder, _, rest = place.partition("/CMakeFiles/")
        return f"{folder}/lib{rest.split('.dir/')[0]}.a"

    # ----------------------------------------------------------------------------------------------- compiling

    def compile(self, chosen, objects, say):
        """chosen: {path: {key: number}}; objects: those that include them. Returns ({place: object}, refused keys)."""
        self.work.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.overlay, ignore_errors=True)  # of a run before: its headers have other numbers
        (self.work / "mutant.h").write_text(HEADER)
        lines, refused = {}, set()
        places = {path: [o for o in self.objects_of(path) if o in objects] for path in chosen}
        for path in chosen:
            lines[path] = self._write(path, chosen[path], refused)
        dirty = set().union(*places.values())
        for round_ in range(MOST_ROUNDS):
            with ThreadPoolExecutor(self.jobs) as pool:
                complaints = list(pool.map(self._compile_one, sorted(dirty)))
            failed = {place: text for place, text in zip(sorted(dirty), complaints) if text is not None}
            if not failed:
                return {place: self._object(place) for of in places.values() for place in of}, refused
            worst = [self._blame(place, text, lines) for place, text in failed.items()]
            blamed = set().union(*(numbers for numbers in worst))
            for (place, text), numbers in zip(failed.items(), worst):
                if not numbers or round_ == MOST_ROUNDS - 2:
                    blamed |= {n for path, of in places.items() if place in of for said in lines[path].values() for n in said}
                    say(f"{place}: nothing of it is examined\n{text[:1500]}")
            if not blamed:
                for path in [path for path, of in places.items() if any(place in failed for place in of)]:
                    say(f"{path}: is not understood, and left out\n{next(iter(failed.values()))[:1500]}")
                    refused |= set(chosen[path])
                    (self.overlay / path).unlink()
                    del places[path]
                dirty = {place for of in places.values() for place in of}
                continue
            changed = set()
            for path, keys in ((p, k) for p, k in chosen.items() if p in places):
                gone = {key for key, number in keys.items() if number in blamed} - refused
                if gone:
                    refused |= gone
                    lines[path] = self._write(path, keys, refused)
                    changed.add(path)
            dirty = set(failed).union(*(places[path] for path in changed))
        raise BuildError("the compiler is not satisfied by dropping mutants")

    def _write(self, path, keys, refused):
        source = Source(path, (self.root / path).read_text())
        text, lines = Schema(source, {k: n for k, n in keys.items() if k not in refused}).text()
        place = self.overlay / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
        return lines

    def _object(self, place):
        return self.work / "objects" / place

    def command(self, place):
        words, source = self._compile[place]
        words = list(words)
        out = self._object(place)
        out.parent.mkdir(parents=True, exist_ok=True)
        words[words.index("-o") + 1] = str(out)
        inside = source.resolve().relative_to(self.root.resolve())
        if (self.overlay / inside).exists():
            words[words.index("-c") + 1] = str(self.overlay / inside)
        elif source.suffix == ".cxx":
            words[words.index("-c") + 1] = str(self._unit_with_mutants(source, out))
        first = next(i for i, w in enumerate(words) if w.startswith("-I"))
        words.insert(first, f"-I{self.overlay}")
        return [*words, "-include", str(self.work / "mutant.h"), "-w", "-Werror=vla", "-Wno-narrowing", "-O1", "-fmax-errors=0",
                "-fno-diagnostics-show-caret", "-fdiagnostics-color=never", *TARGETS.split()]

    def _unit_with_mutants(self, unit, out):
        """Of a file that includes several sources, each by its whole path, one that includes those mutated in their place."""
        def mutated(line):
            path = Path(line[1]).relative_to(self.root)
            return f'#include "{self.overlay / path if (self.overlay / path).exists() else line[1]}"'
        copy = out.with_suffix(".cxx")
        copy.write_text(re.sub(r'^#include "(/.*)"$', mutated, unit.read_text(), flags=re.M))
        return copy

    def _compile_one(self, place):
        run = subprocess.run(self.command(place), cwd=self.release, capture_output=True, text=True)
        return None if run.returncode == 0 else run.stderr

    def _blame(self, place, text, lines):
        """Numbers of the mutants on the lines complained of; of an error that names none, those its notes name."""
        by_file = {str(self.overlay / path): of for path, of in lines.items()}
        blamed, pending, open_, before = set(), set(), False, False
        for line in text.splitlines():
            found = COMPLAINT.match(line)
            if not found:
                continue
            numbers = by_file.get(found[1], {}).get(int(found[2]))
            asked_for = found[3] == "  required from"
            if asked_for or found[3] != "note":
                if open_ and not (asked_for and before):
                    blamed |= pending
                    pending = set()
                open_, before = not asked_for, asked_for
            if numbers:
                if open_ and found[3] not in ("note", "  required from"):
                    blamed |= set(numbers)
                    pending, open_ = set(), False
                else:
                    pending |= set(numbers)
        return blamed | (pending if open_ else set())

    def preprocessed_holds(self, place, number):
        """Is the mutant among what was compiled, or in a branch of the preprocessor not taken here?"""
        kept = self.work / "preprocessed" / place
        if not kept.exists() or kept.stat().st_mtime < self._object(place).stat().st_mtime:
            kept.parent.mkdir(parents=True, exist_ok=True)
            command = self.command(place)
            command[command.index("-o") + 1] = str(kept)
            command[command.index("-c")] = "-E"
            subprocess.run([*command[: command.index("-E")], "-E", *command[command.index("-E") + 1 :]], cwd=self.release,
                           check=True, capture_output=True)
        return re.search(rf"assay_mutant(_now)?\({number}\)", kept.read_text(errors="replace")) is not None

    # ------------------------------------------------------------------------------------------------- linking

    def link(self, program, mutated):
        """Returns the program, or None where nothing mutated is in it."""
        words, target = self.link_command(program)
        given = {w for w in words if w.endswith(".o")}
        archives = {w for w in words if w.endswith(".a")}
        replaced = {place: str(o) for place, o in mutated.items() if place in given}
        before = [str(o) for place, o in mutated.items() if place not in given and self.archive_of(place) in archives]
        if not replaced and not before:
            return None
        out = self.work / "bin" / program
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [replaced.get(w, w) for w in words]
        words[words.index("-o") + 1] = str(out)
        first = next(i for i, w in enumerate(words) if w.endswith(".o"))
        words[first:first] = [*before, str(self._support("runtime")),
                              *([] if program == "assay" else [str(self._support("recorder"))])]
        run = subprocess.run(words, cwd=self.release, capture_output=True, text=True)
        if run.returncode != 0:
            raise BuildError(f"{program} does not link:\n{run.stderr[-4000:]}")
        return out

    def _support(self, name):
        source, out = Path(__file__).parent / f"{name}.cpp", self.work / f"{name}.o"
        if not out.exists() or out.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["c++", "-std=c++20", "-O1", "-fPIC", "-c", str(source), "-o", str(out)], check=True)
        return out
