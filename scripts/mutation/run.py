"""Runs the tests that reach a mutant, the cheapest first, until one fails."""

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

STAGES = (0.1, 0.7, 4.0, 20.0)  # seconds of tests a process is given before the next, longer one
LEAST_SECONDS, TIMES_AS_LONG = 4.0, 10.0
MEMORY = 8 << 30
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.MULTILINE)


@dataclass
class Test:
    program: str
    name: str
    seconds: float


@dataclass
class Verdict:
    killed: bool
    by: str = ""  # the test, or the command
    how: str = ""  # failed, crashed, timed out
    tests: int = 0


class Runner:
    def __init__(self, programs, folder, commands=(), jobs=2, budget=60.0, only=None):
        """programs: {name: path} of gtest binaries; commands: (name, argv, seconds) run last."""
        self.programs, self.folder, self.commands = programs, folder, commands
        self.jobs, self.budget, self.only = jobs, budget, only or {}
        self.tests = defaultdict(list)  # by number of mutant

    # --------------------------------------------------------------------------------------------- what is reached

    def record(self, say):
        """Runs every test once, and remembers which mutants it reaches. Tests that fail unmutated are left out."""
        with tempfile.TemporaryDirectory() as place:
            shards = [(name, i) for name in self.programs for i in range(self.jobs)]
            with ThreadPoolExecutor(self.jobs) as pool:
                lists = list(pool.map(lambda shard: self._record(*shard, place), shards))
        failing, at_start, passing = [], defaultdict(set), defaultdict(list)
        for (program, _), lines in zip(shards, lists):
            for name, how, milliseconds, numbers in lines:
                if name == "*":
                    at_start[program] |= set(numbers)
                    continue
                if how == "failed":
                    failing.append(f"{program}: {name}")
                if how != "passed":
                    continue
                test = Test(program, name, milliseconds / 1e3)
                passing[program].append(test)
                for number in set(numbers) - at_start[program]:
                    self.tests[number].append(test)
        for program, numbers in at_start.items():
            for number in numbers:
                self.tests[number] += passing[program]
        for tests in [*passing.values(), *self.tests.values()]:
            tests.sort(key=lambda test: test.seconds)
        for tests in self.tests.values():
            if len(tests) <= self.jobs:  # once a process: what makes a static object, which other tests use as well
                tests += [test for test in passing[tests[0].program] if test not in tests]
        if failing:
            say("fail without any mutant, and are left out: " + ", ".join(failing[:10]))

    def _record(self, program, shard, place):
        """A test that brings its process down is left out, and the rest run in another."""
        waiting, lines = self._names(program)[shard :: self.jobs], []
        while waiting:
            reached = f"{place}/{program}.{shard}"
            argv = [str(self.programs[program]), "--gtest_filter=" + ":".join(waiting)]
            subprocess.run(argv, cwd=self.folder, env={**os.environ, "ASSAY_MUTANT_REACHED": reached},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            fields = [line.rstrip("\n").split("\t") for line in open(reached) if line.endswith("\n")]
            lines += [(name, how, float(ms), [int(n) for n in numbers.split()])
                      for name, how, ms, numbers in fields if how != "began"]
            begun = {name for name, how, _, _ in fields}
            if begun <= {"*"}:
                break
            waiting = [name for name in waiting if name not in begun]
        return lines

    def _names(self, program):
        argv = [str(self.programs[program]), "--gtest_list_tests"]
        if self.only.get(program):
            argv.append(f"--gtest_filter={self.only[program]}")
        listed = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True).stdout
        names, suite = [], ""
        for line in listed.splitlines():
            word = line.split("#")[0].strip()
            if line.startswith("  "):
                names.append(suite + word)
            elif word.endswith("."):
                suite = word
        return names

    # ----------------------------------------------------------------------------------------------- one mutant

    def examine(self, number, first=None):
        """first: the test that killed it before."""
        tests, spent, run = self.tests.get(number, []), 0.0, 0
        if first is not None:
            tests = sorted(tests, key=lambda t: (f"{t.program}: {t.name}" != first, t.seconds))
        while tests and spent < self.budget:
            limit = next((s for s in STAGES if s > spent), 60.0)
            chunk, seconds = [], 0.0
            while tests and (not chunk or seconds + tests[0].seconds <= limit and tests[0].program == chunk[0].program):
                chunk.append(tests[0])
                seconds += tests[0].seconds
                tests = tests[1:]
            run += len(chunk)
            spent += max(seconds, 0.02)
            argv = [str(self.programs[chunk[0].program]), "--gtest_fail_fast", "--gtest_color=no",
                    "--gtest_filter=" + ":".join(t.name for t in chunk)]
            how, output = self._run(argv, number, seconds)
            if how:
                named = FAILED.search(output)
                name = named[1] if named else chunk[0].name if len(chunk) == 1 else self._running(output)
                return Verdict(True, f"{chunk[0].program}: {name}", how, run)
        for name, argv, seconds in self.commands:
            if spent + seconds > self.budget:
                break
            how, _ = self._run(argv, number, seconds)
            spent += seconds
            if how:
                return Verdict(True, name, how, run)
        return Verdict(False, "", "", run)

    @staticmethod
    def _running(output):
        begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
        return begun[-1] if begun else "before the first test"

    def _run(self, argv, number, seconds):
        """(how it died or "", its output). Processor time is limited, so that a busy machine kills nothing."""
        limit = int(LEAST_SECONDS + TIMES_AS_LONG * seconds) + 1

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        scratch = tempfile.mkdtemp()
        try:
            run = subprocess.run(argv, cwd=self.folder, env={**os.environ, "ASSAY_MUTANT": str(number), "TMPDIR": scratch},
                                 capture_output=True, text=True, errors="replace", preexec_fn=limits,
                                 timeout=60 + 30 * limit)
        except subprocess.TimeoutExpired as late:
            return "timed out", str(late.stdout or "")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if run.returncode == 0:
            return "", run.stdout
        if run.returncode in (-24, -9):
            return "timed out", run.stdout
        return ("failed" if run.returncode > 0 else "crashed"), run.stdout
