"""The command for studies under bent words and bent files: exit code 0 or 2, never a traceback,
one clear sentence when it is 2, and then nothing was written.

    python tests/soak_lab.py --count 2000 --seed 0
"""

import argparse
import contextlib
import io
import os
import random
import sqlite3
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from unittest import mock

from cocabo.cli import main

page = b"""graph: X1 -> X2 -> Y; C -> X2; C -> Y; X1 <-> C; X2 <-> Y; Drug -> Y
target: Y
actions:
  X1: {low: -1, high: 1, step: 0.1}
  X2: {low: -1, high: 1}
  Drug: {values: [none, "1", 2]}
contexts: {C: {low: -1, high: 1}}
costs: {X1: 2, C: 0.5}
units: {X1: mg}
scopes: [X1|C, "X2|C; Drug", Drug|C]
recipe: {schedule: 2}
"""
plain = b'{"graph": "A -> Y; B -> Y", "target": "Y", "actions": {"A": {"low": 0, "high": 1}}}'
past = b"scope,C,X1,X2,Drug,Y,when\nX1|C,0.3,-0.2,,,0.5,\nX2|C; Drug,0.1,,0.4,none,1.5,\n"
log = b"C;X1;X2;Drug;Y\n0,3;-0,2;0,1;2;0,5\n0,1;;;none;\n"
lines = [
    "new S page.yaml",
    "new two.db plain.json --name other",
    "new S page.yaml --dry-run --json",
    "ask S",
    "ask S -n 3 --who ada",
    "ask S --key k1 --json",
    "act S T C=0.3",
    "act S T C=-0.2 --json --yes",
    "act S T C=0.1 --who ben",
    "tell S T 0.4",
    "tell S T Y=0.4 C=0.2 Drug=2",
    "tell S T -1e-3 --key k2",
    "tell S T 99 --yes --json",
    "tell S past.csv",
    "tell S past.csv --dry-run",
    "tell S log.csv --scope X1|C --dry-run --json",
    "observe S log.csv",
    "observe S log.csv --dry-run",
    "observe S log.csv --sep ; --decimal , --encoding utf-8 --yes",
    "correct S T 0.5",
    "correct S T C=0.1 --who ben",
    "drop S T pump failed",
    "undo S",
    "undo S --anyone",
    "undo S --trial T",
    "take S T --who ben",
    "status S",
    "status S --json",
    "best S",
    "best S C=0.1 --json",
    "export S out --sep ; --decimal ,",
    "scopes X->Y --target Y --actions X",
]
junk = ["", " ", "-", "--", "-1", "nan", "inf", "1e999", "C=", "=", "=1", "C=nan", "Y=", "X1=5"]
junk += ["😀", "\udcff", "a" * 5000, "99999999999999999999", "-0", "é=1", "..", "/", "out", "S/x"]
junk += ["C=1e308", "Drug=3", "C=0.1=2", "X1|C", "x;y", "'", '"', "\x00", "\n", "\x1b[2J", "--jso"]
junk += ["--name", "--who", "--yes", "--key", "--scope", "-n", "--json", "--help", "0", "1", "2"]
junk += ["sqlite:///x", "mysql://x", "postgresql:", "past.csv", "page.yaml", "%s", "{study}", "\\1"]


def bent(data, rng):
    """Bytes with some gone, doubled or replaced."""
    data = list(data)
    for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 5, 20])):
        i = rng.randrange(len(data))
        other = rng.choice(b"\",;\t\n\r\x00\xff.-0eX|'{}[]:&*!#")
        data[i : i + 1] = rng.choice([[], [data[i]] * 3, [other], []])
    return bytes(data) or b" "


def words(rng):
    """The words of a line, more or less bent."""
    line = rng.choice(lines).split()
    study = rng.choice(["lab.db"] * 30 + ["two.db", "page.yaml", "none.db", "out"])
    asked = [k for (k,) in rows("lab.db", "select trial from cocabo_events where kind = 'asked'")]
    number = str(rng.choice([*asked[-3:], rng.randint(0, 9)]))
    line = [{"S": study, "T": number}.get(w, w) for w in line]
    for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3])):
        i = rng.randrange(1, len(line) + 1)
        what = rng.choice("dirx")
        if what == "i":
            line.insert(i, rng.choice(junk))
        elif i < len(line):
            if what == "d":
                del line[i]
            elif what == "r":
                line[i] = rng.choice(junk)
            else:
                k = rng.randrange(len(line[i]) + 1)
                line[i] = line[i][:k] + rng.choice(junk) + line[i][k:]
    return line


def rows(file, question):
    """What SQLite answers; nothing if there is no study."""
    if not Path(file).exists():
        return []
    with contextlib.closing(sqlite3.connect(file)) as c:
        try:
            return c.execute(question).fetchall()
        except sqlite3.Error:
            return []


def events(file):
    """How many events are stored."""
    return len(rows(file, "select number from cocabo_events"))


def play(line, rng):
    """What a line says, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    keys = io.StringIO(rng.choice(["", "y\n", "n\n", "?"]))
    terminal = rng.random() < 0.3
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        with mock.patch("sys.stdin", keys):
            with mock.patch.object(keys, "isatty", return_value=terminal):
                code = main(line)
    return code, out.getvalue(), err.getvalue()


def check(line, code, err, before, after):
    """What is wrong with an answer; None: nothing."""
    if code not in (0, 2):
        return f"exit code {code}"
    if "Traceback" in err:
        return "a traceback"
    if code == 2 and (not err.strip() or not err.splitlines()[-1].startswith("cocabo")):
        if "[y/N]" not in err:
            return "no sentence"
    if code == 2 and before != after:
        return f"{after - before} events were written"
    return None


def soak(count, seed):
    """Play bent lines; how many were wrong, and the exit codes."""
    rng, codes, wrong = random.Random(seed), Counter(), []
    for _ in range(count):
        files = {"page.yaml": page, "plain.json": plain, "past.csv": past, "log.csv": log}
        for name, data in files.items():
            Path(name).write_bytes(bent(data, rng))
        line = words(rng)
        before = events("lab.db") + events("two.db")
        try:
            code, _, err = play(line, rng)
        except BaseException:
            wrong.append((line, traceback.format_exc()))
            continue
        codes[line[0] if line else "", code] += 1
        why = check(line, code, err, before, events("lab.db") + events("two.db"))
        if why:
            wrong.append((line, f"{why}\n{err}"))
        if events("lab.db") > 150:  # begin again: long studies are slow, and are soaked elsewhere
            for name in ("lab.db", "lab.db-wal", "lab.db-shm"):
                Path(name).unlink(missing_ok=True)
        if not Path("lab.db").exists():
            Path("page.yaml").write_bytes(page)
            assert play(["new", "lab.db", "page.yaml"], rng)[0] == 0
    return wrong, codes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        wrong, codes = soak(args.count, args.seed)
        os.chdir("/")
    for line, why in wrong[:20]:
        print(line, why, sep="\n")
    fine = sum(n for (_, code), n in codes.items() if code == 0)
    refused = sum(n for (_, code), n in codes.items() if code == 2)
    print(f"{args.count - len(wrong)} of {args.count} lines ended well: {fine} did what they said, "
          f"{refused} were refused")
    done = Counter(name for (name, code) in codes if code == 0)
    print("done at least once:", ", ".join(sorted(done)))
    raise SystemExit(bool(wrong))
