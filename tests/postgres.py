"""A PostgreSQL server for tests: in a folder of its own, without a network, gone afterwards."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path


def binaries():
    "The folder with initdb and postgres, None if there is none"
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found += [Path(p).resolve().parent for p in [shutil.which("initdb")] if p]
    needed = ("initdb", "postgres", "pg_isready", "createdb")
    return next((p for p in reversed(found) if all((p / n).exists() for n in needed)), None)


def as_nobody(*words):
    "A command that does not run as root: initdb and postgres refuse root"
    if os.geteuid():
        return list(words)
    return ["setpriv", "--reuid=nobody", "--clear-groups", *words]


class Server:
    "A server that can be stopped, started and killed"

    def __init__(self, bin, home):
        self.bin, self.home = bin, home
        self.process = None

    def start(self):
        options = ["-D", f"{self.home}/data", "-k", str(self.home), "-c", "listen_addresses="]
        options += ["-c", "max_connections=200", "-c", "log_min_messages=panic"]
        self.process = subprocess.Popen(
            as_nobody(f"{self.bin}/postgres", *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(300):
            ready = [f"{self.bin}/pg_isready", "-q", "-h", str(self.home)]
            if subprocess.run(ready).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL did not start")

    def stop(self):
        "Stop at once: connections are cut, and what was committed is there afterwards"
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def url(self, database):
        "The address of a new database"
        words = [f"{self.bin}/createdb", "-h", str(self.home), "-U", "nobody", database]
        subprocess.run(words, check=True)
        return f"postgresql://nobody@/{database}?host={self.home}"


@contextmanager
def server():
    "A running server, for the time of a with block; None if PostgreSQL is not installed"
    bin = binaries()
    if bin is None:
        yield None
        return
    home = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if not os.geteuid():
            shutil.chown(home, "nobody")
        words = [f"{bin}/initdb", "-D", f"{home}/data", "-U", "nobody", "-A", "trust", "-E", "UTF8"]
        made = subprocess.run(as_nobody(*words), capture_output=True, text=True, cwd="/")
        if made.returncode:
            raise RuntimeError(made.stdout + made.stderr)
        running = Server(bin, home)
        running.start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
